"""What every child process keeps to: deadlines, memory, frames, Ctrl-C, and the death of either side."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from quadloom.process.channel import Channel, ChannelClosed, ChildProcess, start
from quadloom.settings import Settings
from waiting import wait_until

SAMPLE = "unit.process.sample_child"
Starter = Callable[..., ChildProcess]


@pytest.fixture(params=[False, True], ids=["new interpreter", "fork"])
def forked(request: pytest.FixtureRequest) -> bool:
    """Both ways to start a child keep to the same contract."""
    return bool(request.param)


@pytest.fixture
def started(forked: bool) -> Iterator[Starter]:
    children: list[ChildProcess] = []

    def starter(**options: object) -> ChildProcess:
        child = start(SAMPLE, "hello", from_template=forked, **options)  # type: ignore[arg-type]
        children.append(child)
        assert child.channel.receive(str) == "hello"
        return child

    yield starter
    for child in children:
        child.close()


def ask(child: ChildProcess, word: str, size: int = 0) -> bytes:
    child.channel.send((word, size))
    return child.channel.receive(bytes)


def assert_ends(child: ChildProcess, word: str, size: int = 0) -> str:
    """The cause, after a request that is never answered."""
    child.channel.send((word, size))
    with pytest.raises(ChannelClosed):
        child.channel.receive_bytes()
    return child.wait().cause


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("module", ["quadloom.crawling.workers.worker_main", "quadloom.fetching.process"])
def test_an_interrupt_at_birth_does_not_end_a_child(module: str, forked: bool) -> None:
    """The interpreter has just begun: nothing of the child's own has run yet that could ignore the signal."""
    child = start(module, Settings(), from_template=forked)
    os.kill(child.process.pid, signal.SIGINT)
    child.channel.close()
    assert child.process.wait(timeout=60) == 0
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_an_interrupt_of_the_whole_group_is_for_the_owner_alone(forked: bool) -> None:
    """As a terminal sends it: to the owner and its child at once, in the first moment of the child."""
    script = (
        "import os, signal\n"
        "from quadloom.process.channel import start\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's job in the background ignores it
        f"child = start({SAMPLE!r}, 'hello', from_template={forked})\n"
        "try:\n"
        "    os.killpg(0, signal.SIGINT)\n"
        "    signal.pause()\n"
        "except KeyboardInterrupt:\n"
        "    print(child.channel.receive(str), child.is_alive)\n"
        "child.close()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, env=environment, start_new_session=True, check=True
    )
    assert done.stdout == b"hello True\n"


def test_an_interrupt_at_birth_or_later_leaves_a_child_at_work(forked: bool) -> None:
    child = start(SAMPLE, "hello", from_template=forked)
    os.kill(child.process.pid, signal.SIGINT)
    try:
        assert child.channel.receive(str) == "hello"
        os.kill(child.process.pid, signal.SIGINT)
        assert ask(child, "echo", 3) == b"xxx"
    finally:
        child.close()


def test_a_deadline_kills_and_is_named(started: Starter) -> None:
    child = started()
    child.kill_after(0.2)
    assert assert_ends(child, "sleep", 60) == "deadline"
    assert child.timed_out
    assert child.wait().describe(0.2, 0) == "took longer than 0.2 s"


def test_a_deadline_holds_while_nobody_listens_and_can_be_taken_back(started: Starter) -> None:
    first, second = started(), started()
    first.kill_after(0.1)
    first.channel.send(("sleep", 60))
    second.kill_after(0.1)
    second.cancel_deadline()
    first.process.wait(timeout=60)
    assert first.timed_out
    assert ask(second, "echo", 1) == b"x"
    second.kill_after(60.0)
    second.kill_after(0.0)
    assert second.is_alive


@pytest.mark.parametrize("word", ["alarm", "spin"])
def test_a_childs_own_alarm_is_a_deadline_too(started: Starter, word: str) -> None:
    assert assert_ends(started(), word, 1) == "deadline"


