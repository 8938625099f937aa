"""Quadloom weaves the web into a graph you can query.

::

    import quadloom

    quadloom.transform(body, url="https://example.org/")   # pure: bytes in, quads, links, text and findings out
    quadloom.inspect("https://example.org/event/1")        # one page, fetched politely, nothing stored
    with quadloom.open("data/") as warehouse:
        for outcome in warehouse.crawl(["https://example.org/"], max_pages=500): ...
        warehouse.search("opera"), warehouse.sparql("SELECT …")

Names are loaded when first used, so that `import quadloom` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from quadloom.maintenance import former_names

if TYPE_CHECKING:
    from quadloom.crawling.inspect.inspection import inspect as inspect
    from quadloom.documents.transform import transform as transform
    from quadloom.model.version import __version__ as __version__
    from quadloom.warehouse import Warehouse as Warehouse
    from quadloom.warehouse import open_warehouse as open

former_names.install()

__all__ = ["Warehouse", "__version__", "inspect", "open", "transform"]

_PLACES = {
    "__version__": ("quadloom.model.version", "__version__"),
    "inspect": ("quadloom.crawling.inspect.inspection", "inspect"),
    "open": ("quadloom.warehouse", "open_warehouse"),
    "transform": ("quadloom.documents.transform", "transform"),
    "Warehouse": ("quadloom.warehouse", "Warehouse"),
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'quadloom' has no attribute {name!r}")
    module, attribute = _PLACES[name]
    value: object = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
