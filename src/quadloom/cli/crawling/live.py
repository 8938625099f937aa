"""What a terminal shows of a running crawl, and what is printed at its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from quadloom.cli.progress import LiveDisplay, bar, duration
from quadloom.cli.session import Session
from quadloom.cli.words import counted, size
from quadloom.crawling.run.balance import balance_of
from quadloom.crawling.run.report import CrawlReport, VisitProblem
from quadloom.fetching.transport import ADVICE
from quadloom.model.outcome import READ_OUTCOMES
from quadloom.model.url import Url
from quadloom.stores.protocols.catalog import Catalog

if TYPE_CHECKING:  # imported when something is shown
    from rich.text import Text

_WORDS = {"running": "crawling", "paused": "paused", "stopping": "saving"}
_STYLES = {"running": "bold green", "paused": "bold yellow", "stopping": "bold yellow"}
_DONE = {"detect": "detected", "transform": "transformed", "index": "indexed", "extract": "took the links of"}
_MIN_PAGES = 50  # with fewer, the figures are noise
_MAX_PROBLEMS = 5
_WIDTH = 80


class CrawlDisplay(LiveDisplay):
    """Pages, rate, hosts, phases and the queue of a running crawl."""

    def __enter__(self) -> Self:
        from rich.text import Text

        if self._is_terminal and not self._session.quiet:
            self.draw(Text("starting …"), "")
        return super().__enter__()

    def show(self, report_now: Callable[[], CrawlReport]) -> None:
        from rich.text import Text

        if self.due():
            lines = progress_lines(report_now())
            plain = " · ".join(line.plain.strip() for line in lines if line.plain.strip())
            self.draw(Text("\n").join(lines), plain)


def progress_lines(report: CrawlReport) -> list[Text]:
    """Four lines that fit into 80 columns until the counts have seven digits. The state comes first."""
    from rich.text import Text

    now = report.rates.get("fetch", 0.0)
    visits = report.pages + report.failed + report.denied + report.gone
    known = report.limit or visits + report.frontier.get("queued", 0) + report.frontier.get("leased", 0)
    done = report.pages if report.limit else visits
    head = Text(_WORDS.get(report.state, report.state), style=_STYLES.get(report.state, ""))
    unit = "pages" if report.limit else "known URLs"  # of a limit pages count, of the queue what became of each URL
    head.append_text(Text("  ").append_text(bar(done, known)))
    head.append(f"  {done:,} of {known:,} {unit}", style="default not bold")
    if report.state == "running":
        head.append(f" · {now:.1f} visits/s", style="default not bold")
        if now > 0 and done < known:
            head.append(f" · {duration((known - done) / now)} left", style="default not bold")
    frontier = report.frontier
    queue = Text(f"URLs: {frontier.get('queued', 0):,} due, {frontier.get('waiting', 0):,} later, ")
    queue.append(f"{frontier.get('leased', 0):,} in progress · {duration(report.seconds)}")
    return [head, _counts(report), Text("  ".join(f"{name} {count}" for name, count in report.phases.items())), queue]


def _pages_and_quads(report: CrawlReport) -> str:
    return f"{counted(report.pages, 'page')} · {counted(report.quads, 'quad')}"


def _counts(report: CrawlReport) -> Text:
    """Statements, then failures in colour, then the hosts of the last requests, as many as fit."""
    from rich.text import Text

    line = Text(counted(report.quads, "quad") if report.limit else _pages_and_quads(report))
    counts = [(report.failed, "failed", "red"), (report.denied, "denied", "yellow")]
    if report.gone:
        counts.append((report.gone, "gone", "yellow"))
    for count, word, style in counts:
        line.append(" · ").append(f"{count:,} {word}", style=style if count else "")
    for place, host in enumerate(report.hosts):
        more = f" · {host}" if place == 0 else f", {host}"
        if len(line) + len(more) > _WIDTH:
            break
        line.append(more, style="cyan")
    return line


def finish(s: Session, report: CrawlReport, interrupted: bool, max_failures: int | None) -> int:
    """Print the result of a crawl; returns the exit code."""
    if s.json:
        s.emit(report)
    else:
        _print_end(s, report, interrupted)
    if interrupted:
        s.say("interrupted; all finished pages are saved\nhint: to continue, run the same command again")
        return 130
    if max_failures is not None and report.failed > max_failures:
        s.say(f"{report.failed} visits failed, more than --max-failures {max_failures}")
        s.say("hint: to see on which hosts: `quadloom sites --sort failed`")
        return 5
    return 0


def _print_end(s: Session, report: CrawlReport, interrupted: bool) -> None:
    for text in report.notices:
        s.say(f"notice: {text}")
    worked = {phase: done for phase, done in report.phases.items() if done and phase not in ("fetch", "settle")}
    if report.pages or report.problems or not worked:
        gone = f"{report.gone:,} gone · " if report.gone else ""
        s.say(
            f"{_pages_and_quads(report)} · {report.failed:,} failed · {gone}"
            f"{report.denied:,} denied · {report.seconds:.1f} s ({report.pages_per_second:.1f} pages/s)"
        )
    else:  # a phase on its own
        done = " · ".join(f"{_DONE[phase]} {counted(count, 'page')}" for phase, count in worked.items())
        s.say(f"{done} · {report.seconds:.1f} s")
    if (cost := report.rendering) is not None:
        s.say(
            f"browser: {counted(cost.pages, 'page')} after scripts · {cost.requests:,} more requests · "
            f"{size(cost.bytes)} · {cost.cpu_seconds:.1f} s of CPU"
        )
    print_problems(s, report.problems)
    _print_phases(s, report)
    queued, waiting = report.frontier.get("queued", 0), report.frontier.get("waiting", 0)
    s.say(f"{counted(queued, 'URL')} left to read · {waiting:,} to be read again later")
    if waiting and not (report.pages or queued or interrupted or report.problems or worked):
        s.say("Nothing to crawl right now. To re-read pages: `quadloom refresh`.")


def _print_phases(s: Session, report: CrawlReport) -> None:
    """Print what a page costs in each phase, and the slowest phase: the last line of MultiCrawler's table 2."""
    costs = [(row.phase, 1000.0 / row.per_core) for row in balance_of(report).phases if row.per_core]
    if report.pages >= _MIN_PAGES and costs:
        slowest = max(costs, key=lambda item: item[1])[0]
        each = " · ".join(f"{phase} {cost:.2f}" for phase, cost in costs)
        s.say(f"CPU-ms per page: {each}; most in {slowest}")


