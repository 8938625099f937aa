"""The user's own link strategies: queries asked of every indexed page, in a process that can be killed.

Queries over a page's own graph run as soon as the page is settled, those over the index when it has the page; both
before the page is marked as indexed. What they find enters the frontier before the mark is written, or with it. A crash
in between repeats both, and adding a URL twice changes nothing. If a query fails or takes too long, only its links of
that page are lost, and the first such failure of each query is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from quadloom.crawling.ingest.index.indexer import IndexJob
from quadloom.documents.extract import discovery
from quadloom.documents.syntaxes.terms import iri
from quadloom.errors import QueryError, QueryLimit, SettingsError, StoreError
from quadloom.model.link import Discovery, Link
from quadloom.model.url import canonical, host_of, resolve
from quadloom.model.visit import Visit
from quadloom.settings import Settings
from quadloom.settings.loading import check_strategy_names
from quadloom.stores.protocols.queries import QuerySource

if TYPE_CHECKING:
    from quadloom.asking.sparql.service import QueryService
    from quadloom.asking.sparql.worker import QueryRequest
    from quadloom.documents.extract_queries import UserQuery
    from quadloom.stores.quads.json_results import Row


def check_strategies(settings: Settings) -> None:
    """Raises `SettingsError` or `QueryRefused` for a link strategy that cannot be used: an unknown name, a file that is
    missing, a query that does not parse. Reads nothing but these files and writes nothing, so it can go first."""
    if settings.crawl.strategies:
        UserQueryRunner(settings, QuerySource("."), lambda _text: None).close()


def _user_queries(names: Sequence[str]) -> tuple[UserQuery, ...]:
    if not any(name.endswith(".rq") for name in names):
        return ()  # as in most crawls, which need not know how links are written as statements
    from quadloom.documents.extract_queries import user_queries

    return user_queries(names)


def without_links(settings: Settings) -> Settings:
    """No link of a page is queued."""
    return msgspec.structs.replace(settings, crawl=msgspec.structs.replace(settings.crawl, strategies=[]))


class UserQueryRunner:
    """Asks each user query of each page. `source`: for `# over: index` queries, None if there is none.

    `notice` is called with the first failure of each query.
    """

    def __init__(
        self,
        settings: Settings,
        source: QuerySource | None,
        notice: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._source = source
        self._notice = notice
        self._warned: set[str] = set()
        check_strategy_names(settings.crawl.strategies)
        self.queries = _user_queries(settings.crawl.strategies)
        try:
            for query in self.queries:
                if query.over == "index" and source is None:
                    raise SettingsError(f"{query.name}: `# over: index` needs a quad store", hint="use `# over: page`")
                self._validate(query)
        except BaseException:
            self.close()
            raise

    def change(self, settings: Settings) -> None:
        """Other strategies, which the caller has checked. The next page is asked these."""
        self._settings = settings
        self.queries = _user_queries(settings.crawl.strategies)

    def discoveries(self, jobs: Sequence[IndexJob]) -> tuple[Discovery, ...]:
        """The URLs that the queries find on these pages, each once per page and query."""
        return (*self.ask_pages(jobs), *self.ask_index(jobs))

    def ask_pages(self, jobs: Sequence[IndexJob]) -> tuple[Discovery, ...]:
        return self._asked(jobs, "page")

    def ask_index(self, jobs: Sequence[IndexJob]) -> tuple[Discovery, ...]:
        return self._asked(jobs, "index")

    def _asked(self, jobs: Sequence[IndexJob], over: str) -> tuple[Discovery, ...]:
        found: list[Discovery] = []
        for query in [query for query in self.queries if query.over == over]:
            for job in jobs:
                if (job.links or query.over == "index") and iri(job.quads.graph) is not None:
                    found += self._ask(query, job)
        return tuple(found)

    def close(self) -> None:
        if "_service" in self.__dict__:
            self._service.close()

    @cached_property
    def _service(self) -> QueryService:
        """Imported when there is a query to ask, as there is in few crawls."""
        from quadloom.asking.sparql.service import QueryService

        return QueryService(self._source or QuerySource("."), self._settings.limits, processes=1)

    def _validate(self, query: UserQuery) -> None:
        """Find mistakes when the crawl starts, not at the first page."""
        from quadloom.asking.sparql.checks import check

        checked = check(query.text, self._settings.limits)
        if checked.form != "select":
            raise SettingsError(f"{query.name} is not a SELECT query", hint="select the variable ?target")
        try:
            self._service.run(self._request(query, "http://quadloom.invalid/", b"")).read()
        except QueryError as error:
            raise SettingsError(f"{query.name}: {error.message}", hint=error.hint) from None

    def _request(self, query: UserQuery, page: str, data: bytes | None) -> QueryRequest:
        from quadloom.asking.sparql.checks import template
        from quadloom.asking.sparql.prefixes import PREFIXES
        from quadloom.asking.sparql.worker import QueryRequest

        limits = self._settings.limits
        text = f"<{page}>".join(template(query.text, "page"))
        return QueryRequest(
            query=text,
            written=text,
            format="json",
            prefixes=PREFIXES,
            rows=limits.links_per_page,
            result_bytes=limits.body_bytes,
            seconds=limits.transform_seconds,
            data=data,
            fresh=True,
        )

    def _ask(self, query: UserQuery, job: IndexJob) -> list[Discovery]:
        data = job.quads.nquads + job.links if query.over == "page" else None
        try:
            answer = self._service.run(self._request(query, job.quads.graph, data))
            rows = answer.rows()
        except (QueryError, QueryLimit, StoreError) as error:
            if query.name not in self._warned:
                self._warned.add(query.name)
                self._notice(f"{query.name} on {job.quads.graph}: {error.message}")
            return []
        return _discoveries(rows, answer.variables, job)


def _discoveries(rows: Sequence[Row], variables: Sequence[str], job: IndexJob) -> list[Discovery]:
    name = "target" if "target" in variables else variables[0] if variables else ""
    graph = job.quads.graph
    visit = Visit(graph, canonical(graph), host_of(graph), job.fingerprint, job.depth)
    found: dict[int, Discovery] = {}
    for row in rows:
        term, anchor = row.get(name), row.get("anchor")
        href = resolve(str(term.value)) if term is not None and term.type == "uri" else None
        if href is not None:
            item = discovery(Link(href, graph, "other", str(anchor.value) if anchor else ""), visit)
            found.setdefault(item.fingerprint, item)
    return list(found.values())
