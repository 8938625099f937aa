"""The order of the tests is random, by a seed that is printed and can be given again (`--seed 1234`; 0 = as written).

Files stay in the order of their folders, because those that take long come first and a run ends sooner so; within a
folder their order is random, and so is that of the tests of a file. Tests of one file stay together, which fixtures
of a module and pytest-xdist's `--dist loadfile` need. Every xdist worker gets the seed of the controller.
"""

from __future__ import annotations

import gc
import os
import zlib
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Several processes of tests share the cores: threads of one matrix would wait for each other, and spin. The processes
# that tests start choose for themselves.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy  # noqa: F401  # reads it

del os.environ["OPENBLAS_NUM_THREADS"]

SEEDS = 1_000_000

# Thousands of tests and their modules live until the end: looking through them again and again takes a quarter of the
# time of collection, and a part of every test's. `pytest_collection_finish` switches the collector on again.
gc.disable()

# No property is judged by a busy machine's clock.
settings.register_profile("events", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("events")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=None, help="seed of the order of the tests; 0 = as they are written")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.seed is None:
        of_controller = getattr(config, "workerinput", {}).get("seed")
        config.option.seed = of_controller or SystemRandom().randrange(1, SEEDS)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Of pytest-xdist, in the controller, for each worker."""
    node.workerinput["seed"] = node.config.option.seed


def pytest_report_header(config: pytest.Config) -> str:
    return _repeat(config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The header is not shown with `-q`, so that the seed is repeated where it is needed."""
    terminalreporter.write_line(_repeat(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.seed:
        items.sort(key=Order(config.option.seed, config.rootpath))


def pytest_collection_finish() -> None:
    """What was collected is set aside, so that the collector looks only at what tests make."""
    gc.collect()
    gc.freeze()
    gc.enable()


class Order:
    """The key of a test. It depends on the seed and the test's own name only, so a selection keeps its order."""

    def __init__(self, seed: int, root: Path) -> None:
        self._seed = seed
        self._root = root

    def __call__(self, item: pytest.Item) -> tuple[str, float, str, float]:
        file = item.path.relative_to(self._root)
        folder = "/".join(file.parts[:2])
        return folder, self._random(str(file)), str(file), self._random(item.nodeid)

    def _random(self, name: str) -> float:
        return Random(zlib.crc32(f"{self._seed} {name}".encode())).random()


def _repeat(config: pytest.Config) -> str:
    seed = config.option.seed
    return f"order of tests: --seed {seed}" if seed else "order of tests: as written"


def pytest_sessionfinish() -> None:
    """Libraries complain at the end about what the collector may not touch."""
    gc.unfreeze()