def print_problems(s: Session, problems: list[VisitProblem]) -> None:
    """Print why visits returned no page, with an example for each reason."""
    for problem in problems[:_MAX_PROBLEMS]:
        times = f"{problem.visits:,} times " if problem.visits > 1 else ""
        s.say(f"  {times}{problem.outcome}: {problem.reason}\n    {problem.example}")
    if len(problems) > _MAX_PROBLEMS:
        s.say(f"  and {len(problems) - _MAX_PROBLEMS} more reasons; to list them: `quadloom sites --sort failed`")


def nothing_read(s: Session, report: CrawlReport, catalog: Catalog, starts: Sequence[str]) -> int:
    """The exit code of a crawl that tried and read no page: 1 if no URL that it was started with could be read, or
    without URLs, if no page was ever read. A crawl that only retries earlier failures has not failed."""
    if report.pages or not report.problems:
        return 0
    if starts:
        prints = {Url.parse(url).fingerprint for url in starts}
        rows = catalog.pages(list(prints))
        if len(rows) < len(prints) or any(row.outcome in READ_OUTCOMES for row in rows.values()):
            return 0
    elif any(catalog.counts().get(f"outcome:{outcome}") for outcome in READ_OUTCOMES):
        return 0
    s.say("no page was read")
    if hint := ADVICE.get(report.problems[0].kind):
        s.say(f"hint: {hint}")
    return 1
