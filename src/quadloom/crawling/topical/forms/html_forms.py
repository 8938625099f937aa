"""HTML forms as a browser would submit them: controls, defaults, buttons, labels.

Parsed with lxml and not with a parser of the HTML standard: for `<table><form><tr>`, as old pages have it, the standard
leaves the form element empty and links its controls by a parser flag that the tree does not show. libxml2 leaves them
inside the form. Controls elsewhere on the page that name the form (`form="id"`) are found too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import lxml.etree
import lxml.html
import msgspec

from quadloom.model.url import resolve

MAX_HTML = 4 * 1024 * 1024  # bytes of a page that are parsed; search boxes are at the top or the end of templates
MAX_FORMS = 100
MAX_CONTROLS = 300
MAX_CHOICES = 40  # options of a select that are remembered
_SPACE = re.compile(r"\s+")
_NO_TEXT = frozenset(("script", "style", "noscript", "select", "option", "textarea", "template"))


class Control(msgspec.Struct, frozen=True):
    """One control. `kind` is the type of the input, or select, textarea, button; `words`: its visible text."""

    name: str
    kind: str
    value: str = ""
    sent: bool = True  # whether an untouched form would send it
    words: str = ""  # label, placeholder, title, alt, and a button's text
    marks: str = ""  # id and class
    options: int = 0
    choices: tuple[tuple[str, str], ...] = ()  # value and words of the first options of a select


class Form(msgspec.Struct, frozen=True):
    """A form element. `place`: its number on the page, from 0; `words`: visible text; `marks`: id, class and name."""

    action: str
    method: str
    controls: tuple[Control, ...]
    place: int
    words: str = ""
    marks: str = ""
    role: str = ""
    around: str = ""  # tag, id and class of its three nearest ancestors
    has_action: bool = True
    multipart: bool = False
    scripted: bool = False


def read_forms(html: bytes | str, url: str) -> list[Form]:
    """All forms of a page, in order. Never raises on bad input; a page without forms, or no HTML at all, gives []."""
    tree = parse_html(html)
    if tree is None:
        return []
    base = url
    for element in tree.iter("base"):
        base = resolve(element.get("href") or "", url) or url
        break
    labels = {label.get("for"): _text(label) for label in tree.iter("label") if label.get("for")}
    forms = []
    for place, element in enumerate(tree.iter("form")):
        if place >= MAX_FORMS:
            break
        forms.append(_form(element, place, base, url, labels, tree))
    return forms


def parse_html(html: bytes | str) -> lxml.html.HtmlElement | None:
    """The tree of a lenient parser, or None if there is nothing to parse."""
    data = html.encode("utf-8", "replace") if isinstance(html, str) else html
    data = data[:MAX_HTML].replace(b"\0", b"")
    if not data.strip():
        return None
    encoding = "utf-8" if isinstance(html, str) or _is_utf8(data) else None
    parser = lxml.html.HTMLParser(encoding=encoding, recover=True)
    try:
        return lxml.html.document_fromstring(data, parser=parser)
    except (lxml.etree.LxmlError, ValueError):
        return None


def _is_utf8(data: bytes) -> bool:
    """Valid UTF-8 is UTF-8, whatever the page declares. A cut inside the last character is allowed."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start >= len(data) - 4
    return True


def _form(
    element: lxml.html.HtmlElement,
    place: int,
    base: str,
    url: str,
    labels: dict[str | None, str],
    tree: lxml.html.HtmlElement,
) -> Form:
    raw = element.get("action")
    controls = []
    for count, control in enumerate(_controls(element, tree)):
        if count >= MAX_CONTROLS:
            break
        controls.append(_control(control, labels))
    around: list[str] = []
    parent = element.getparent()
    while parent is not None and len(around) < 3:
        around.append(f"{parent.tag} {parent.get('id', '')} {parent.get('class', '')}")
        parent = parent.getparent()
    method = (element.get("method") or "get").strip().lower()
    return Form(
        action=resolve((raw or "").strip(), base) or url if raw else url,
        method="post" if method == "post" else "get",
        controls=tuple(controls),
        place=place,
        words=_text(element)[:1000],
        marks=" ".join(element.get(name, "") for name in ("id", "class", "name")),
        role=element.get("role", ""),
        around=" ".join(around)[:400],
        has_action=bool(raw and raw.strip()),
        multipart="multipart" in (element.get("enctype") or ""),
        scripted=bool(element.get("onsubmit")) or (raw or "").strip().lower().startswith(("javascript:", "#")),
    )


def _controls(element: lxml.html.HtmlElement, tree: lxml.html.HtmlElement) -> Iterator[lxml.html.HtmlElement]:
    own = element.get("id")
    for control in element.iter("input", "select", "textarea", "button"):
        owner = control.get("form")
        if not owner or owner == own:
            yield control
    if own:
        for control in tree.iter("input", "select", "textarea", "button"):
            if control.get("form") == own and element not in control.iterancestors("form"):
                yield control


def _control(element: lxml.html.HtmlElement, labels: dict[str | None, str]) -> Control:
    tag = str(element.tag)
    kind = (element.get("type") or ("submit" if tag == "button" else "text")).strip().lower()
    if tag in ("select", "textarea"):
        kind = tag
    identity = element.get("id")
    words = [labels.get(identity, "") if identity else ""]
    words += [element.get(name, "") for name in ("placeholder", "title", "alt", "aria-label")]
    if tag == "button":
        words.append(_text(element))
    value, sent, options = element.get("value") or "", True, 0
    choices: tuple[tuple[str, str], ...] = ()
    if tag == "select":
        value, options, choices = _chosen(element)
    elif tag == "textarea":
        value = element.text or ""
    elif kind in ("checkbox", "radio"):
        sent = element.get("checked") is not None
        value = value or "on"
    if element.get("disabled") is not None or not element.get("name"):
        sent = False
    source = element.get("src", "") if kind == "image" else ""
    return Control(
        name=element.get("name") or "",
        kind=kind,
        value=value,
        sent=sent,
        words=_SPACE.sub(" ", " ".join(word for word in words if word)).strip()[:300],
        marks=f"{identity or ''} {element.get('class', '')} {source}".strip()[:300],
        options=options,
        choices=choices,
    )


def _chosen(select: lxml.html.HtmlElement) -> tuple[str, int, tuple[tuple[str, str], ...]]:
    """The default value of a select: its last selected option, else its first; the number of options, and the first."""
    options = list(select.iter("option"))[:1000]
    picked = [option for option in options if option.get("selected") is not None] or options[:1]
    if not picked:
        return "", 0, ()
    choices = tuple((_option_value(option), _text(option)[:80]) for option in options[:MAX_CHOICES])
    return _option_value(picked[-1]), len(options), choices


def _option_value(option: lxml.html.HtmlElement) -> str:
    value = option.get("value")
    return value if value is not None else _text(option)


def _text(element: lxml.html.HtmlElement) -> str:
    parts: list[str] = []
    for node in element.iter():
        if node is not element and (not isinstance(node.tag, str) or node.tag in _NO_TEXT):
            parts.append(node.tail or "")
            continue
        if node.text:
            parts.append(node.text)
        if node is not element and node.tail:
            parts.append(node.tail)
    return _SPACE.sub(" ", " ".join(parts)).strip()
