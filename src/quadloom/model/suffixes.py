"""Registered domains by the Public Suffix List.

The list comes with the package `publicsuffixlist`, whose own reader sends ten thousand rules through IDNA one by one:
60 to 90 ms of CPU in every process that starts, and a crawl starts three. Here the file is split as a whole and only
the few rules beyond ASCII are encoded; a test holds the answers against those of the package.
"""

from __future__ import annotations

from publicsuffixlist import PSLFILE


def _read() -> frozenset[str]:
    """All rules, those beyond ASCII in both spellings. The list is in lower case and in normal form C, so that the bare
    Punycode of a label is its IDNA form."""
    with open(PSLFILE, encoding="utf-8") as file:
        lines = [line for line in file.read().split("\n") if line and line[0] != "/"]
    rules = {line.partition(" ")[0] if " " in line else line for line in lines}
    return frozenset(rules.union([".".join(map(_encoded, rule.split("."))) for rule in rules if not rule.isascii()]))


def _encoded(label: str) -> str:
    if label.isascii():
        return label
    mark = "!" if label.startswith("!") else ""
    return f"{mark}xn--{label.removeprefix('!').encode('punycode').decode()}"


_RULES = _read()
_MOST_LABELS = 2 + max(rule.count(".") for rule in _RULES)  # one more: a wildcard's own label


def registered_domain(name: str) -> str | None:
    """The public suffix of a host name and one label more, in lower case; None where there is no such label.

    An unknown last label is a suffix. A rule `*.kobe.jp` makes `kobe.jp` a suffix too, as the list's own tests have it.
    """
    labels = name.removesuffix(".").lower().split(".")
    if "" in labels:
        return None
    public = _public_labels(labels)
    return ".".join(labels[-public - 1 :]) if public < len(labels) else None


def _public_labels(labels: list[str]) -> int:
    """How many labels the public suffix has; the longest rule decides."""
    for length in range(min(len(labels), _MOST_LABELS), 0, -1):
        tail = ".".join(labels[-length:])
        if f"!{tail}" in _RULES:
            return length - 1
        if f"*.{tail}" in _RULES:
            return min(length + 1, len(labels))
        if tail in _RULES:
            return length
    return 1
