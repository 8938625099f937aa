"""What a terminal is shown: readable at 80 columns, and never a character that steers it."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from quadloom.asking.findings import LocatedDefect
from quadloom.cli.asking import sparql, stats, status, table
from quadloom.cli.asking.search import _print_hits
from quadloom.cli.progress import Progress
from quadloom.cli.session import Session, harmless
from quadloom.crawling.run.balance import balance_of
from quadloom.crawling.run.report import CrawlReport, Meter
from quadloom.model.finding import Finding
from quadloom.model.wire import Value
from quadloom.stores.protocols.text import Hit, SearchAnswer

ATTACK = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def session(self, monkeypatch: pytest.MonkeyPatch) -> Session:
        """A session whose data goes here, 80 columns wide."""
        monkeypatch.setattr("sys.stdout", self)
        session = Session(color=False)
        session.out = Console(file=self, width=80, force_terminal=False, highlight=False)
        return session


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


def test_control_characters_become_visible() -> None:
    assert harmless(ATTACK) == "\ufffd]0;owned\ufffd\ufffd[2J\ufffd31m\ufffdgnp.exe"
    assert harmless("tab\tand\nline, naïve 日本 ☃") == "tab\tand\nline, naïve 日本 ☃"


def test_nothing_that_pages_say_steers_the_terminal(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    session = terminal.session(monkeypatch)
    session.write(ATTACK)
    session.table(["name"], [(ATTACK,), ("[bold]not markup[/bold]",)])
    session.emit({"title": ATTACK})
    assert json.loads(terminal.getvalue().splitlines()[-1]) == {"title": ATTACK}
    types = (f"http://t.example/{ATTACK}",)
    hit = Hit(id="http://e.example/" + ATTACK, score=1.0, title=ATTACK, snippet=f"a \x02word\x03 {ATTACK}", types=types)
    _print_hits(session, SearchAnswer(hits=(hit,), total=1, seconds=0.001))
    shown = terminal.getvalue()
    assert not set(shown) & {"\x1b", "\x07", "\x9b", "\x02", "\u202e"}
    assert "[bold]not markup[/bold]" in shown


def test_a_file_gets_the_bytes_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    Session(color=False).write(ATTACK)
    assert stream.getvalue() == ATTACK + "\n"


def test_lines_for_people_and_cells_are_harmless_in_a_pipe_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """`quadloom search x | head` ends on a terminal."""
    stream = io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    session = Session(color=False)
    session.table(["name"], [(ATTACK + "\r",)])
    session.print(ATTACK)
    assert not set(stream.getvalue()) & {"\x1b", "\x07", "\x9b", "\r", "\u202e"}


def test_tables_in_a_pipe_begin_with_the_names_of_their_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    Session().table(["host", "pages", "next in s"], [("a.example", 12_345, 0.5), ("b.example", "", 2.0)])
    assert stream.getvalue() == "host\tpages\tnext in s\na.example\t12345\t0.50\nb.example\t\t2.00\n"


def test_graphs_on_a_terminal_are_harmless_wherever_a_chunk_ends() -> None:
    turtle = f'<http://e.example/> <http://e.example/p> "{ATTACK} naïve 日本"@en .\r\n'.encode()
    for size in range(1, len(turtle)):
        chunks = [turtle[at : at + size] for at in range(0, len(turtle), size)]
        shown = b"".join(sparql._harmless_chunks(chunks)).decode()
        assert shown == harmless(turtle.decode().replace("\r\n", "\n"))
    assert "naïve 日本" in shown


def test_addresses_of_hits_stay_in_one_piece(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    address = "https://example.org/" + "long/" * 30
    answer = SearchAnswer(hits=(Hit(id=address, score=1.0, title="A title"),), total=1, seconds=0.001)
    _print_hits(terminal.session(monkeypatch), answer)
    assert any(address in line for line in terminal.getvalue().splitlines())


def test_tables_keep_numbers_whole_and_hide_empty_columns(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    host = "a-rather-long-host-name.of-some-institute.example.org:8080"
    terminal.session(monkeypatch).table(["host", "pages", "blocked", "next in s"], [(host, 123_456, "", 0.5)])
    header, row, *_ = terminal.getvalue().splitlines()
    assert "blocked" not in header
    assert "123,456" in row and "0.50" in row and host in row


def test_the_status_screen_is_for_people(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    summary: dict[str, Value] = {
        "warehouse": "data", "state": "stopped", "trapped": 3,
        "numbers": {"pages_visited": 30, "statements_by_pages": 1_234_567},
        "frontier": {"waiting": 12_000, "dead": 0, "total": 12_000}, "outcomes": {"new": 10, "unchanged": 20},
        "kinds": {"html": 30}, "statuses": {"200": 30},
        "sizes": {"quads": 3 * 2**30, "archive": 5 * 2**20, "text": 2048},
    }  # fmt: skip
    status._print_screen(terminal.session(monkeypatch), summary)
    shown = terminal.getvalue()
    for words in (
        "1,234,567",
        "3.0 GiB",
        "5.0 MiB",
        "to be read again later",
        "unchanged 20, new 10",
        "refused as traps",
    ):
        assert words in shown
    assert "given up" not in shown and "total" not in shown


def test_the_phases_fit_into_80_columns(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = dict.fromkeys(Meter.PHASES, 12.5)
    report = CrawlReport(pages=1_234_567, seconds=3600.0, phases=dict.fromkeys(Meter.PHASES, 1_234_567), cpu=cpu)
    status._print_balance(terminal.session(monkeypatch), balance_of(report))
    shown = terminal.getvalue()
    assert "transform" in shown and "ratio" in shown and "…" not in shown
    assert all(len(line.rstrip()) <= 80 for line in shown.splitlines())


def test_words_between_colons_are_no_pictures(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", terminal)
    Session(color=False).table(["title"], [("a :key: and a :bug:",)])
    assert "a :key: and a :bug:" in terminal.getvalue()


def test_a_signal_may_come_while_a_message_is_made(capfd: pytest.CaptureFixture[str]) -> None:
    Session(color=False).say_at_once("saving")
    Session(color=False, quiet=True).say_at_once("saving")
    assert capfd.readouterr().err == "saving\n"


def test_a_table_fits_and_shortens_addresses_in_their_middle(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "https://www.linden-events.example/events/5-choir-workshop-at-the-harbour-graz"
    row = (address, "schema-missing-recommended", 12_345, "Event has no image, which is recommended for Event")
    terminal.session(monkeypatch).table(["page", "code", "findings", "finding"], [row, row])
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "schema-missing-recommended  " in lines[1] and "12,345" in lines[1], "neither codes nor numbers are broken"
    assert lines[1].startswith("www.") and "…" in lines[1].split()[0] and lines[1].split()[0].endswith("graz")
    assert "Event has no image," in " ".join(" ".join(line.split()) for line in lines)


def test_progress_shows_rate_and_remaining_time_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.0, 0.1, 2.0, 4.0])
    monkeypatch.setattr("sys.stderr", Terminal())
    progress = Progress(Session(color=False), "export", total=400, clock=lambda: next(clock))
    with progress:
        progress.show(1)  # too early
        progress.show(100)
        progress.show(200)
    shown = progress.line(200).plain
    assert shown == "export  ━━━━━━━───────  200 of 400 pages · 50/s · 0:04 left"


def test_progress_is_silent_in_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    clock = iter([0.0, 0.0, 5.0, 9.0])
    with Progress(Session(color=False), "export", clock=lambda: next(clock)) as progress:
        progress.show(100)
        progress.show(200)
    assert capfd.readouterr() == ("", "")


def test_a_wide_table_of_things_shows_the_columns_that_can_be_read(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["name", "start date", "location", "price", "performer", "organizer of the event"]
    row = ["Chamber Concert at the Threshold, Tallinn", "2026-01-15 17:30", "Bridge Hall", "8.00", "Ada", "Friends"]
    table._print_columns(terminal.session(monkeypatch), names, [row])
    shown = terminal.getvalue()
    assert max(map(len, shown.splitlines())) <= 80
    assert "2026-01-15 17:30" in shown and "Bridge Hall" in shown and "organizer" not in shown
    assert "also: organizer of the event" in " ".join(capsys.readouterr().err.split())


def test_findings_of_a_code_are_listed_by_page_and_line(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    finding = Finding("bad-isbn", "isbn is not an ISBN", "error", line=49, advice="write it as 10 or 13 digits")
    address = "http://www.alpha-books.example:45461/books/0-the-scarlet-meadow-of-dijon-in-the-north"
    stats._print_located(terminal.session(monkeypatch), [LocatedDefect(address, finding)] * 2)
    lines = terminal.getvalue().splitlines()
    assert lines[0] == "error bad-isbn: write it as 10 or 13 digits"
    assert max(map(len, lines)) <= 80 and len(lines) == 4, "one line for each"
    assert "49" in lines[2].split() and "…" in lines[2]
