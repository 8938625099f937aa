"""What the route table says of a parameter."""

from __future__ import annotations

from typing import Literal

import msgspec


class Parameter(msgspec.Struct, frozen=True):
    name: str
    description: str
    example: str = ""
    required: bool = False
    many: bool = False
    kind: Literal["string", "integer"] = "string"
    place: Literal["query", "path"] = "query"
    choices: tuple[str, ...] = ()  # all values that it may have, where they can be told
