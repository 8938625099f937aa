"""Wrong arguments: what is wrong, and the way to the right help. Of every command and subcommand."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

import quadloom.cli.main as main
from command_line import quadloom
from quadloom.cli.application import application
from quadloom.cli.main import COMMANDS, add_installed_commands


def every_command() -> Iterator[tuple[list[str], App]]:
    add_installed_commands()
    commands = application()
    for name in COMMANDS:
        command = commands[name]
        yield [name], command
        yield from (([name, sub], command[sub]) for sub in command if not sub.startswith("-"))


ALL = list(every_command())
NAMED = pytest.mark.parametrize("words", [words for words, _ in ALL], ids=[" ".join(words) for words, _ in ALL])


@NAMED
def test_an_unknown_option_leads_to_the_help_of_that_command(words: list[str], tmp_path: Path) -> None:
    said = quadloom(*words, "--frobnicate", cwd=tmp_path)
    assert said.returncode == 2
    assert said.stderr == (
        f"quadloom: unknown option --frobnicate\nhint: to see its arguments: `quadloom {' '.join(words)} --help`\n"
    )
    assert not list(tmp_path.iterdir())


@NAMED
def test_help_says_what_each_command_and_option_is(words: list[str], tmp_path: Path) -> None:
    said = quadloom(*words, "--help", cwd=tmp_path, COLUMNS="200")
    assert said.returncode == 0 and said.stdout.startswith(f"Usage: quadloom {' '.join(words)}")
    assert not said.stdout.splitlines()[2].startswith("╭"), "nothing says what the command does"
    for line in said.stdout.partition("Options of every command")[0].splitlines():
        assert line.count("[default:") < 2 and "[choices: ," not in line
        assert not re.fullmatch(r"│ \S+ +│", line), "a name without a word about it"


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("crwal", "there is no command 'crwal'", "did you mean `quadloom crawl`?"),
        ("crwal --help", "there is no command 'crwal'", "did you mean `quadloom crawl`?"),
        ("Crawl -h", "there is no command 'Crawl'", "did you mean `quadloom crawl`?"),
        ("xyzzy --help", "there is no command 'xyzzy'", "to list the commands: `quadloom --help`"),
        ("help", "there is no command 'help'", "write `quadloom --help`"),
        ("help crawl", "there is no command 'help'", "write `quadloom crawl --help`"),
        ("version", "there is no command 'version'", "write `quadloom --version`"),
        ("--foo bar crawl", "unknown option --foo", "to see its arguments: `quadloom --help`"),
        ("queries sav", "`quadloom queries` has no command 'sav'", "did you mean `quadloom queries save`?"),
        ("config sett", "`quadloom config` has no command 'sett'", "to list the commands: `quadloom config --help`"),
        ("crawl --max-page 3", "unknown option --max-page", "did you mean --max-pages?"),
        ("crawl --warehous x", "unknown option --warehous", "did you mean --warehouse?"),
        ("seeds --warehous x", "unknown option --warehous", "did you mean --warehouse?"),
        ("why", "`quadloom why` needs URL", "`quadloom why --help`"),
        ("queries save", "`quadloom queries save` needs NAME", "`quadloom queries save --help`"),
        ("crawl --delay", "--delay needs a value", "`quadloom crawl --help`"),
        ("crawl --contact --depth 3", "--contact needs a value", "`quadloom crawl --help`"),
        ("status -w", "-w needs a value", "`quadloom --help`"),
        ("crawl --delay 1 --delay 2", "--delay is given more than once", "`quadloom crawl --help`"),
        ("search --limit x a", "--limit takes a whole number, not 'x'", "`quadloom search --help`"),
        ("crawl --delay soon", "--delay takes a number, not 'soon'", "`quadloom crawl --help`"),
        ("crawl --scope all", "--scope takes page, host, site or any, not 'all'", "`quadloom crawl --help`"),
        ("status --json=maybe", "--json takes no value", "`quadloom --help`"),
        ("sparql a b", "unexpected argument 'b'", "`quadloom sparql --help`"),
        ("show page", "show takes one IRI, or `page` and a URL", "quadloom show page https://"),
        ("sparql --file no.rq", "there is no file no.rq", "SPARQL"),
    ],
)
def test_a_mistake_is_named_and_the_cure_too(line: str, message: str, hint: str, tmp_path: Path) -> None:
    said = quadloom(*line.split(), cwd=tmp_path)
    assert (said.returncode, said.stdout) == (2, "")
    first, _, second = said.stderr.rstrip().partition("\nhint: ")
    assert first == f"quadloom: {message}" and hint in second
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("line", ["bench --help", "bench growth --help", "simulate -h"])
def test_a_command_of_the_lab_that_is_not_installed(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--help` printed the overview, as if this were its page."""
    monkeypatch.setattr(main, "add_installed_commands", lambda: None)
    all_commands = dict(COMMANDS)
    for name in ("bench", "simulate"):
        COMMANDS.pop(name, None)
    try:
        said = quadloom(*line.split(), cwd=tmp_path)
    finally:  # in their order, which is that of the help
        COMMANDS.clear()
        COMMANDS.update(all_commands)
    assert (said.returncode, said.stdout) == (2, "")
    assert "is part of the lab" in said.stderr and "pip install -e lab" in said.stderr


