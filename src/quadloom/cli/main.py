"""`quadloom`: the table of commands, and the one place where errors become messages and exit codes.

Exit codes: 0 done, 1 failed, 2 usage, 3 config, 4 empty, 5 limit, 6 unreachable, 7 locked, 8 child, 130 interrupted.

`quadloom.cli.overview` reads the options of every command, `quadloom.cli.application` those of one. `quadloom --help`
prints the table and imports neither parser nor settings.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module

from quadloom.cli.overview import CommandLine, command_line, overview, terminal
from quadloom.errors import QuadloomError, UsageError

# The matrices here are small, so the threads of NumPy's library make nothing faster. They spin while they wait for a
# core: beside other work, learning a topic took 3.3 s of CPU instead of 0.1 s.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

SUMMARY = "Turn websites into a graph you can query: crawl sites, extract their data, search it, ask it in SPARQL."

# Purpose → name → (where it is below quadloom.cli, one line of help). Loaded when used: `quadloom --version` must not
# import parsers and engines.
_OWN_COMMANDS = {
    "Begin": {
        "demo": ("demo:demo", "Crawl six small sites that come with Quadloom, then answer three questions."),
        "init": ("upkeep.config:init", "Write a commented quadloom.toml."),
        "crawl": ("crawling.crawl:crawl", "Crawl from URLs, or continue the last crawl."),
        "topic": ("crawling.topic:topic", "Collect pages on a topic, using the sites' own search."),
        "inspect": ("asking.inspect:inspect", "Show the data, links and defects of pages or files. Stores nothing."),
        "serve": ("serve:serve", "Serve search, SPARQL, entity pages and the live monitor."),
        "mcp": ("asking.mcp:mcp", "Let an agent search and query the warehouse (Model Context Protocol)."),
        "check": ("upkeep.check:check", "Check the set-up and suggest fixes."),
    },
    "Ask": {
        "search": ("asking.search:search", "Find pages by words, types and sites."),
        "table": ("asking.table:table", "Print things of a type as a table, or write CSV and Parquet."),
        "sparql": ("asking.sparql:sparql", "Ask the graph in SPARQL."),
        "queries": ("asking.queries:queries", "Save SPARQL queries by name, and run them again."),
        "show": ("asking.show:show", "Show an entity, or a page and its history."),
        "cite": ("asking.cite:cite", "Cite a value with its page, time and archived record."),
        "stats": ("asking.stats:stats", "Count classes, properties, vocabularies, sites and kinds."),
        "findings": ("asking.stats:findings", "Count the defects found in pages, or list the pages that have them."),
        "audit": ("asking.audit:audit", "Report what is wrong with the data of the sites, and how to fix it."),
        "report": ("asking.report:report", "Write a report of the crawl as one HTML file."),
        "why": ("asking.status:why", "Explain when a URL is read: every number and its rule."),
        "changes": ("crawling.subscribe:changes", "Print notices of changes, or follow new ones."),
        "subscribe": (
            "crawling.subscribe:subscribe",
            "Get notices when pages, sites, types or a query's answer change.",
        ),
    },
    "Watch and steer a crawl": {
        "status": ("asking.status:status", "Show what the warehouse holds and what a running crawl does."),
        "logs": ("crawling.logs:logs", "Print the events of a running crawl, or of all workers."),
        "sites": ("asking.status:sites", "List hosts with their pages, queue, pace and blocks."),
        "seeds": ("crawling.seeds:seeds", "Add URLs to start from, or list them."),
        "scope": ("crawling.scope:scope", "Show or change which URLs may be visited, also while a crawl runs."),
        "strategies": (
            "crawling.control:strategies",
            "Show or change by which strategies a running crawl follows links.",
        ),
        "refresh": ("crawling.control:refresh", "Read pages again, before all others."),
        "freshness": ("crawling.control:freshness", "Show or change how a running crawl divides its bandwidth."),
        "pause": ("crawling.control:pause", "Pause a running crawl."),
        "resume": ("crawling.control:resume", "Resume a paused crawl."),
        "stop": ("crawling.control:stop", "Stop a running crawl after saving what is in progress."),
        "worker": ("crawling.worker:worker", "Crawl as one of many machines on a shared database."),
    },
    "Run the phases of a crawl apart": {
        "fetch": ("crawling.phases:fetch", "Fetch pages into the archive; nothing is parsed."),
        "detect": ("crawling.phases:detect", "Find out which kind of document each fetched page is."),
        "transform": ("crawling.phases:transform", "Transform fetched pages: extract what they say."),
        "index": ("crawling.phases:index", "Write transformed pages to the quad store and the text index."),
        "extract": ("crawling.phases:extract", "Put the links of indexed pages into the queue."),
    },
    "Data in and out, upkeep": {
        "export": ("upkeep.export_import:export", "Write quads, pages or a description of the data."),
        "bulk": ("upkeep.extraction:bulk", "Write the data of whole archives as tables, without a warehouse."),
        "import": ("upkeep.export_import:import_", "Read WARC files and RDF dumps into the warehouse."),
        "verify": ("upkeep.maintenance:verify", "Compare archive, quads and text with the catalog."),
        "rebuild": ("upkeep.maintenance:rebuild", "Rebuild quads and text from the archive."),
        "upgrade": ("upkeep.upgrade:upgrade", "Rebuild indexes that an older version of Quadloom has made."),
        "importance": ("upkeep.importance:importance", "Compute the importance of all pages."),
        "recover": ("upkeep.maintenance:recover", "Recover a lost or damaged database from the archive."),
        "prune": (
            "upkeep.maintenance:prune",
            "Remove superseded visits older than index.retention from the archive.",
        ),
        "forget": ("upkeep.removal:forget", "Remove pages or sites for good, and never visit them again."),
        "backup": ("upkeep.backup:backup", "Copy the warehouse to a directory or bucket, also while it is in use."),
        "restore": ("upkeep.backup:restore", "Make a warehouse from a backup."),
        "lake": ("upkeep.lake:lake", "Write quads, pages, links and findings as Parquet files, and ask them in SQL."),
        "contexts": ("upkeep.contexts:contexts", "Keep JSON-LD contexts in a folder instead of fetching them."),
        "schemas": ("upkeep.schemas:schemas", "Keep DTD, XSD and RelaxNG files, and validate XML against them."),
        "config": ("upkeep.config:config", "Show the settings in effect and where each comes from."),
    },
}
_GROUPS = {
    title: {name: (f"quadloom.cli.{where}", help_) for name, (where, help_) in commands.items()}
    for title, commands in _OWN_COMMANDS.items()
}
COMMANDS = {name: found for group in _GROUPS.values() for name, found in group.items()}
MEASURE = "Measure"  # the group of commands that other packages add
groups: dict[str, dict[str, tuple[str, str]]] = {**_GROUPS, MEASURE: {}}

PLUG_INS = "quadloom.commands"  # entry point group; each entry is a table like those of _GROUPS


def add_commands(commands: Mapping[str, tuple[str, str]]) -> None:
    """Add commands of another package: name → (where it is, one line of help). A name that exists is not replaced."""
    for name, (where, help_) in commands.items():
        if name not in COMMANDS:
            COMMANDS[name] = groups[MEASURE][name] = (where, help_)


def add_installed_commands() -> None:
    """Add the commands of all installed packages that register some, except packages that cannot be imported."""
    from importlib.metadata import entry_points  # reads the metadata of all packages: .04 s

    for entry in entry_points(group=PLUG_INS):
        with suppress(ImportError, AttributeError):  # the folder of the package was moved or removed
            add_commands(entry.load())


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit code instead of leaving the process."""
    try:
        result = _run(command_line(arguments))
        return result if isinstance(result, int) else 0
    except QuadloomError as error:
        return _complain(error.message, error.hint or "to look for common causes: `quadloom check`", error.exit_code)
    except KeyboardInterrupt:
        return _complain("interrupted", "to continue, run the same command again", 130)
    except UnicodeDecodeError as error:
        return _complain(f"a file or stream is not UTF-8 text: {error.reason}", "save it as UTF-8", 2)
    except BrokenPipeError:  # the reader (head, less) has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        message = f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
        if error.errno == errno.ENOSPC:
            hint = "free some disk space and run the command again; nothing acknowledged was lost"
            return _complain(message, hint, 6)
        return _complain(message, "to look for common causes: `quadloom check`", 1)


