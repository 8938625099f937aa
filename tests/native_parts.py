"""The parts in C, for tests that need them."""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

import pytest


def native_part(name: str) -> ModuleType:
    """`quadloom.documents.native.NAME`. Skips only if `QUADLOOM_WITHOUT_NATIVE` switches it off: a build that failed is
    a defect, which must not go unnoticed."""
    if os.environ.get("QUADLOOM_WITHOUT_NATIVE"):
        pytest.skip("QUADLOOM_WITHOUT_NATIVE is set", allow_module_level=True)
    return import_module(f"quadloom.documents.native.{name}")
