"""One description as a page in JSON-LD, Microdata or RDFa: for tests, the reference of findings, and the bench.

Every property is on a line of its own, so that the line of a planted defect is known.
"""

from __future__ import annotations

import json
from html import escape

Described = dict[str, object]
SYNTAXES = ("jsonld", "microdata", "rdfa")
_KEPT = ("@context", "@type", "@id")


def page(example: Described, syntax: str, visible: str = "") -> str:
    """A page that carries the example in one syntax, after a text that people see."""
    return _FRAME.format(visible=visible, body=markup(example, syntax))


_FRAME = """\
<!doctype html>
<html lang=en><head><title>Example</title></head><body>
{visible}
{body}
</body></html>
"""


def markup(example: Described, syntax: str) -> str:
    """The markup alone."""
    if syntax == "jsonld":
        data = json.dumps({"@context": "https://schema.org", **example}, indent=1, ensure_ascii=False)
        return f'<script type="application/ld+json">\n{data}\n</script>'
    return "\n".join(_microdata(example, "") if syntax == "microdata" else _rdfa(example, "", top=True))


def _types(item: Described) -> list[str]:
    kinds = item["@type"]
    return [str(kind) for kind in kinds] if isinstance(kinds, list) else [str(kinds)]


def _values(item: Described) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for name, value in item.items():
        if name not in _KEPT:
            found += [(name, one) for one in (value if isinstance(value, list) else [value])]
    return found


def _microdata(item: Described, prop: str) -> list[str]:
    kinds = " ".join(f"https://schema.org/{kind}" for kind in _types(item))
    lines = [f'<div{f" itemprop={prop}" if prop else ""} itemscope itemtype="{kinds}">']
    for name, value in _values(item):
        if isinstance(value, dict):
            lines += _microdata(value, name)
        elif str(value).startswith("http"):
            lines.append(f'<link itemprop="{name}" href="{escape(str(value))}">')
        elif name in ("startDate", "endDate", "datePublished", "cookTime"):
            lines.append(f'<time itemprop="{name}" datetime="{escape(str(value))}">then</time>')
        elif len(str(value)) % 2:
            lines.append(f'<meta itemprop="{name}" content="{escape(str(value))}">')
        else:
            lines.append(f'<span itemprop="{name}">{escape(str(value))}</span>')
    return [*lines, "</div>"]


def _rdfa(item: Described, prop: str, *, top: bool = False) -> list[str]:
    vocab = ' vocab="https://schema.org/"' if top else ""
    lines = [f'<div{vocab}{f" property={prop}" if prop else ""} typeof="{" ".join(_types(item))}">']
    for name, value in _values(item):
        if isinstance(value, dict):
            lines += _rdfa(value, name)
        elif str(value).startswith("http"):
            lines.append(f'<a property="{name}" href="{escape(str(value))}">link</a>')
        elif name in ("startDate", "endDate", "datePublished", "cookTime"):
            lines.append(f'<time property="{name}" datetime="{escape(str(value))}">then</time>')
        elif len(str(value)) % 2:
            lines.append(f'<meta property="{name}" content="{escape(str(value))}">')
        else:
            lines.append(f'<span property="{name}">{escape(str(value))}</span>')
    return [*lines, "</div>"]
