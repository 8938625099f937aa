"""Which links of a page count for the importance of others."""

from __future__ import annotations

from quadloom.model.url import fingerprint
from quadloom.phases.extract import edges, targets
from quadloom.phases.transform import transform


def test_links_that_our_own_mapping_invents_do_not_count_for_importance() -> None:
    """A generic XML document names rdf:type and its namespaces, but recommends none of these pages."""
    body = b'<n xmlns="http://ns.example/v#"><see href="http://b.example/page">x</see><q><r>1</r></q></n>'
    transformed = transform(body, url="http://a.example/x.xml", headers=(("content-type", "application/xml"),))
    leading_to = targets(transformed.links)
    kinds = {link.target: link.kind for link in transformed.links}
    assert kinds["http://ns.example/v"] == "vocabulary"
    counted = edges(transformed.links, leading_to)
    assert counted == fingerprint("http://b.example/page").to_bytes(8, "little", signed=True)
    assert len(edges(transformed.links, leading_to, vocabulary=True)) > len(counted)
