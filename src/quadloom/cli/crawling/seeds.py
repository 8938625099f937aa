"""`quadloom seeds`: the URLs that crawls start from."""

from __future__ import annotations

from pathlib import Path

import msgspec
from cyclopts import App

from quadloom.cli.files import url_lines, urls_from_file
from quadloom.cli.session import session
from quadloom.model.url import resolve

seeds = App(name="seeds")


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
    answer = s.change(
        "seeds", {"urls": [*urls]}, lambda warehouse: msgspec.to_builtins(warehouse.requests.add_seeds(urls))
    )
    counts = answer if isinstance(answer, dict) else {}
    counts = {**counts, "invalid": len(refused)}
    if s.json:
        s.emit(counts)
    else:
        accepted, known, outside = (counts.get(name, 0) for name in ("new", "known", "refused"))
        s.write(f"{accepted} accepted\t{known} already known\t{outside} out of scope\t{len(refused)} not a URL")
    for text in refused:
        s.say(f"not a URL: {text[:200]!r}")
    if refused:
        s.say("hint: give absolute http:// or https:// URLs")
    return 2 if refused and not urls else 0


@seeds.command(name="list")
def list_() -> None:
    """List the seeds of this warehouse."""
    s = session()
    with s.read() as warehouse:
        for url in warehouse.scope.seeds():
            s.emit({"url": url}) if s.json else s.write(url)


def _urls(sources: tuple[str, ...]) -> tuple[list[str], list[str]]:
    wanted: list[str] = []
    for source in sources or ("-",):
        if source == "-" or ("://" not in source and Path(source).is_file()):
            wanted += urls_from_file(Path(source))
        else:
            wanted += url_lines(source)
    return [text for text in wanted if resolve(text)], [text for text in wanted if not resolve(text)]
