"""Native threads share few arenas of malloc, so that what they free can be used again or given back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Sixteen threads allocate at the same time, so each wants an arena; malloc_info lists the arenas there are.
_COUNT = """
import ctypes, sys, threading
from quadloom.process.limits import return_freed_memory
if sys.argv[2] == "limited":
    return_freed_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
meeting = threading.Barrier(17)
def allocate():
    meeting.wait()
    held = libc.malloc(40_000)
    meeting.wait()
threads = [threading.Thread(target=allocate) for _ in range(16)]
for thread in threads:
    thread.start()
meeting.wait()
meeting.wait()
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


def arenas(folder: Path, how: str) -> int:
    listing = folder / f"{how}.xml"
    subprocess.run([sys.executable, "-c", _COUNT, str(listing), how], check=True, timeout=60)
    return listing.read_text().count("<heap nr=")


@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
def test_threads_share_two_arenas(tmp_path: Path) -> None:
    assert arenas(tmp_path, "free") > 2, "otherwise this test shows nothing"
    assert arenas(tmp_path, "limited") <= 2
