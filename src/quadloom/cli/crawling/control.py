"""`quadloom pause`, `resume`, `stop`, `refresh`, `strategies` and `freshness`: requests to a running crawl."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from quadloom.cli.options import AllWorkers, GuidedShare, OneWorker
from quadloom.cli.session import Session, session
from quadloom.crawling.cluster.steering import RETAINED, Steering
from quadloom.crawling.run.control import ask, ask_all
from quadloom.errors import UsageError
from quadloom.model.wire import Value
from quadloom.planning.policy.objectives import Policy
from quadloom.settings import seconds

_DONE = {
    "pause": "the crawl is paused; to continue: `quadloom resume`",
    "resume": "the crawl continues",
    "stop": "the crawl finishes what is in progress, saves and ends",
}


def pause(*, all_workers: AllWorkers = False, worker: OneWorker = "") -> int:
    """Pause a running crawl: pages in progress are finished, no new ones are fetched."""
    return _steer("pause", all_workers, worker)


def resume(*, all_workers: AllWorkers = False, worker: OneWorker = "") -> int:
    """Resume a paused crawl."""
    return _steer("resume", all_workers, worker)


def stop(*, all_workers: AllWorkers = False, worker: OneWorker = "") -> int:
    """Stop a running crawl; pages in progress are finished and saved."""
    return _steer("stop", all_workers, worker)


def _steer(verb: str, all_workers: bool, worker: str) -> int:
    s = session()
    if all_workers or worker:
        return _ask_workers(s, verb, {}, worker)
    answers = ask_all(s.warehouse, verb)
    if not answers:
        raise _not_running(s, "to start one: `quadloom crawl`; to name another warehouse: -w")
    s.report(answers[0], _DONE[verb])
    return 0


def _not_running(s: Session, hint: str) -> UsageError:
    if s.settings.stores.is_shared:
        hint = "to ask the workers of the cluster: --all-workers, or --worker NAME; `quadloom status` lists them"
    return UsageError(f"no crawl is running on {s.warehouse}", hint=hint)


def _ask_workers(s: Session, verb: str, arguments: Mapping[str, Value], worker: str) -> int:
    """Ask all workers of the cluster or one of them, and print the answers. Exit code 1 if one could not do it."""
    if not s.settings.stores.is_shared:
        raise UsageError(
            "there are no workers: this warehouse belongs to one machine",
            hint="leave out --all-workers and --worker, or set stores.frontier to the cluster's database",
        )
    with Steering(s.settings) as steering:
        replies = steering.send(verb, arguments, worker=worker)
    if not replies and verb not in RETAINED:
        raise UsageError("no worker is alive", hint="start one on each machine: `quadloom worker`")
    if s.json:
        s.emit({"workers": replies})
    else:
        for reply in replies:
            s.write(f"{reply.worker}\t{reply.error or _words(reply.answer)}")
        if not replies:
            s.say("no worker is alive; workers that start later will get this request")
    return 1 if any(reply.error for reply in replies) else 0


def _words(answer: object) -> str:
    if isinstance(answer, dict):
        return "  ".join(f"{name} {value}" for name, value in answer.items())
    return str(answer)


def refresh(*urls: str, site: str = "", older_than: str = "") -> None:
    """Read pages again: a running crawl reads them next, otherwise the next `quadloom crawl` does.

    Parameters
    ----------
    urls
        pages to read again, known or not
    site
        all pages of this site or host
    older_than
        all pages that were last read longer ago than this: 7d, 12h, 30m
    """
    s = session()
    if not urls and not site and not older_than:
        raise UsageError("no pages are named", hint="give URLs, --site example.org or --older-than 7d")
    before = time.time() - _seconds(older_than) if older_than else None
    with s.read() as warehouse:
        new = warehouse.requests.never_read(urls)
    answer = ask(s.warehouse, "refresh", urls=[*urls], site=site, read_before=before)
    is_running = answer is not None
    if not is_running:
        with s.open() as warehouse:
            answer = warehouse.requests.refresh(urls, site=site, read_before=before)
    if s.json:
        s.emit({"requested": answer, "new": new})
        return
    them = "it" if answer == 1 else "them"
    when = f"the running crawl reads {them} next" if is_running else f"to read {them} now: `quadloom crawl`"
    s.say(f"{answer} {'page is' if answer == 1 else 'pages are'} due" + (f"; {when}" if answer else ""))
    for url in new:
        s.say(f"hint: {url} was never read before; is it spelt correctly?")
    if not answer:
        s.say("hint: to see the sites and when their pages are due: `quadloom sites`")


def _seconds(length: str) -> float:
    try:
        return seconds(length)
    except ValueError:
        raise UsageError(f"{length!r} is not a length of time", hint="write 7d, 12h, 30m or 45s") from None


def strategies(
    *names: str,
    all_pages: Annotated[bool, Parameter(name="--all")] = False,
    all_workers: AllWorkers = False,
    worker: OneWorker = "",
) -> int:
    """Show or change by which strategies a running crawl follows links.

    Parameters
    ----------
    names
        all, same-site, external, feeds, seealso, vocabulary, sitemaps, or .rq files; without any they are shown
    all_pages
        also look for links on all pages that were read before
    """
    s = session()
    if all_pages and not names:
        hint = "for the strategies of the configuration: `quadloom extract --all`"
        raise UsageError("no strategy is named", hint=hint)
    wanted: list[Value] = [str(Path(name).absolute()) if name.endswith(".rq") else name for name in names]
    change: dict[str, Value] = {"strategies": wanted or None, "stored": all_pages}
    if all_workers or worker:
        return _ask_workers(s, "strategies", change, worker)
    answer = ask(s.warehouse, "strategies", **change)
    if not isinstance(answer, dict):
        raise _not_running(s, "set crawl.strategies, or give --strategy to `quadloom crawl` and `quadloom extract`")
    if s.json:
        s.emit(answer)
        return 0
    chosen = answer.get("strategies")
    s.write(", ".join(map(str, chosen)) if isinstance(chosen, list) else "")
    if answer.get("pages"):
        s.say(f"links are looked for on {answer['pages']} stored pages")
    return 0


def freshness(
    *,
    bandwidth: float | None = None,
    suspect_share: float | None = None,
    discovery_share: float | None = None,
    policy: Policy | None = None,
    alpha: float | None = None,
    chi: float | None = None,
    guided_share: GuidedShare = None,
    all_workers: AllWorkers = False,
    worker: OneWorker = "",
) -> int:
    """Show or change how a running crawl divides its bandwidth and weighs pages, until it ends.

    Parameters
    ----------
    bandwidth
        pages per second, first reads and refresh together; 0 = first reads as politeness allows
    suspect_share
        σ_X: share for first reads of suspected data
    discovery_share
        σ_H: share for first reads of other pages; the rest is for re-reading
    policy
        what the refresh schedule optimises
    alpha
        α of the policy xyleme: how much worse a copy is that missed many changes than one that missed one
    chi
        χ: average weight of a page with structured data; an ordinary page weighs 1
    """
    s = session()
    if bandwidth is not None and bandwidth < 0.0:
        raise UsageError("the bandwidth cannot be negative", hint="to stop fetching for a while: `quadloom pause`")
    change: dict[str, Value] = {
        "bandwidth": bandwidth,
        "suspect_share": suspect_share,
        "discovery_share": discovery_share,
        "policy": policy,
        "alpha": alpha,
        "chi": chi,
        "guided_share": guided_share,
    }
    if all_workers or worker:
        return _ask_workers(s, "freshness", change, worker)
    answer = ask(s.warehouse, "freshness", **change)
    if not isinstance(answer, dict):
        raise _not_running(s, "the next crawl takes its values from [freshness] in quadloom.toml")
    if s.json:
        s.emit(answer)
    else:
        s.table(["what", "value"], answer.items())
    return 0
