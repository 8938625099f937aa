"""Quadloom weaves the web into a graph you can query.

`quadloom.transform(body, url=…)` is the pure call that everything is built on. Names are loaded when first used, so
`import quadloom` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadloom.phases.transform import transform as transform

__version__ = "0.1.0"

_LAZY = {"transform": "quadloom.phases.transform"}

__all__ = ["__version__", "transform"]


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'quadloom' has no attribute {name!r}")
    value: object = getattr(import_module(module), name)
    globals()[name] = value
    return value
