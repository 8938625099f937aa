"""The adaptive strategy: always the action with the most expected new relevant documents per request.

Actions: fetch a candidate (its estimated relevance), query a site's search for a term or its next page, follow a link
that says nothing about its page (`tunnel`), open a further site. An action that costs a request and then allows N
fetches that give M relevant documents is worth M / (1 + N). The prediction of M is a product: how many relevant
documents have the term, how many are probably left on the site, and two corrections, observed over expected results of
the term on all sites and of the site for all terms. So a poor guess costs one request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from quadloom.crawling.topical.access import RequestSequence
from quadloom.crawling.topical.anchors import Anchor, PageOutline
from quadloom.crawling.topical.run import RELEVANT, AssessedDocument, KnownPages, TopicalRun, article_links
from quadloom.crawling.topical.search.channels import SearchChannel, SiteOpening, open_site, query_channel
from quadloom.crawling.topical.search.engines import SearchLead
from quadloom.crawling.topical.search.queries import QueryTerm, TermStatistics, combining
from quadloom.crawling.topical.search.results import ResultPage, SearchResult
from quadloom.crawling.topical.sites import Arm, Ratio, SeedSite, SiteAction, TopicalSite
from quadloom.crawling.topical.strategies.candidates import Candidate, CandidateModel, CandidateQueue, Source
from quadloom.crawling.topical.strategies.tunnel import Tunnel, TunnelLink
from quadloom.documents.words.written_words import words_of
from quadloom.model.url import canonical, host_of

FLOOR = 0.06  # the crawl ends below this yield per request: a document would cost more than sixteen requests
GOOD = 0.5  # candidates that count towards an action's mass
BUNDLE = 6  # terms of one query, if the engine matches any of them
# The worth of an action beyond its own yield: an opened site can be queried again, and an answer teaches terms. Without
# these factors, doubtful documents were fetched while better ones waited on sites that were not opened yet.
OPENING = 1.6
ASKING = 1.05
_FEWEST_WORDS = 3  # of a link and its block, to say what it leads to


class Adaptive:
    """See the module docstring. `next` returns the most promising request sequence on a free host."""

    name = "adaptive"

    def __init__(
        self,
        run: TopicalRun,
        seeds: Sequence[SeedSite],
        random: Random,
        now: float,
        known: Mapping[str, SearchChannel] | None = None,
        further: Callable[[str], list[SearchLead]] = lambda _host: [],
        *,
        terms: Sequence[QueryTerm] = (),
        is_known: Callable[[Sequence[str]], set[str]] = lambda _keys: set(),
    ) -> None:
        """`terms`: of an earlier crawl, until this one has learned its own. `is_known`: which of these URLs, by key,
        need not be read."""
        self.run = run
        self._is_known = is_known
        self._further = further
        self._now = now
        self._nonsense = f"zq{random.getrandbits(40):x}x"
        self.model = CandidateModel(run.relevance)
        self.queue = CandidateQueue(self.model)
        self.sites = {seed.host: TopicalSite(seed) for seed in seeds}
        for host, channel in (known or {}).items():
            self.sites[host].channel = channel
        self._unopened = sorted(self.sites.values(), key=lambda site: -site.seed.score)
        self.terms = TermStatistics()
        for example in run.topic.examples:
            self.terms.add(example.title, example.text, True)
        for example in run.topic.counterexamples:
            self.terms.add(example.title, example.text, False)
        self._ranked: list[QueryTerm] = self.terms.ranked() or list(terms)
        self._ranked_at = 0
        self._term_ratio: dict[str, Ratio] = {}
        self._any_engines = Ratio(1.0, 2.0)
        self._recent: list[TopicalSite] = []
        self._titles: dict[str, str] = {}
        self._tunnel = Tunnel()

    def next(self, busy: set[str]) -> tuple[str, RequestSequence[None]] | None:
        """(host, sequence); None if no free host offers anything worth a request."""
        barred = busy | {host for host, site in self.sites.items() if self.run.full(host) and site.opened}
        options: list[tuple[float, str, RequestSequence[None]]] = []
        candidate = self.queue.best(barred)
        if candidate is not None:
            options.append((candidate.p, candidate.host, self._fetch(candidate)))
        for host, site in self.sites.items():
            if site.opened and host not in barred:
                action = self._best_of(site)
                if action is not None:
                    options.append((action[0], host, action[1]))
        opening = next((site for site in self._unopened if site.host not in busy), None)
        if opening is not None:
            options.append((self._opening_value(opening), opening.host, self._open(opening)))
        value, host, sequence = max(options, key=lambda option: option[0], default=(0.0, "", None))
        tunnel = self._tunnel.best(barred)
        if tunnel is not None and tunnel[0] > value:
            self._tunnel.take(tunnel[1])
            return tunnel[1].host, self._follow(tunnel[1])
        if sequence is None or value < FLOOR:
            return None
        if candidate is not None and sequence is options[0][2]:
            self.queue.take(candidate)
        return host, sequence

    def waiting(self) -> KnownPages:
        open_to = [candidate.p for candidate in self.queue if not self.run.full(candidate.host)]
        return KnownPages(len(open_to), round(sum(open_to), 1))

    def _best_of(self, site: TopicalSite) -> tuple[float, RequestSequence[None]] | None:
        """The best query of a site, cached until the site or the terms change."""
        key = (site.version, self._ranked_at)
        if site.cached_key != key:
            site.cached_key = key
            site.cached = self._choose(site)
        if site.cached is None:
            return None
        action = site.cached
        return action.value, self._search(site, action.arm)

    def _choose(self, site: TopicalSite) -> SiteAction | None:
        best: SiteAction | None = None
        if site.channel is not None and site.channel.searchable:
            for arm in self._arms(site):
                value = ASKING * _yield_of(self._mass(site, arm))
                if best is None or value > best.value:
                    best = SiteAction(value, arm)
        return best

    def _arms(self, site: TopicalSite) -> list[Arm]:
        """Next pages of earlier queries, terms not queried yet, and bundles of terms if they may help."""
        arms = [arm for arm in site.arms.values() if not arm.done]
        fresh = [term for term in self._ranked[:25] if term.text not in site.arms]
        arms += [Arm(term.text, (term,)) for term in fresh[:12]]
        if site.mode != "all":
            unused = [term for term in self._ranked if term.text not in site.bundled][:BUNDLE]
            if len(unused) == BUNDLE:
                arms.append(Arm(" ".join(term.text for term in unused), tuple(unused)))
        return arms

    def _mass(self, site: TopicalSite, arm: Arm) -> float:
        """Expected relevant documents among the new results on the next page of the arm."""
        size = site.page_size or 10
        if arm.pages:
            left = arm.total - arm.shown if arm.total >= 0 else size
            return arm.last_mass * 0.75 * min(1.0, max(0.0, left / size))
        unseen = 1.0 + 0.8 * site.relevant
        if len(arm.terms) > 1:
            chance = 1.0 if site.mode == "any" else self._any_engines.value
            expected = chance * min(size * 0.8, 0.8 * unseen)
        else:
            expected = min(size * 0.8, unseen * sum(term.coverage * term.purity for term in arm.terms))
        ratio = self._term_ratio.get(arm.query)
        return expected * (ratio.value if ratio else 1.0) * site.ratio.value

    def _opening_value(self, site: TopicalSite) -> float:
        """Expected documents per request of opening a site, from the sites opened last, scaled by score."""
        recent = self._recent
        mass = (4.0 + sum(other.first_mass for other in recent)) / (1 + len(recent))
        cost = (3.5 + sum(other.opening_cost for other in recent)) / (1 + len(recent))
        scores = [other.seed.score for other in recent]
        rank = site.seed.score / (sum(scores) / len(scores)) if scores else 1.0
        mass *= max(0.3, min(1.0, rank))
        return OPENING * mass / (cost + mass / 0.9)

    def _open(self, site: TopicalSite) -> RequestSequence[None]:
        self._unopened.remove(site)
        site.opened = True
        before = self.run.spent
        query = self.run.topic.narrow
        opening: SiteOpening = yield from open_site(
            site.seed.home, query, self._nonsense, self._now, site.channel, self._further(site.host)
        )
        site.opening_cost = self.run.spent - before
        site.requests += site.opening_cost
        site.channel = opening.channel
        if opening.home is not None:
            site.boilerplate = frozenset(anchor.key for anchor in opening.home.anchors)
            self.run.linked.update(site.boilerplate)
            self.run.note_boilerplate(opening.home)
        if opening.channel.searchable:
            arm = site.arms.setdefault(query, Arm(query, ()))
            self._enter_results(site, arm, opening.first, expected=0.0)
        self._pass_over_known([canonical(entry.url) for entry in opening.entries])
        for entry in opening.entries:
            self._offer(site, entry, "index", "")
        if opening.channel.kind in ("links", "sitemap") and opening.home is not None:
            self._use_home(site, opening.home)
        site.first_mass = site.pending
        self._recent = [*self._recent[-7:], site]
        site.version += 1

    def _use_home(self, site: TopicalSite, home: PageOutline) -> None:
        """For a site without search: links with enough words are candidates, others may lead to some."""
        anchors = article_links(home)
        self._pass_over_known([anchor.key for anchor in anchors])
        for anchor in anchors:
            if _is_descriptive(anchor):
                self._offer_link(site, anchor, 0.5)
        others = [a for a in anchors if a.key not in self.queue.seen and host_of(a.url) == site.host]
        self._tunnel.offer(home.url, others, None, relevant=True)

    def _search(self, site: TopicalSite, arm: Arm) -> RequestSequence[None]:
        expected = self._mass(site, arm) if not arm.pages else 0.0
        arm = site.arms.setdefault(arm.query, arm)
        site.bundled.update(term.text for term in arm.terms if len(arm.terms) > 1)
        site.requests += 1
        site.version += 1
        channel: SearchChannel | None = site.channel
        if channel is None:
            return
        page = yield from query_channel(channel, arm.query, arm.pages, arm.next_url, arm.next_fields)
        self._enter_results(site, arm, page, expected)

    def _enter_results(self, site: TopicalSite, arm: Arm, page: ResultPage | None, expected: float) -> None:
        """Enter a result page: new candidates, the state of the arm, and how good the prediction was."""
        mass = 0.0
        fresh = 0
        self._pass_over_known([canonical(result.url) for result in page.results] if page else [])
        for result in page.results if page else ():
            candidate = self._offer(site, result, "result", arm.query if len(arm.terms) <= 1 else "")
            if candidate is not None:
                fresh += 1
                mass += candidate.p if candidate.p >= GOOD else 0.0
        if page is None or not page.results or (arm.pages and not fresh):
            arm.done = True
        else:
            site.page_size = max(site.page_size, len(page.results))
            arm.total = page.total
            arm.shown += len(page.results)
            arm.next_url, arm.next_fields = page.next_url, page.next_fields
            data = site.channel is not None and site.channel.format != "html"
            more = bool(page.next_url) or (data and len(page.results) >= min(site.page_size, 10))
            arm.done = not more or 0 <= page.total <= arm.shown
        if expected > 0:
            self._term_ratio.setdefault(arm.query, Ratio(1.5, 1.5)).add(mass, expected)
            site.ratio.add(mass, expected)
        if len(arm.terms) > 1 and site.mode == "unknown":
            shown = max(page.total, len(page.results)) if page else 0
            alone = [site.arms[term.text] for term in arm.terms if term.text in site.arms]
            most = max((max(other.total, other.shown) for other in alone), default=4)
            site.mode = combining((most, most), shown)
            self._any_engines.add(float(site.mode == "any"), 1.0)
        arm.pages += 1
        arm.last_mass = mass
        site.version += 1

    def _fetch(self, candidate: Candidate) -> RequestSequence[None]:
        site = self.sites.get(candidate.host)
        if site is not None:
            site.requests += 1
            site.pending -= candidate.p
        if self._is_known([candidate.key]):
            return  # it was read since it was found
        document = yield from self.run.read(candidate.url, candidate.p, candidate.source, candidate.query)
        changed = self.model.learn(candidate, document.worth if document else 0.0)
        if document is not None:
            self._learn_from(document, site)
        if changed:
            self.queue.renew()

    def _follow(self, link: TunnelLink) -> RequestSequence[None]:
        self.sites[link.host].requests += 1
        if link.key in self.queue.seen or self._is_known([link.key]):
            return
        self.queue.seen.add(link.key)
        document = yield from self.run.read(link.url, 0.0, "link")
        self._tunnel.learn(link, document.worth if document else 0.0)
        if document is not None:
            self._learn_from(document, self.sites[link.host], link)

    def _offer_tunnel(self, anchors: Sequence[Anchor], before: TunnelLink | None, document: AssessedDocument) -> None:
        """Keep the links of a page that are no candidates."""
        further = [a for a in anchors if a.key not in self.queue.seen and host_of(a.url) in self.sites]
        self._tunnel.offer(document.url, further, before, document.worth >= RELEVANT)

    def _learn_from(
        self, document: AssessedDocument, site: TopicalSite | None, before: TunnelLink | None = None
    ) -> None:
        relevant = document.verdict >= RELEVANT
        if not document.copy:
            self.terms.add(document.example.title, document.example.text, relevant)
        if len(self.run.found) >= self._ranked_at + 12:
            self._ranked_at = len(self.run.found)
            self._ranked = self.terms.ranked() or self._ranked
        if site is None or document.copy:
            return
        anchors = article_links(document.outline, site.boilerplate)
        self._pass_over_known([anchor.key for anchor in anchors])
        if relevant:
            site.relevant += 1
            site.version += 1
            for anchor in anchors:
                if _is_descriptive(anchor):
                    self._offer_link(site, anchor, document.verdict)
        self._offer_tunnel(anchors, before, document)

    def _pass_over_known(self, keys: Sequence[str]) -> None:
        """Pages that need not be read count as seen."""
        unseen = [key for key in keys if key not in self.queue.seen]
        if unseen:
            self.queue.seen |= self._is_known(unseen)

    def _offer_link(self, site: TopicalSite, anchor: Anchor, parent: float) -> Candidate | None:
        if anchor.key in self.queue.seen or host_of(anchor.url) not in self.sites:
            return None
        return self._enqueue(
            site, self.model.candidate(anchor.url, anchor.key, anchor.text, anchor.block, "link", parent=parent)
        )

    def _offer(self, site: TopicalSite, result: SearchResult, source: Source, query: str) -> Candidate | None:
        key = canonical(result.url)
        if key in self.queue.seen:
            return None
        return self._enqueue(
            site,
            self.model.candidate(result.url, key, result.title, result.snippet, source, query=query, rank=result.rank),
        )

    def _enqueue(self, site: TopicalSite, candidate: Candidate) -> Candidate | None:
        """Queue a candidate. A title that another site has shown already is probably a copy, and ranks lower."""
        title = " ".join(words_of(candidate.example.title))
        if len(title) > 15 and self._titles.setdefault(title, candidate.host) != candidate.host:
            candidate.fixed[0] -= 4.0
            candidate.p = self.model.estimate(candidate)
        if not self.queue.offer(candidate):
            return None
        site.pending += candidate.p if candidate.p >= GOOD else 0.0
        return candidate


def _is_descriptive(anchor: Anchor) -> bool:
    return len(anchor.text.split()) + len(anchor.block.split()) >= _FEWEST_WORDS


def _yield_of(mass: float) -> float:
    """Documents per request of an action that finds `mass` relevant documents, at the usual precision."""
    return mass / (1.0 + mass / 0.9)
