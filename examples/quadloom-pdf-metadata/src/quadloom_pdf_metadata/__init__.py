"""The plug-in: PDF metadata as statements. See docs/howto/plugins.md of Quadloom for what a plug-in is."""

from __future__ import annotations

from quadloom.documents.syntaxes.rdf import files as rdf_files
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.terms import XSD, iri, literal
from quadloom_pdf_metadata.info import date_time, info

DCTERMS = "http://purl.org/dc/terms/"
PDF = "http://ns.adobe.com/pdf/1.3/"
_WORDS = {
    "Title": f"<{DCTERMS}title>",
    "Author": f"<{DCTERMS}creator>",
    "Subject": f"<{DCTERMS}description>",
    "Keywords": f"<{DCTERMS}subject>",
    "Creator": f"<{PDF}Creator>",
    "Producer": f"<{PDF}Producer>",
}
_DATES = {"CreationDate": f"<{DCTERMS}created>", "ModDate": f"<{DCTERMS}modified>"}
_MAX_PACKETS = 4


class PdfMetadata:
    """Reads the Info dictionary and the XMP packets of a PDF file."""

    kinds = ("pdf",)
    syntax = "pdf"

    def extract(self, context: Context) -> None:
        subject = iri(context.url)
        if subject is None:
            return
        values = info(context.body)
        for name, predicate in _WORDS.items():
            if values.get(name):
                context.sink.add(subject, predicate, literal(values[name]))
        for name, predicate in _DATES.items():
            if not values.get(name):
                continue
            at = date_time(values[name])
            if at is None:
                context.sink.add(subject, predicate, literal(values[name]))
                context.find(
                    "pdf-date", f"{name} {values[name][:40]!r} cannot be read: kept as text", syntax=self.syntax
                )
            else:
                context.sink.add(subject, predicate, literal(at, datatype=f"{XSD}dateTime"))
        context.facts.title = context.facts.title or values.get("Title", "")
        context.facts.description = context.facts.description or values.get("Subject", "")
        self._state_xmp(context)

    def _state_xmp(self, context: Context) -> None:
        """By two searches a packet: an expression with both ends would look on from every start that has no end."""
        end = 0
        for _ in range(_MAX_PACKETS):
            start = context.body.find(b"<rdf:RDF", end)
            end = context.body.find(b"</rdf:RDF>", start)
            if start < 0 or end < 0:
                return
            packet = context.body[start : end + len(b"</rdf:RDF>")]
            found = rdf_files.read(packet, kind="rdfxml", url=context.url)
            context.sink.pour(found.nquads)
            context.findings += found.findings
