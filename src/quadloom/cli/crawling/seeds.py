"""`quadloom seeds`: the URLs that crawls start from."""

from __future__ import annotations

from pathlib import Path

import msgspec
from cyclopts import App

from quadloom.cli.crawling.url_files import url_lines, urls_from_file
from quadloom.cli.session import session
from quadloom.crawling.run.control import ask
from quadloom.model.url import resolve
from quadloom.warehouse import Warehouse

seeds = App(name="seeds", help="Add URLs to start from, or list them.")


@seeds.command
def add(*sources: str) -> int:
    """Queue URLs, or the URLs in files with one per line (`-` reads standard input).

    Parameters
    ----------
    sources
        URLs or files
    """
    s = session()
    urls, refused = _urls(sources)
    answer = ask(s.warehouse, "seeds", urls=list(urls))
    if answer is None:
        with Warehouse.open(s.warehouse, settings=s.settings) as warehouse:
            answer = {**msgspec.structs.asdict(warehouse.requests.add_seeds(urls))}
    counts = answer if isinstance(answer, dict) else {}
    counts = {**counts, "invalid": len(refused)}
    if s.json:
        s.emit(counts)
    else:
        accepted, known, outside = (counts.get(name, 0) for name in ("new", "known", "refused"))
        s.write(f"{accepted} accepted\t{known} already known\t{outside} out of scope\t{len(refused)} not a URL")
    for text in refused:
        s.say(f"not a web address: {text[:200]!r}")
    if refused:
        s.say("hint: give absolute http:// or https:// URLs")
    return 2 if refused and not urls else 0


@seeds.command(name="list")
def list_() -> None:
    """List the seeds of this warehouse."""
    s = session()
    with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
        for url in warehouse.scope.seeds():
            if s.json:
                s.emit({"url": url})
            else:
                s.write(url)


def _urls(sources: tuple[str, ...]) -> tuple[list[str], list[str]]:
    wanted: list[str] = []
    for source in sources or ("-",):
        if source == "-" or ("://" not in source and Path(source).is_file()):
            wanted += urls_from_file(Path(source))
        else:
            wanted += url_lines(source)
    return [text for text in wanted if resolve(text)], [text for text in wanted if not resolve(text)]
