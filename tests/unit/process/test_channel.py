"""Children of the crawl and Ctrl-C, which a terminal sends to all of them at once."""

from __future__ import annotations

import os
import signal

import pytest

from quadloom.process.channel import start
from quadloom.settings import Settings


@pytest.mark.parametrize("module", ["quadloom.workers.worker_main", "quadloom.fetching.process"])
def test_an_interrupt_at_birth_does_not_end_a_child(module: str) -> None:
    """The interpreter has just begun: nothing of the child's own has run yet that could ignore the signal."""
    child = start(module, Settings())
    os.kill(child.process.pid, signal.SIGINT)
    child.channel.close()
    assert child.process.wait(timeout=60) == 0
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
