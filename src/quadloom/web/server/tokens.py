"""Tokens that permit changes of the crawl. Only their SHA-256 is stored: a token has 256 random bits and cannot be
guessed, so a plain hash is enough. Comparing two takes the same time wherever they differ."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from quadloom.errors import SettingsError

FILE = "web-tokens"
_PREFIX = "sha256:"


class Tokens:
    """The hashes in one file, a line each: `sha256:<hex> label`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._hashes = _read(path)

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def accepts(self, token: str) -> bool:
        given = digest(token)
        accepted = False
        for stored in self._hashes:  # all of them: the time must not show which one matched
            accepted |= hmac.compare_digest(given, stored)
        return accepted

    def make(self, label: str = "") -> str:
        """A new token, which is shown only once. Its hash is added to the file, which only its owner may read."""
        token = secrets.token_urlsafe(32)
        line = f"{_PREFIX}{digest(token)} {label}".rstrip() + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(file, "w", encoding="ascii", errors="replace") as stream:
                stream.write(line)
        except OSError as error:
            raise SettingsError(
                f"cannot write {self.path}: {error.strerror}", hint="set web.token_file to a file you may write"
            ) from error
        self._hashes = (*self._hashes, digest(token))
        return token


def digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _read(path: Path) -> tuple[str, ...]:
    try:
        lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise SettingsError(
            f"cannot read {path}: {error.strerror}", hint="set web.token_file to a file you may read"
        ) from error
    hashes = []
    for number, line in enumerate(lines, 1):
        word = line.strip().partition(" ")[0]
        if not word or word.startswith("#"):
            continue
        if not word.startswith(_PREFIX) or len(word) != len(_PREFIX) + 64:
            raise SettingsError(
                f"{path} line {number} is not a hashed token",
                hint="tokens are stored hashed: `quadloom serve --new-token` makes a token and adds its line",
            )
        hashes.append(word.removeprefix(_PREFIX).lower())
    return tuple(hashes)