def _run(line: CommandLine) -> int | None:
    word = line.words[0] if line.words else ""
    if word not in COMMANDS:
        add_installed_commands()
    if line.wants_version and not line.wants_help:
        from quadloom import __version__  # imports the records: .02 s

        sys.stdout.write(f"{__version__}\n")
        return 0
    if not word:
        columns, colour = terminal()
        sys.stdout.write(overview(SUMMARY, groups, columns, colour=colour))
        sys.stdout.flush()
        return 0
    if word not in COMMANDS:
        from quadloom.cli.usage_errors import unknown_command

        raise unknown_command(word, line.words, COMMANDS)
    from quadloom.cli.application import run_command

    return run_command(line)


def main() -> None:
    """The program. The garbage collector is off while the command is imported, since it would find nothing."""
    gc.disable()
    with suppress(ImportError, UsageError):  # `run` reports both
        line = command_line(sys.argv[1:])
        if line.words and line.words[0] in COMMANDS:
            import_module("quadloom.cli.application").application(line.words[:1])
    gc.freeze()
    gc.enable()
    _leave(run(sys.argv[1:]))


def _leave(code: int) -> None:
    """End the process as the interpreter does, but without destroying all modules, which takes 20 CPU-ms. Everything is
    closed by now. `multiprocessing` ends its children in the same way."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(BrokenPipeError):  # the reader has left
            stream.flush()
    os._exit(code)


def _complain(message: str, hint: str, code: int) -> int:
    from quadloom.cli.session import harmless

    below = hint.replace("\n", "\n      ")  # a caret stands under its place in the line above
    sys.stderr.write(harmless(f"quadloom: {message}\nhint: {below}\n"))
    return code
