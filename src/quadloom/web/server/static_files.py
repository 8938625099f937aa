"""Styles and scripts, read once at the start. Each has its digest in its address, so browsers may keep it for ever.

`vendor/` is made by `web-assets/build.mjs`; without it every page still works, as plain HTML.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


class StaticFile(msgspec.Struct, frozen=True):
    body: bytes
    media_type: str
    digest: str


class StaticFiles:
    """Only what was there at the start can be asked for: no path of a request ever reaches the disk."""

    def __init__(self, files: dict[str, StaticFile], names: dict[str, str]) -> None:
        self.files = files
        self._names = names  # `htmx.js` → `vendor/htmx-1a2b3c4d.js`

    @classmethod
    def load(cls, folder: Path) -> StaticFiles:
        files = {}
        for path in sorted(folder.rglob("*")):
            if path.suffix in _TYPES and path.is_file():
                body = path.read_bytes()
                files[path.relative_to(folder).as_posix()] = StaticFile(body, _TYPES[path.suffix], _digest(body))
        manifest = folder / "vendor" / "manifest.json"
        names = msgspec.json.decode(manifest.read_bytes(), type=dict[str, str]) if manifest.is_file() else {}
        return cls(files, {name: f"vendor/{place}" for name, place in names.items() if f"vendor/{place}" in files})

    def has(self, name: str) -> bool:
        return name in self._names or name in self.files

    def address(self, name: str) -> str:
        place = self._names.get(name, name)
        return f"/static/{place}?v={self.files[place].digest}"


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:12]
