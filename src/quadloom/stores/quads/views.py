"""Views of an Oxigraph store that another process writes, shared by the threads of this one.

Opening a view reads the log of the store, 12 µs for each quad in it: up to .2 s of CPU. A server has a view for each
thread that answers, and all of them want a new one after every commit. The engine's views may be used by several
threads, so those that would see the same state are one.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from weakref import WeakValueDictionary

import pyoxigraph as ox

Mark = tuple[tuple[str, int, int, int], ...]  # name, number, size and time of files
_SETTLED = 0.05  # seconds without a write, after which the time of a file tells one state from the next


class SharedView:
    """A store as it was at its mark; closed with the last reference."""

    def __init__(self, store: ox.Store, mark: Mark) -> None:
        self.store = store
        self.mark = mark


_lock = threading.Lock()
_views: WeakValueDictionary[Path, SharedView] = WeakValueDictionary()  # the newest of each store


def view_of(path: Path, open_view: Callable[[Path], ox.Store]) -> SharedView:
    """A view of what is committed now. `open_view` opens one, if no thread has the same already."""
    with _lock:
        mark = _mark(path)
        known = _views.get(path)
        if known is not None and mark and known.mark == mark:
            return known
        view = _views[path] = SharedView(open_view(path), mark)
        return view


def _mark(path: Path) -> Mark:
    """What changes with every write: the log and the list of files. Empty if a write has just been made, since
    another one could follow within the same tick of the file system's clock."""
    found: list[tuple[str, int, int, int]] = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name.endswith(".log") or entry.name.startswith(("MANIFEST", "CURRENT")):
                    status = entry.stat()
                    found.append((entry.name, status.st_ino, status.st_size, status.st_mtime_ns))
    except OSError:
        return ()
    newest = max((at for *_, at in found), default=0)
    return tuple(sorted(found)) if time.time_ns() - newest > _SETTLED * 1e9 else ()
