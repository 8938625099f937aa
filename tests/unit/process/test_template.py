"""The template: children forked from it are as clean as those of a new interpreter, and outlive its death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quadloom.process import template
from quadloom.process.channel import ChannelClosed, ChildProcess, start
from waiting import wait_until

SAMPLE = "unit.process.sample_child"
OF_A_CRAWL = ["quadloom.fetching.process", "quadloom.crawling.workers.worker_main"]


@pytest.fixture(autouse=True)
def own_template() -> Iterator[None]:
    template.close()
    yield
    template.close()


@pytest.fixture
def forked() -> Iterator[Callable[[], ChildProcess]]:
    children: list[ChildProcess] = []

    def starter() -> ChildProcess:
        child = start(SAMPLE, "hello", from_template=True)
        children.append(child)
        assert child.channel.receive(str) == "hello"
        return child

    yield starter
    for child in children:
        child.close()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def ask(child: ChildProcess, word: str) -> str:
    child.channel.send((word, 0))
    return child.channel.receive(str)


def test_children_have_one_parent_that_is_not_the_owner(forked: Callable[[], ChildProcess]) -> None:
    first, second = forked(), forked()
    assert parent_of(first.process.pid) == parent_of(second.process.pid)
    assert parent_of(parent_of(first.process.pid)) == os.getpid()


def test_nothing_of_the_owner_the_template_or_a_sibling_is_open_in_a_child(forked: Callable[[], ChildProcess]) -> None:
    """A forgotten descriptor would keep the channel of a sibling open after its owner's death."""
    read, write = os.pipe()
    os.set_inheritable(read, True)
    template.close()
    try:
        for child in (forked(), forked()):
            child.channel.send(("open", 0))
            names = child.channel.receive(list[str])
            assert names.count("socket") == 1  # its channel
            assert not {"pipe", "anon_inode"} & set(names)
    finally:
        os.close(read)
        os.close(write)


def test_a_child_has_the_folder_and_the_variables_of_its_own_moment(
    forked: Callable[[], ChildProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = forked()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SAMPLE", "later")
    after = forked()
    assert parent_of(before.process.pid) == parent_of(after.process.pid)
    assert (ask(after, "folder"), ask(after, "environment")) == (str(tmp_path), "later")
    assert (ask(before, "folder"), ask(before, "environment")) != (str(tmp_path), "later")


def test_children_outlive_a_killed_template_and_the_next_one_gets_another(
    forked: Callable[[], ChildProcess],
) -> None:
    old = forked()
    dead = parent_of(old.process.pid)
    os.kill(dead, signal.SIGKILL)
    wait_until(lambda: parent_of(old.process.pid) != dead)
    assert old.is_alive
    assert ask(old, "environment") == ""
    new = forked()
    assert parent_of(parent_of(new.process.pid)) == os.getpid()
    old.kill()
    assert old.wait().code == template.UNKNOWN_EXIT
    assert not old.is_alive


def test_an_order_that_dies_with_its_template_is_a_closed_channel(forked: Callable[[], ChildProcess]) -> None:
    """The template is stopped, so the order waits in its socket when it is killed."""
    number = parent_of(forked().process.pid)
    os.kill(number, signal.SIGSTOP)
    lost = start(SAMPLE, "hello", from_template=True)
    os.kill(number, signal.SIGKILL)
    with pytest.raises(ChannelClosed):
        lost.channel.receive(str)
    assert lost.wait().cause == "error"
    lost.close()
    forked()


def test_another_import_path_is_another_template(
    forked: Callable[[], ChildProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = parent_of(forked().process.pid)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert parent_of(forked().process.pid) != first


def test_a_template_ends_with_its_owner() -> None:
    script = (
        "import os, time\n"
        "from pathlib import Path\n"
        "from quadloom.process.channel import start\n"
        f"child = start({SAMPLE!r}, 'hello', from_template=True)\n"
        "child.channel.receive(str)\n"
        "print(Path(f'/proc/{child.process.pid}/stat').read_text().rpartition(')')[2].split()[1], flush=True)\n"
        "time.sleep(600)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment) as owner:
        assert owner.stdout is not None
        number = int(owner.stdout.readline())
        assert Path(f"/proc/{number}").exists()
        owner.kill()
    stat = Path(f"/proc/{number}/stat")
    wait_until(lambda: not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z")


OWNER = f"""
import os, sys, threading
from pathlib import Path
import quadloom.cli.crawling.crawl
from quadloom.process import template
from quadloom.process.channel import start

if "threads" in sys.argv:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
read, write = os.pipe()
template.begin()
child = start({SAMPLE!r}, "hello", from_template=True)
assert child.channel.receive(str) == "hello"
child.channel.send(("open", 0))
names = child.channel.receive(list[str])
parent = Path(f"/proc/{{child.process.pid}}/stat").read_text().rpartition(")")[2].split()[1]
is_fork = Path(f"/proc/{{parent}}/cmdline").read_text() == Path("/proc/self/cmdline").read_text()
child.close()
template.close()
print(is_fork, names.count("socket"), sorted(set(names) & {{"pipe", "anon_inode"}}), Path(f"/proc/{{parent}}").exists())
"""


@pytest.mark.parametrize(("words", "is_fork"), [([], True), (["threads"], False)])
def test_a_command_with_one_thread_is_its_own_template(words: list[str], is_fork: bool) -> None:
    """Its imports are not repeated, nothing that it has open reaches a child, and the template is reaped. With a second
    thread a fork could copy a lock that is held, so a new interpreter is the template."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", OWNER, *words],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout == f"{is_fork} 1 [] False\n"


def test_the_modules_of_a_crawl_start_no_thread_and_open_nothing_when_imported() -> None:
    """What makes a fork of them safe."""
    script = (
        "import importlib, os, sys\n"
        "before = set(os.listdir('/proc/self/fd'))\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "print(len(os.listdir('/proc/self/task')), sorted(set(os.listdir('/proc/self/fd')) - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, *OF_A_CRAWL], capture_output=True, text=True, check=True)
    assert done.stdout == "1 []\n"


def test_the_owner_of_a_crawl_imports_no_parser() -> None:
    """Parsers belong to the workers: an owner that imports them starts later, and for nothing."""
    script = (
        "import sys\n"
        "import quadloom.cli.crawling.crawl, quadloom.crawling.runs\n"
        "print(*sorted({'lxml', 'selectolax', 'quadloom.documents.pipeline', 'quadloom.documents.checks', "
        "'quadloom.crawling.topical', 'pycurl', 'rich', 'quadloom.asking.sparql.service', 'urllib.request'}"
        " & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