@pytest.mark.parametrize("name", ["seeds", "scope", "subscribe", "lake", "contexts", "schemas", "config"])
def test_a_command_with_commands_of_its_own_lists_them(name: str, tmp_path: Path) -> None:
    said = quadloom(name, cwd=tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith(f"Usage: quadloom {name} COMMAND") and COMMANDS[name][1] in said.stdout
    assert "Options of every command" in said.stdout
    assert said.stdout == quadloom(name, "--help", cwd=tmp_path).stdout


def test_a_word_after_two_hyphens_is_a_word(tmp_path: Path) -> None:
    """`search -- --json` reported an unknown option."""
    quadloom("seeds", "add", "https://a.example/", cwd=tmp_path)
    said = quadloom("search", "--as-sparql", "--", "--json", "--fuzzy", cwd=tmp_path)
    assert said.returncode == 0 and "--json --fuzzy" in said.stdout
    said = quadloom("search", "--fuzzy", "--", "--fuzzy", cwd=tmp_path)
    assert said.returncode == 2 and said.stderr.startswith("quadloom: unknown option --fuzzy\n"), "the first is none"


@pytest.mark.parametrize("line", ["seeds add -", "crawl --seeds - --contact a@b.example"])
def test_a_hyphen_is_standard_input(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"http://127.0.0.1:9/\n")))
    said = quadloom(*line.split(), cwd=tmp_path)
    assert said.returncode == 0 or "denied: guard" in said.stderr, "the address is not public"
    assert quadloom("seeds", "list", cwd=tmp_path).stdout == "http://127.0.0.1:9/\n"


def test_queries_come_from_standard_input_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quadloom("seeds", "add", "https://a.example/", cwd=tmp_path)

    def answered(*words: str) -> str:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"SELECT ('x' AS ?one) {}")))
        said = quadloom(*words, cwd=tmp_path)
        assert said.returncode == 0, said.stderr
        return said.stdout

    assert answered("sparql", "-").split() == ["?one", '"x"']
    answered("queries", "save", "one", "-")
    assert quadloom("queries", "run", "one", cwd=tmp_path).stdout.split() == ["?one", '"x"']


def test_a_word_after_a_hyphen_is_excluded_and_a_property_sorts_backwards(tmp_path: Path) -> None:
    """Both are in the help, and were taken for options."""
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    dump = tmp_path / "dump.nq"
    dump.write_text(
        "".join(
            f'<https://{name}.example/> <http://schema.org/name> "{name}" <https://{name}.example/> .\n'
            f"<https://{name}.example/> <{rdf}> <http://schema.org/Event> <https://{name}.example/> .\n"
            for name in ("abel", "cain")
        )
    )
    assert quadloom("import", str(dump), cwd=tmp_path).returncode == 0
    lines = quadloom("table", "Event", "--sort", "-name", "--format", "csv", cwd=tmp_path).stdout.splitlines()
    assert "cain" in lines[1] and "abel" in lines[2]
    said = quadloom("search", "schema", "-abel", "--as-sparql", cwd=tmp_path)
    assert said.returncode == 0 and "abel" in said.stdout
