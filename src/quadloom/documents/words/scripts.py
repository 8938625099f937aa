"""Text of any script, rewritten so that a plain tokenizer finds its words.

The tokenizer (tantivy's `simple`) splits at everything but letters and digits, then lowers and removes Latin accents:
right for Latin and Cyrillic text, and twenty times as fast as anything in Python. Other scripts need help first:

* Chinese, Japanese and Korean are cut into overlapping pairs of characters: 日本語 → `日本 本語 語`. Every character
  begins one token, so that a question of one character can be answered by a prefix.
* Thai, Lao, Khmer and Burmese likewise, by pairs of clusters (a consonant with the signs attached to it).
* Indic scripts are written with blanks, but the tokenizer takes some of their signs for punctuation. Such signs become
  letters of a script that is no longer in use (`readable` brings them back). The nukta is dropped: many do not type it.
* Arabic loses short vowels, and letters that are written in several ways become one; Hebrew loses its points, and final
  letters become ordinary ones; Greek loses its accents; Russian ё becomes е, Turkish İ becomes I; native digits
  become 0-9.
* All of these, and text with combining marks or compatibility characters, are normalised (NFKC) first.

Text that needs none of this is recognised by the first bytes of its UTF-8 characters (1 ns a byte) and left alone.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from operator import add

try:
    from quadloom.documents.native.texts import with_runs_rewritten as _native
except ImportError:  # it was not built: there is no compiler
    _native = None  # type: ignore[assignment]

# Bytes of ASCII, Latin up to U+02FF, general punctuation and continuation bytes: nothing to do for any of them.
_PLAIN = bytes((*range(0xCC), 0xE2))
_SOFT_HYPHEN = "\xad"
_DOTTED_I = "İ"  # in lower case it would keep its dot as a mark of its own: who types istanbul would not find İstanbul
_SPARSE = 10  # characters for one of another script: fewer, and the text is rewritten as a whole
_COMPATIBILITY = b"\xcc\xcd\xe1\xef\xf0"  # may hold combining marks, compatibility or decomposed characters

_INVISIBLE = "\u200c\u200d\u2060\ufeff\u0640"  # joiners; and the tatweel, which only makes a word longer
_JOINERS = "\u200c\u200d\u2060"  # those that are punctuation by their first byte
_WITHOUT_ASCII = b" " * 0x80 + bytes(range(0x80, 0x100))
_MOST_RUNS = 40  # of different letters outside ASCII; each that is rewritten costs a pass over the text
_NUKTAS = "\u093c\u09bc\u0a3c\u0abc\u0b3c\u0c3c\u0cbc\u0afd\u0afe\u0aff"
_SIGNS = (
    "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d3b\u0d3c\u0d4d\u0dca"  # Indic: the vowel is left out
    "\u0e47\u0e48\u0e49\u0e4a\u0e4b\u0e4c\u0e4e"  # Thai: tones, and the mark of a silent letter
    "\u0eba\u0ec8\u0ec9\u0eca\u0ecb\u0ecc"  # Lao
    "\u1037\u1039\u103a"  # Burmese
    "\u17c9\u17ca\u17cb\u17cc\u17cd\u17ce\u17cf\u17d0\u17d1\u17d2\u17dd"  # Khmer
)
_FIRST_STAND_IN = 0xA840  # Phags-pa, last used in the 14th century: 52 letters
_STAND_INS = {sign: chr(_FIRST_STAND_IN + number) for number, sign in enumerate(_SIGNS)}
_READABLE = {ord(letter): sign for sign, letter in _STAND_INS.items()}
_STAND_IN_CLASS = f"\\u{_FIRST_STAND_IN:04x}-\\u{_FIRST_STAND_IN + len(_SIGNS) - 1:04x}"

_ARABIC = {
    "أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ى": "ي", "ی": "ي", "ئ": "ي", "ؤ": "و", "ة": "ه", "ۀ": "ه", "ک": "ك",
    "ہ": "ه", "ے": "ي",
}  # fmt: skip
_HEBREW = {"ך": "כ", "ם": "מ", "ן": "נ", "ף": "פ", "ץ": "צ"}
_GREEK = {
    "ά": "α", "έ": "ε", "ή": "η", "ί": "ι", "ό": "ο", "ύ": "υ", "ώ": "ω", "ϊ": "ι", "ϋ": "υ", "ΐ": "ι", "ΰ": "υ",
    "ς": "σ", "Ά": "Α", "Έ": "Ε", "Ή": "Η", "Ί": "Ι", "Ό": "Ο", "Ύ": "Υ", "Ώ": "Ω", "Ϊ": "Ι", "Ϋ": "Υ",
}  # fmt: skip
_CYRILLIC = {"ё": "е", "Ё": "Е"}
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed]+")
_DIGITS = re.compile("[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u09e6-\u09ef\u0a66-\u0a6f\u0ae6-\u0aef\u0b66-\u0b6f"
                     "\u0be6-\u0bef\u0c66-\u0c6f\u0ce6-\u0cef\u0d66-\u0d6f\u0e50-\u0e59\u0ed0-\u0ed9\u1040-\u1049"
                     "\u17e0-\u17e9]+")  # fmt: skip

_HAN = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
_CJK_CLASS = (
    _HAN + "\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_ASIAN_CLASS = f"\u0e01-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u104e-\u109d\u1780-\u17d3\u17dc{_STAND_IN_CLASS}"
_CJK = f"[{_CJK_CLASS}]+"  # compiled by the first page that has such letters: it takes as long as a page
_ASIAN = re.compile("[\u0e01-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u104e-\u109d\u1780-\u17d3\u17dc]"
                    f"[{_ASIAN_CLASS}]*")  # fmt: skip
# A vowel written before its consonant, the consonant, and the signs around it; in Khmer and Burmese a subscript too.
_SUBSCRIPTS = "".join(_STAND_INS[sign] for sign in "\u17d2\u1039")
_DEPENDENT = (
    "\u0e30-\u0e3a\u0e45\u0e4d\u0eb0-\u0ebc\u0ecd\u102b-\u1036\u1038\u103b-\u103e\u1056-\u1059\u17b6-\u17c8"
    + "".join(letter for sign, letter in _STAND_INS.items() if sign >= "\u0e00" and letter not in _SUBSCRIPTS)
)
_CLUSTER = re.compile(f"[\u0e40-\u0e44\u0ec0-\u0ec4]?.(?:[{_SUBSCRIPTS}].|[{_DEPENDENT}])*", re.DOTALL)


def splittable(text: str) -> str:
    """`text` for the tokenizer; the same object if nothing needs to be done."""
    new = splittable_utf8(text)
    return text if new is None else new.decode()


def splittable_utf8(text: str) -> bytes | None:
    """The same in UTF-8, as it is sent to the index; None if nothing needs to be done."""
    if text.isascii():
        return None
    spelled = text.replace(_DOTTED_I, "I") if _DOTTED_I in text else text
    # One pass instead of several; it leaves rare texts to Python.
    new = _native(spelled, _SPARSE, _rewritten_line) if _native is not None else None
    if isinstance(new, bytes):
        return new
    if new is None:
        new = splittable_in_python(spelled)
    return None if new is text else new.encode("utf-8", "replace")


def splittable_in_python(text: str) -> str:
    """As `quadloom.documents.native.texts.with_runs_rewritten`, and with all rules."""
    if _SOFT_HYPHEN in text:
        text = text.replace(_SOFT_HYPHEN, "")
    encoded = text.encode("utf-8", "replace")
    leads = encoded.translate(None, _PLAIN)
    if not leads:
        return text
    if len(leads) * _SPARSE > len(text):
        return _rewritten(text, leads)
    # Foreign names in a text of our own: a few, again and again.
    new = _with_names_rewritten(text, encoded, leads)
    if new is None:  # most lines hold none
        new = "\n".join([line if line.isascii() else _rewritten_line(line) for line in text.split("\n")])
    return new if new != text else text


def _with_names_rewritten(text: str, encoded: bytes, leads: bytes) -> str | None:
    """The text with each distinct run of foreign letters replaced: a fifth of the cost of a pass over its lines. None
    if that is not enough: too many runs, one within another, or a rule that looks beyond a run. Marks combine with a
    Latin letter before them, and a joiner is dropped only if its line has letters of a script that uses joiners."""
    if len(leads.translate(None, _COMPATIBILITY)) < len(leads) or any(joiner in text for joiner in _JOINERS):
        return None
    runs = set(encoded.translate(_WITHOUT_ASCII).split())
    if len(runs) > _MOST_RUNS:
        return None
    together = b" ".join(runs)
    for run in runs:
        old = run.decode()
        new = _rewritten_line(old)
        if new != old:
            if together.count(run) > 1:
                return None
            text = text.replace(old, new)
    return text


@lru_cache(maxsize=4096)  # titles, headings and texts of links occur in several fields, and on several pages
def _rewritten_line(line: str) -> str:
    leads = special_bytes(line)
    return _rewritten(line, leads) if leads else line


def special_bytes(text: str) -> bytes:
    """First bytes of the characters, in UTF-8, that are neither Latin nor punctuation: empty for most pages of the
    West, and a statistic of scripts for the others."""
    return text.encode("utf-8", "replace").translate(None, _PLAIN)


def readable(token: str) -> str:
    """A token of the index as people write it: signs for which letters stand in are put back."""
    return token if token.isascii() else token.translate(_READABLE)


def is_gram(token: str) -> bool:
    """Whether a token is an n-gram of a script without blanks: no word, so that its prefix and similar tokens mean
    nothing."""
    return bool(token) and not token.isascii() and bool(re.match(_CJK, token) or _ASIAN.match(token))


def normalised(text: str) -> str:
    """Every rule of this module but n-grams: one form for letters that are written in several ways."""
    text = text.replace(_DOTTED_I, "I")
    leads = special_bytes(text)
    return _folded(text, leads) if leads else text


def _rewritten(text: str, leads: bytes) -> str:
    text = _folded(text, leads)
    kinds = set(leads)
    if kinds & _CJK_LEADS:
        text = re.sub(_CJK, _character_pairs, text)
    if kinds & _ASIAN_LEADS:
        text = _ASIAN.sub(_cluster_pairs, text)
    return text


def _folded(text: str, leads: bytes) -> str:
    kinds = set(leads)
    if kinds.intersection(_COMPATIBILITY) and not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    for lead, table in _TABLES:
        if kinds & lead:
            for old, new in table.items():
                if old in text:
                    text = text.replace(old, new)
    if kinds & _MARKED_LEADS:
        text = _MARKS.sub("", text)
    if kinds & _DIGIT_LEADS:
        text = _DIGITS.sub(_digits, text)
    return text


def _digits(match: re.Match[str]) -> str:
    return "".join(str(unicodedata.digit(character)) for character in match.group())


def _character_pairs(match: re.Match[str]) -> str:
    run = match.group()
    pairs = " ".join(map(add, run, run[1:]))
    return f" {pairs} {run[-1]} "


def _cluster_pairs(match: re.Match[str]) -> str:
    clusters = clusters_of(match.group())
    pairs = " ".join(map(add, clusters, clusters[1:]))
    return f" {pairs} {clusters[-1]} "


def clusters_of(run: str) -> list[str]:
    """กุ้งสด → กุ้, ง, ส, ด."""
    return _CLUSTER.findall(run)


def _leads(*spans: tuple[int, int]) -> frozenset[int]:
    """First bytes of UTF-8 of all characters in the spans."""
    return frozenset(
        chr(code).encode("utf-8", "replace")[0] for low, high in spans for code in (*range(low, high, 64), high)
    )


_MARKED_LEADS = _leads((0x300, 0x36F), (0x591, 0x6ED))
_ARABIC_LEADS = _leads((0x600, 0x6FF), (0xFB50, 0xFEFF))
_INDIC_LEADS = _leads((0x900, 0x109F), (0x1780, 0x17FF))
_DIGIT_LEADS = _ARABIC_LEADS | _INDIC_LEADS
_CJK_LEADS = _leads((0x2E80, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0x1100, 0x11FF)) | {0xEF, 0xF0}
_ASIAN_LEADS = _leads((0xE00, 0xEFF), (0x1000, 0x109F), (0x1780, 0x17FF))
_TABLES = (
    (_INDIC_LEADS | _ARABIC_LEADS, dict.fromkeys(_INVISIBLE, "")),
    (_INDIC_LEADS, dict.fromkeys(_NUKTAS, "") | _STAND_INS),
    (_ARABIC_LEADS, _ARABIC),
    (_leads((0x590, 0x5FF)), _HEBREW),
    (_leads((0x370, 0x3FF), (0x1F00, 0x1FFF)), _GREEK),
    (_leads((0x400, 0x4FF)), _CYRILLIC),
)