def test_a_memory_cap_ends_the_child_and_is_named(started: Starter) -> None:
    child = started(address_space=400 << 20)
    child.channel.send(("allocate", 1 << 20))
    assert child.channel.receive(int) == 1 << 20
    assert assert_ends(child, "allocate", 400 << 20) == "memory"
    assert child.wait().describe(1.0, 400 << 20) == "used more than 400 MiB of memory"


def test_without_a_cap_there_is_none(started: Starter) -> None:
    child = started()
    child.channel.send(("allocate", 400 << 20))
    assert child.channel.receive(int) == 400 << 20


def test_a_child_that_dies_within_a_frame_raises(started: Starter) -> None:
    child = started()
    assert assert_ends(child, "torn") == "error"
    assert child.wait().describe(1.0, 0) == "ended with exit code 3"


def test_a_crash_is_named_and_sending_to_the_dead_raises(started: Starter) -> None:
    child = started()
    assert assert_ends(child, "crash") == "signal"
    assert child.wait().describe(1.0, 0) == "crashed with signal 11"
    with pytest.raises(ChannelClosed):
        child.channel.send(("echo", 1))
    assert not child.is_alive
    child.kill()  # as often as one likes


@pytest.mark.parametrize("busy", [False, True], ids=["waiting", "busy"])
def test_a_child_ends_with_its_owner(busy: bool, forked: bool) -> None:
    """The owner is another process, killed without warning; its child may be in the middle of something."""
    script = (
        "import sys, time\n"
        "from quadloom.process.channel import start\n"
        f"child = start({SAMPLE!r}, 'hello', from_template={forked})\n"
        "child.channel.receive(str)\n"
        f"child.channel.send(('sleep', 600)) if {busy} else None\n"
        "print(child.process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert is_running(pid)
        owner.kill()
    wait_until(lambda: not is_running(pid), "the child outlived its owner by 60 s")


def test_large_frames_pass_both_ways(started: Starter, forked: bool) -> None:
    child = started()
    assert len(ask(child, "echo", 50 << 20)) == 50 << 20
    child.channel.send(("echo", 1))
    assert child.channel.receive(bytes) == b"x"
    large = start(SAMPLE, "y" * (20 << 20), from_template=forked)
    try:
        assert len(large.channel.receive(str)) == 20 << 20
    finally:
        large.close()


def test_one_thread_sends_while_another_receives(started: Starter) -> None:
    child = started()
    sizes = [1, 1 << 20, 7, 3 << 20, 0] * 20
    sender = threading.Thread(target=lambda: [child.channel.send(("echo", size)) for size in sizes])
    sender.start()
    assert [len(child.channel.receive(bytes)) for _ in sizes] == sizes
    sender.join()


def test_many_threads_start_and_kill_children_at_once(forked: bool) -> None:
    found: list[int] = []

    def use(number: int) -> None:
        child = start(SAMPLE, "hello", from_template=forked)
        child.channel.receive(str)
        found.append(len(ask(child, "echo", number)))
        child.close()

    threads = [threading.Thread(target=use, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(6))


def test_variables_reach_the_child_and_its_use_of_the_machine_is_known(started: Starter) -> None:
    child = started(environment={"SAMPLE": "value"})
    child.channel.send(("environment", 0))
    assert child.channel.receive(str) == "value"
    assert child.resident_bytes() > 1 << 20
    while not child.cpu_seconds():
        ask(child, "echo", 10 << 20)
    child.kill()
    assert (child.resident_bytes(), child.cpu_seconds()) == (0, 0.0)


def test_a_child_that_ends_before_its_first_message_is_noticed_by_its_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    send = Channel.send

    def late(channel: Channel, message: object) -> None:
        gone = select.poll()
        gone.register(channel.fileno(), select.POLLHUP)
        assert gone.poll(60_000), "the child has ended"
        send(channel, message)

    monkeypatch.setattr(Channel, "send", late)
    child = start("no.such.module", "settings", stderr=subprocess.DEVNULL)
    with pytest.raises(ChannelClosed):
        child.channel.receive(str)
    assert child.wait().cause == "error"
    child.close()
