"""Commands of the user: real programs, real limits, and nothing left of them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from quadloom.crawling.workers.services import command
from quadloom.crawling.workers.services.balance import CallOutcome
from quadloom.crawling.workers.services.command import kill_all, run_command
from quadloom.model.service import ServiceRequest
from quadloom.settings import ServiceSettings
from waiting import wait_until

REQUEST = ServiceRequest(0, "application/pdf", "http://site.example/paper.pdf")


def python(program: str, **settings: float | int | str) -> ServiceSettings:
    return ServiceSettings(command=[sys.executable, "-S", "-c", program], **{"timeout": 60.0, **settings})  # type: ignore[arg-type]


def output(outcome: CallOutcome) -> bytes:
    assert outcome.reply is not None
    assert outcome.reply.status == 200, outcome.reason
    return outcome.reply.body


def test_the_body_is_the_input_and_the_output_is_the_answer() -> None:
    service = ServiceSettings(command=["cat"], writes="text/turtle")
    outcome = run_command(service, REQUEST, b"<a> <b> <c> .")
    assert output(outcome) == b"<a> <b> <c> ."
    assert outcome.reply is not None
    assert outcome.reply.content_type == "text/turtle"


def test_the_body_can_be_a_file_and_the_page_is_known() -> None:
    show = "import os, sys; print(open(sys.argv[1]).read(), os.environ['QUADLOOM_URL'], os.environ['QUADLOOM_TYPE'])"
    service = ServiceSettings(command=[sys.executable, "-S", "-c", show, "{file}"], timeout=60.0)
    assert output(run_command(service, REQUEST, b"%PDF")) == b"%PDF http://site.example/paper.pdf application/pdf\n"


def test_no_shell_sees_the_arguments() -> None:
    service = ServiceSettings(command=["echo", "$HOME;", "`id`", "*", "{file}"])
    text = output(run_command(service, REQUEST, b"")).decode()
    assert text.startswith("$HOME; `id` * /")


def test_it_runs_in_an_empty_directory_without_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "swordfish")
    outcome = run_command(python("import os; print(sorted(os.environ), os.listdir('.'), os.getcwd())"), REQUEST, b"x")
    text = output(outcome).decode()
    assert "SECRET_KEY" not in text
    assert "'body'" in text
    assert not Path(text.split()[-1]).exists(), "its directory is removed"


def test_what_fails_is_a_verdict_on_the_page() -> None:
    outcome = run_command(python("import sys; sys.exit('not a paper')"), REQUEST, b"")
    assert outcome.healthy
    assert outcome.reply is not None
    assert outcome.reply.status == 422
    assert "exit code 1" in outcome.reason
    assert "not a paper" in outcome.reason


def test_a_program_that_is_not_there_is_absent() -> None:
    outcome = run_command(ServiceSettings(command=["no-such-program"]), REQUEST, b"")
    assert outcome.reply is None
    assert outcome.absent


def test_memory_is_limited() -> None:
    outcome = run_command(python("print(len(bytearray(600 << 20)))", memory=200 << 20), REQUEST, b"")
    assert "MemoryError" in outcome.reason


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="needs prlimit of util-linux")
def test_limits_hold_from_the_first_moment() -> None:
    """They were set after the start: on a busy machine a program had its memory before its limit."""
    service = ServiceSettings(command=["sh", "-c", "ulimit -v"], memory=200 << 20)
    seen = {outcome.reply.body for _ in range(20) if (outcome := run_command(service, REQUEST, b"")).reply is not None}
    assert seen == {b"%d\n" % (200 << 10)}


def test_output_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "MAX_ANSWER_BYTES", 1 << 20)
    outcome = run_command(
        ServiceSettings(command=["dd", "if=/dev/zero", "bs=65536", "count=1000"], timeout=60.0), REQUEST, b""
    )
    assert outcome.reply is not None
    assert outcome.reply.status == 422
    assert "more than 1048576 bytes" in outcome.reason


def test_time_is_limited_and_children_end_too(tmp_path: Path) -> None:
    """It starts a child that would outlive it, and sleeps."""
    note = tmp_path / "pids"
    service = ServiceSettings(command=["sh", "-c", f"sleep 1000 & echo $$ $! > {note}; wait"], timeout=3.0)
    outcome = run_command(service, REQUEST, b"")
    assert "longer than 3 s" in outcome.reason
    for pid in note.read_text().split():
        _assert_ended(int(pid))


def test_all_can_be_ended_at_once(tmp_path: Path) -> None:
    import threading

    outcomes: list[CallOutcome] = []
    thread = threading.Thread(
        target=lambda: outcomes.append(run_command(python("import time; time.sleep(1000)"), REQUEST, b""))
    )
    thread.start()
    wait_until(lambda: command._running)
    kill_all()
    thread.join(60)
    assert "signal 9" in outcomes[0].reason
    assert not command._running


def _assert_ended(pid: int) -> None:
    """Gone, or a zombie that waits for the init process."""

    def ended() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    wait_until(ended, f"process {pid} still runs")
