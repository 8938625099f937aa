"""Modules by the names that they had in 0.2: an import works for one version more, and warns.

Only names that docs/reference/stability.md promised are here. They go with version 0.4.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

FORMER = {
    "quadloom.crawl": "quadloom.crawling.run",
    "quadloom.maintenance.maintenance": "quadloom.maintenance.tasks",
    "quadloom.subscriptions": "quadloom.crawling.subscriptions",
    "quadloom.syntaxes": "quadloom.documents.syntaxes",
}


class FormerNames:
    """A finder for `sys.meta_path`. It is asked first: an empty folder that an update left behind hides nothing."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith("quadloom."):
            return None
        for former, present in FORMER.items():
            if name == former or name.startswith(f"{former}."):
                loader = _Loader(present + name[len(former) :])
                return ModuleSpec(name, loader, is_package=True)  # type: ignore[arg-type]  # its base takes 5 ms to import
        return None


class _Loader:
    def __init__(self, present: str) -> None:
        self._present = present

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._present)
        self._spec = module.__spec__
        message = f"{spec.name} is now {self._present}; its former name works until version 0.4"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has replaced it by that of the former name


def install() -> None:
    """Find modules by their former names from now on."""
    sys.meta_path.insert(0, FormerNames())  # a finder needs nothing but `find_spec`
