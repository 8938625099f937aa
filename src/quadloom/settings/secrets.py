"""Values that must not stand in a settings file: each is the first line of a file, or an environment variable."""

from __future__ import annotations

import os
from pathlib import Path

from quadloom.errors import SettingsError


def secret(setting: str, place: str) -> str:
    """The secret at `place`: `$NAME` is an environment variable, anything else is a file, of which the first line
    counts. Raises `SettingsError`, which names the setting and the place, never the secret."""
    if place.startswith("$"):
        value = os.environ.get(place[1:], "")
        if not value:
            raise SettingsError(
                f"{setting}: the environment variable {place[1:]} is not set", hint="set it, or name a file"
            )
        return value
    lines = secret_lines(setting, place)
    if not lines:
        raise SettingsError(f"{setting}: the file {place} is empty", hint="write the value into its first line")
    return lines[0]


def secret_lines(setting: str, place: str) -> list[str]:
    """The lines of a file of secrets, without empty ones and comments (`#`)."""
    try:
        text = Path(place).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError(
            f"{setting}: cannot read {place}: {reason}", hint="name a readable text file, or $NAME for a variable"
        ) from None
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
