"""Which bytes are which characters: the encoding of a document by the WHATWG rules, with one exception.

Order of the HTML standard: byte order mark, HTTP header, `<meta>` within the first 1,024 bytes, a default. The
exception: if a page declares a legacy encoding but its bytes are valid UTF-8 beyond ASCII, UTF-8 wins. Text in a
legacy encoding almost never happens to be valid UTF-8, while templates with a forgotten `iso-8859-1` are common.

UTF-7 is not an encoding of the web: it was abused to smuggle markup past filters, so no label leads to it.
"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache
from typing import Literal

import msgspec

Source = Literal["bom", "header", "meta", "xml", "default", "guess"]

PRESCAN_BYTES = (
    1024  # https://html.spec.whatwg.org/multipage/parsing.html#prescan-a-byte-stream-to-determine-its-encoding
)

# https://encoding.spec.whatwg.org/#names-and-labels: name, Python codec, further labels.
_ENCODINGS = """
utf-8 utf_8 utf8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8
ibm866 cp866 866 cp866 csibm866
iso-8859-2 iso8859_2 csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2
iso-8859-3 iso8859_3 csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3
iso-8859-4 iso8859_4 csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4
iso-8859-5 iso8859_5 csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988
iso-8859-6 iso8859_6 arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e iso-8859-6-i \
iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987
iso-8859-7 iso8859_7 csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597 iso_8859-7 \
iso_8859-7:1987 sun_eu_greek
iso-8859-8 iso8859_8 csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8 \
iso_8859-8:1988 visual
iso-8859-8-i iso8859_8 csiso88598i logical
iso-8859-10 iso8859_10 csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6
iso-8859-13 iso8859_13 iso8859-13 iso885913
iso-8859-14 iso8859_14 iso8859-14 iso885914
iso-8859-15 iso8859_15 csisolatin9 iso8859-15 iso885915 iso_8859-15 l9
iso-8859-16 iso8859_16
koi8-r koi8_r cskoi8r koi koi8 koi8_r
koi8-u koi8_u koi8-ru
macintosh mac_roman csmacintosh mac x-mac-roman
windows-874 cp874 dos-874 iso-8859-11 iso8859-11 iso885911 tis-620
windows-1250 cp1250 cp1250 x-cp1250
windows-1251 cp1251 cp1251 x-cp1251
windows-1252 cp1252 ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 \
iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii x-cp1252
windows-1253 cp1253 cp1253 x-cp1253
windows-1254 cp1254 cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 \
x-cp1254
windows-1255 cp1255 cp1255 x-cp1255
windows-1256 cp1256 cp1256 x-cp1256
windows-1257 cp1257 cp1257 x-cp1257
windows-1258 cp1258 cp1258 x-cp1258
x-mac-cyrillic mac_cyrillic x-mac-ukrainian
gbk gb18030 chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk
gb18030 gb18030
big5 big5hkscs big5-hkscs cn-big5 csbig5 x-x-big5
euc-jp euc_jp cseucpkdfmtjapanese x-euc-jp
iso-2022-jp iso2022_jp csiso2022jp
shift_jis cp932 csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis
euc-kr cp949 cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949
replacement ascii csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr
utf-16be utf_16_be unicodefffe
utf-16le utf_16_le csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16
x-user-defined latin_1
"""
_NAMES: dict[str, str] = {}
_CODECS: dict[str, str] = {}
for _row in _ENCODINGS.strip().splitlines():
    _name, _codec, *_labels = _row.split()
    _CODECS[_name] = _codec
    for _label in (_name, *_labels):
        _NAMES[_label] = _name

_META = re.compile(rb"<!--.*?-->|<meta[\s/]([^>]*)", re.S | re.I)
_ATTRIBUTE = re.compile(rb"""([^\s=/>"']+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+)))?""")
_CHARSET = re.compile(r"charset\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s;\"']+))", re.I)
_XML = re.compile(rb"""<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")


class Charset(msgspec.Struct, frozen=True):
    """`name` as in the WHATWG standard, lower case. `declared` is the label that the content overruled."""

    name: str
    source: Source
    declared: str = ""
    damaged: bool = False  # bytes that are no characters in this encoding; they become U+FFFD
    is_utf8: bool = False  # the bytes are known to be UTF-8, so they need not be decoded to check it


def encoding(label: str) -> str:
    """WHATWG name of an encoding label, or the empty string for an unknown one (and for UTF-7)."""
    return _NAMES.get(label.strip("\t\n\f\r ").lower(), "")


@lru_cache(maxsize=256)
def header_charset(content_type: str | None) -> str:
    """Encoding named in a Content-Type header, or the empty string."""
    if not content_type or "charset" not in content_type.lower():
        return ""
    match = _CHARSET.search(content_type)
    return encoding(next(group for group in match.groups() if group is not None)) if match else ""


def charset_of(body: bytes, content_type: str | None = None, *, xml: bool = False) -> Charset:
    """The encoding of a document. `xml` reads the XML declaration instead of `<meta>`, and its default is UTF-8."""
    bom = _byte_order_mark(body)
    if bom:
        valid = bom == "utf-8" and _is_utf8(body)
        return Charset(bom, "bom", damaged=bom == "utf-8" and not valid, is_utf8=valid)
    name = header_charset(content_type)
    source: Source = "header"
    if not name:
        name, source = _declared_in_content(body, xml)
    if body.isascii() and name in ("", "utf-8", "windows-1252"):
        # The quick way for most pages.
        return Charset(name or "utf-8", source if name else "default", is_utf8=name != "windows-1252")
    return _checked(body, name, source, xml)


def decode(body: bytes, name: str) -> str:
    """Text of a body. Never raises: what is no character becomes U+FFFD."""
    if name == "replacement":
        return "\ufffd" if body else ""
    text = body.decode(_CODECS.get(name, "utf_8"), "replace")
    return text[1:] if text.startswith("\ufeff") else text


def utf8(body: bytes, name: str, *, is_utf8: bool = False) -> bytes:
    """The same document in UTF-8 without byte order mark; the same bytes if they are that already.

    `is_utf8` as in `Charset`: to check it again takes 46 µs on a 38 KB page with a letter beyond ASCII.
    """
    if is_utf8 or (name == "utf-8" and _is_utf8(body)):
        return body[3:] if body.startswith(codecs.BOM_UTF8) else body
    return decode(body, name).encode("utf-8", "replace")


def _byte_order_mark(body: bytes) -> str:
    if body.startswith(codecs.BOM_UTF8):
        return "utf-8"
    if body.startswith(codecs.BOM_UTF16_BE):
        return "utf-16be"
    return "utf-16le" if body.startswith(codecs.BOM_UTF16_LE) else ""


def _declared_in_content(body: bytes, xml: bool) -> tuple[str, Source]:
    # XML appendix F: a document without byte order mark shows its code unit size by the zeros around "<".
    if body.startswith((b"<\0?\0", b"<\0!\0")):
        return "utf-16le", "guess"
    if body.startswith((b"\0<\0?", b"\0<\0!")):
        return "utf-16be", "guess"
    if body.startswith(b"<?xml"):
        match = _XML.match(body, 0, PRESCAN_BYTES)
        name = encoding(match.group(1).decode("ascii")) if match else ""
        if name:
            return ("utf-8" if name.startswith("utf-16") else name), "xml"
    if xml:
        return "", "default"
    return _prescan(body[:PRESCAN_BYTES]), "meta"


def _prescan(head: bytes) -> str:
    """`<meta charset>` or `<meta http-equiv=content-type content="…charset=…">` in the first 1,024 bytes."""
    for match in _META.finditer(head):
        attributes = match.group(1)  # None for a comment
        if attributes and b"charset" in attributes.lower() and (name := _meta_charset(attributes)):
            return name
    return ""


@lru_cache(maxsize=512)  # the pages of a site say it in the same words; `PRESCAN_BYTES` limits each
def _meta_charset(text: bytes) -> str:
    """The encoding that a `<meta>` element with these attributes declares, or the empty string."""
    attributes: dict[bytes, bytes] = {}
    for key, *values in _ATTRIBUTE.findall(text):
        attributes.setdefault(key.lower(), b"".join(values))
    label = attributes.get(b"charset", b"").decode("latin_1")
    if not label and attributes.get(b"http-equiv", b"").lower() == b"content-type":
        found = _CHARSET.search(attributes.get(b"content", b"").decode("latin_1"))
        label = next((group for group in found.groups() if group is not None), "") if found else ""
    name = encoding(label)
    if name.startswith("utf-16"):
        return "utf-8"  # the standard's rule: a page whose meta could be read in ASCII is not UTF-16
    return "windows-1252" if name == "x-user-defined" else name


def _checked(body: bytes, name: str, source: Source, xml: bool) -> Charset:
    if name.startswith("utf-16"):
        return Charset(name, source)
    valid = _is_utf8(body)
    if not name and valid:
        return Charset("utf-8", "guess" if not body.isascii() else "default", is_utf8=True)
    if not name:
        return _guess(body, xml)
    if name == "utf-8":
        return Charset(name, source, damaged=not valid, is_utf8=valid)
    if valid and not body.isascii():
        return Charset("utf-8", "guess", declared=name, is_utf8=True)
    return Charset(name, source)


def _guess(body: bytes, xml: bool) -> Charset:
    if xml:
        return Charset("utf-8", "default", damaged=True)  # XML without a declaration must be UTF-8
    try:
        begun = codecs.getincrementaldecoder("utf-8")().decode(body)
    except UnicodeDecodeError:
        return Charset("windows-1252", "guess")
    # A body cut at the size limit may end within a character.
    return Charset("windows-1252" if begun.isascii() else "utf-8", "guess")


def is_utf8_in_python(body: bytes) -> bool:
    """As `quadloom.documents.native.texts.is_utf8`, which decodes nothing."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


try:
    from quadloom.documents.native.texts import is_utf8 as _is_utf8
except ImportError:  # it was not built: there is no compiler
    _is_utf8 = is_utf8_in_python
