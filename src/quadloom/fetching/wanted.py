"""Which content types are worth reading beyond their headers, for a crawl that looks for data and text.

The list names what can hold neither. Everything else passes, because labels are often wrong: RDF dumps come as
`application/octet-stream`, Turtle as `text/plain`, sitemaps as `application/gzip`; the detect phase looks inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

Wanted = Callable[[str, str], bool]
"""(content type, URL) → whether the body is worth reading."""

_FAMILIES = ("audio/", "video/", "font/", "model/")
_TYPES = frozenset(
    {
        "application/vnd.android.package-archive",
        "application/vnd.microsoft.portable-executable",
        "application/vnd.ms-fontobject",
        "application/x-apple-diskimage",
        "application/x-debian-package",
        "application/x-iso9660-image",
        "application/x-msdownload",
        "application/x-msi",
        "application/x-rpm",
        "application/x-shockwave-flash",
    }
)


def by_default(content_type: str, _href: str) -> bool:
    """False for sound, film, fonts, installers and disk images; the transfer is then cut after the headers."""
    media_type = content_type.partition(";")[0].strip().lower()
    return not media_type.startswith(_FAMILIES) and media_type not in _TYPES


def but_not(skipped: Sequence[str]) -> Wanted:
    """As `by_default`, without the media types that these globs match (`crawl.skip_types`)."""
    globs = [glob.strip().lower() for glob in skipped]
    if not globs:
        return by_default

    def wanted(content_type: str, href: str) -> bool:
        media_type = content_type.partition(";")[0].strip().lower()
        return by_default(content_type, href) and not any(fnmatchcase(media_type, glob) for glob in globs)

    return wanted
