"""The tools: what an agent can ask a warehouse. Each is a function with described arguments, and its docstring is what
a model reads before it calls it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Literal, TypeVar

import msgspec
from pydantic import Field

from quadloom.asking.search import moment
from quadloom.asking.sparql.prefixes import shorten
from quadloom.asking.things.formats import cells, headings
from quadloom.asking.urls import page_of
from quadloom.crawling.inspect.inspection import inspect
from quadloom.errors import NothingFound, UsageError
from quadloom.model.page import Page
from quadloom.model.timestamps import iso_time
from quadloom.stores.statistics import Statistics
from quadloom.stores.text_queries.snippets import offsets
from quadloom.warehouse import Warehouse
from quadloom.web.mcp.answers import NOTE, Evidence, Row, answer, evidence, visible
from quadloom.web.pages.changed import changed_rows
from quadloom.web.server.state import SiteState

Answer = TypeVar("Answer")
Tool = Callable[..., Awaitable[str]]

Limit = Annotated[int, Field(ge=1, le=200, description="most rows of the answer")]
Offset = Annotated[int, Field(ge=0, le=100_000, description="rows to skip: as `more` of the last answer says")]
PageUrl = Annotated[str, Field(description="address of a page of the warehouse, http or https")]
TypeName = Annotated[str, Field(description="type of things: `Event`, `schema:Event` or an IRI; `schema` lists them")]
When = Annotated[str, Field(description="a date (2026-01-31), a time (2026-01-31T12:00:00Z) or an age (7d, 2h)")]
Action = Literal["pause", "resume", "stop"]
_MARKDOWN = 20_000  # characters of a page in one answer
_MAX_VALUES = 20  # of one property
_MAX_SOURCES = 5  # of one value


class WarehouseTools:
    """`all` are those that only read; `control` changes the running crawl."""

    def __init__(self, site: SiteState) -> None:
        self._site = site
        self.all: tuple[Tool, ...] = (
            self.search,
            self.things,
            self.schema,
            self.entity,
            self.sparql,
            self.page,
            self.page_history,
            self.page_statements,
            self.changes,
            self.findings,
            self.sites,
            self.status,
            self.inspect,
        )

    async def _read(self, work: Callable[[Warehouse], Answer]) -> Answer:
        return await self._site.reader.run(work)

    async def search(
        self,
        words: Annotated[str, Field(description='words or a question; "a phrase", -without, prefix*')],
        type: Annotated[str, Field(description="only pages that describe a thing of this type, such as Event")] = "",
        site: Annotated[str, Field(description="only pages of this site, such as example.org")] = "",
        language: Annotated[str, Field(description="only pages in this language, such as en")] = "",
        since: Annotated[str, Field(description="only pages read since this date or age, such as 7d")] = "",
        limit: Limit = 10,
        offset: Offset = 0,
    ) -> str:
        """Find pages by words, best first. Use it when the question is about what texts say. For lists of things with
        their properties (events, products, people), `things` is better."""

        def found(warehouse: Warehouse) -> str:
            result = warehouse.search(
                words,
                type=type or (),
                site=site or (),
                language=language or (),
                since=since,
                limit=limit,
                offset=offset,
            )
            proofs = evidence(warehouse.stores.catalog, (hit.id for hit in result.hits))
            rows = [
                {
                    **_proof(proofs, hit.id),
                    "title": hit.title,
                    "snippet": offsets(hit.snippet)[0],
                    "types": [shorten(iri) for iri in hit.types],
                    "language": hit.language,
                    "gone": hit.gone,
                }
                for hit in result.hits
            ]
            notes = [f"searched for {one.used!r} instead of {one.asked!r}" for one in result.corrections]
            return answer(rows, total=result.total, offset=offset, not_found_words=result.missing, notes=notes)

        return await self._read(found)

    async def things(
        self,
        type: TypeName,
        where: Annotated[
            list[str],
            Field(
                description="conditions `property operator value`, all of which hold; operators: is, not, contains,"
                " above, below, from, before, exists, missing. Examples: `startDate from 2026-05-01`,"
                " `location contains Ghent`"
            ),
        ] = [],  # noqa: B006 - pydantic copies it
        columns: Annotated[list[str], Field(description="properties to show; the most used ones by default")] = [],  # noqa: B006
        sort: Annotated[str, Field(description="property to sort by; `-price` = descending")] = "",
        limit: Limit = 25,
        offset: Offset = 0,
    ) -> str:
        """List things of a type as rows, with conditions on their properties: events in May, products below a price.
        One row is one thing, also if several pages describe it. Call `schema` first to learn types and properties."""

        def found(warehouse: Warehouse) -> str:
            result = warehouse.things(type, where=where, columns=columns, sort=sort, limit=offset + limit)
            names, rows = headings(result.table), result.table.rows[offset:]
            proofs = evidence(warehouse.stores.catalog, (page for row in rows for page in row.sources[:_MAX_SOURCES]))
            listed = [
                {
                    "thing": row.iri,
                    "label": row.label,
                    **{name: value for name, value in zip(names, cells(row), strict=True) if value},
                    "stated_by": [_proof(proofs, page) for page in row.sources[:_MAX_SOURCES]],
                }
                for row in rows
            ]
            return answer(listed, total=result.total, offset=offset, notes=result.hints, sparql=result.sparql)

        return await self._read(found)

    async def schema(
        self,
        type: Annotated[str, Field(description="a type, for its properties; empty = all types")] = "",
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> str:
        """Which types of things the warehouse has, and how many; or the properties of one type, with how many of its
        things have each and what kind of value it holds. Call it before `things` and `sparql`."""

        def found(warehouse: Warehouse) -> str:
            if type:
                tables = warehouse.ask.tables()
                iri = tables.resolve(type)
                columns = tables.profile(iri).columns
                rows = [
                    {
                        "property": shorten(column.path[-1]),
                        "path": " / ".join(map(shorten, column.path)),
                        "kind": column.kind,
                        "share_of_things": round(column.share, 3),
                    }
                    for column in columns
                ]
                return answer(rows[offset : offset + limit], total=len(rows), offset=offset, type=iri)
            classes = (+Statistics.saved(warehouse.stores.catalog).classes).most_common()
            rows = [{"type": shorten(iri), "iri": iri, "descriptions": count} for iri, count in classes]
            return answer(rows[offset : offset + limit], total=len(rows), offset=offset)

        return await self._read(found)

    async def entity(
        self, iri: Annotated[str, Field(description="IRI of a thing, as `things` and `sparql` give it")]
    ) -> str:
        """Everything that is stated about one thing: each value with the pages that state it and when they were read.
        Values that pages contradict each other in are marked."""

        def found(warehouse: Warehouse) -> str:
            entity = warehouse.ask.entity(iri)
            proofs = evidence(warehouse.stores.catalog, entity.sources)
            rows = [
                {
                    "property": shorten(item.iri),
                    "contradicted": item.contradicted,
                    "values": [
                        {
                            "value": one.value.text,
                            **({"language": one.value.language} if one.value.language else {}),
                            "stated_by": [_proof(proofs, page) for page in one.sources[:_MAX_SOURCES]],
                        }
                        for one in item.statements[:_MAX_VALUES]
                    ],
                }
                for item in entity.properties
            ]
            return answer(
                rows,
                thing=entity.iri,
                label=entity.label,
                types=[shorten(name) for name in entity.types],
                same_as=entity.names[1:],
                cut=entity.truncated,
            )

        return await self._read(found)

    async def sparql(
        self,
        query: Annotated[
            str, Field(description="SPARQL 1.1 SELECT or ASK; prefixes such as schema: need no PREFIX line")
        ],
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> str:
        """Ask the graph in SPARQL when no other tool fits: counts, joins, paths. Each page is a named graph, and its
        name is the page's address, so `GRAPH ?page { … }` says which page states something."""

        def found() -> str:
            with self._site.queries.ask(query, format="json", client="mcp") as result:
                if result.form == "ask":
                    return answer([{"answer": result.boolean()}])
                rows = list(result.rows())
            listed = [{name: _text(value) for name, value in row.items()} for row in rows[offset : offset + limit]]
            proofs = self._site.reader.ask(
                lambda warehouse: evidence(
                    warehouse.stores.catalog,
                    (value for row in listed for value in row.values() if value.startswith("http")),
                )
            )
            return answer(listed, total=len(rows), offset=offset, pages=list(proofs.values())[:_MAX_VALUES])

        return await self._site.querying.run(found)

    async def page(
        self,
        url: PageUrl,
        at: Annotated[str, Field(description="as the page was at this date or time; empty = newest visit")] = "",
        offset: Annotated[int, Field(ge=0, description="characters to skip, as `more` says")] = 0,
    ) -> str:
        """Read the main part of one page as Markdown, as it was archived. Use it after `search` for the whole text."""

        def archived(warehouse: Warehouse) -> tuple[Page, Row]:
            history = warehouse.ask.history(url)
            visit = history.at(moment(at)) if at else None
            ref = visit.archive if visit is not None else history.page.archive
            if ref is None:
                raise NothingFound(f"no version of {url} is in the archive", hint="`page_history` lists its visits")
            page = warehouse.stores.archive.get(ref)
            if not isinstance(page, Page):
                raise NothingFound(f"that visit of {url} got no page", hint="`page_history` lists its visits")
            return page, {"page": url, "visited": iso_time(page.fetched_at), "record": Evidence.place(ref)}

        page, proof = await self._read(archived)

        def read() -> str:
            seen = inspect(
                page.body,
                settings=self._site.settings,
                url=page.final_url,
                content_type=page.header("content-type") or None,
            )
            if seen.failure:
                raise UsageError(seen.failure, hint="`page_statements` has what was read of it")
            return seen.markdown

        text = await self._site.fetching.run(read)
        end = offset + _MARKDOWN
        head: Row = {"note": NOTE, **proof, "characters": len(text), "markdown": visible(text[offset:end], cut=False)}
        if len(text) > end:
            head["more"] = f"the page goes on: ask again with offset={end}"
        return msgspec.json.encode(head).decode()

    async def page_history(self, url: PageUrl, limit: Limit = 50, offset: Offset = 0) -> str:
        """All visits of one page, newest first: when, with which result, and where the archived record is."""

        def found(warehouse: Warehouse) -> str:
            history = warehouse.ask.history(url)
            rows = [
                {
                    "page": url,
                    "visited": iso_time(visit.fetched_at),
                    "record": Evidence.place(visit.archive),
                    "status": visit.status,
                    "outcome": str(visit.outcome),
                }
                for visit in history.visits
            ]
            return answer(rows[offset : offset + limit], total=len(rows), offset=offset)

        return await self._read(found)

    async def page_statements(self, url: PageUrl, limit: Limit = 100, offset: Offset = 0) -> str:
        """The statements that one page makes, as it was read last: subject, property, value."""

        def found(warehouse: Warehouse) -> str:
            row = page_of(warehouse.stores.catalog, url)
            if row is None:
                raise NothingFound(f"{url} was never visited", hint="`search` finds pages")
            lines = warehouse.stores.quads.graph(row.graph).decode("utf-8", "replace").splitlines()
            proof = _proof(evidence(warehouse.stores.catalog, [url]), url)
            rows = [{"statement": line.rpartition(" <")[0]} for line in lines[offset : offset + limit]]
            return answer(rows, total=len(lines), offset=offset, stated_by=proof)

        return await self._read(found)

    async def changes(self, since: When, limit: Limit = 25, offset: Offset = 0) -> str:
        """Pages that are new or changed since a time, newest first, with what changed: property, before, after."""

        def found(warehouse: Warehouse) -> str:
            begin = moment(since)
            rows = changed_rows(warehouse, begin, offset + limit + 1)[offset:]
            listed = []
            for row in rows[:limit]:
                is_new = row.first_seen >= begin
                entry: Row = {
                    "page": row.href,
                    "visited": iso_time(row.fetched_at),
                    "record": Evidence.place(row.archive),
                    "title": row.title,
                    "what": "new" if is_new else "changed",
                }
                if not is_new:
                    difference = warehouse.ask.changes(row.href, begin)
                    readable = warehouse.ask.readable(difference.added, difference.removed)
                    entry["values"] = [str(one) for one in readable[:_MAX_VALUES]]
                    if difference.reason:
                        entry["unknown"] = difference.reason
                listed.append(entry)
            total = offset + len(rows) if len(rows) <= limit else None
            notes = [] if total is not None else [f"there are more: ask again with offset={offset + limit}"]
            return answer(listed, total=total, offset=offset, since=iso_time(begin), notes=notes)

        return await self._site.scanner.run(found)

    async def findings(
        self,
        site: Annotated[str, Field(description="only pages of this site or host")] = "",
        code: Annotated[str, Field(description="only findings with this code, such as image-missing")] = "",
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> str:
        """Mistakes in the structured data of pages, as of their last visit, with line and advice."""

        def found(warehouse: Warehouse) -> str:
            located = list(warehouse.ask.findings(codes=code or (), site=site or ()))
            part = located[offset : offset + limit]
            proofs = evidence(warehouse.stores.catalog, (one.url for one in part))
            rows = [
                {
                    **_proof(proofs, one.url),
                    "code": one.finding.code,
                    "severity": one.finding.severity,
                    "message": one.finding.message,
                    "advice": one.finding.advice,
                    "line": one.finding.line,
                }
                for one in part
            ]
            return answer(rows, total=len(located), offset=offset)

        return await self._site.scanner.run(found)

    async def sites(self, limit: Limit = 50, offset: Offset = 0) -> str:
        """The sites of the warehouse, with the number of pages read of each, the largest first."""

        def found(warehouse: Warehouse) -> str:
            sites = warehouse.ask.statistics(limit=100_000).sites
            rows = [{"site": name, "pages": count} for name, count in sites]
            return answer(rows[offset : offset + limit], total=len(rows), offset=offset)

        return await self._site.scanner.run(found)

    async def status(self) -> str:
        """What the warehouse holds and what its crawl is doing: pages, statements, queue, errors."""
        running = self._site.crawl.report()
        return answer([running if running else await self._read(lambda warehouse: warehouse.ask.status())])

    async def inspect(self, url: Annotated[str, Field(description="any public http or https address")]) -> str:
        """Fetch one page now, politely, and show what a crawl would read of it: types, statements, findings. Nothing is
        stored. Private addresses are refused."""

        def found() -> str:
            seen = inspect(url, settings=self._site.settings)
            if seen.failure:
                raise UsageError(
                    f"{url}: {seen.failure}", hint="check the address; robots.txt and the guard are obeyed"
                )
            findings = [f"{one.code}: {one.message}" for one in seen.findings[:_MAX_VALUES]]
            row = {
                "page": seen.url,
                "visited": "now; nothing is stored",
                "record": "",
                "title": seen.title,
                "status": seen.status,
                "robots": seen.robots,
                "statements": seen.quads,
                "links": len(seen.links),
                "findings": findings,
                "markdown": seen.markdown[:_MARKDOWN],
            }
            return answer([row])

        if not url.lower().startswith(("http://", "https://")):
            raise UsageError(f"{url[:100]} is no address of a page", hint="write http:// or https:// in front")
        return await self._site.fetching.run(found)

    async def control(self, action: Action) -> str:
        """Pause, resume or stop the running crawl."""
        done = await self._site.waiting.run(lambda: self._site.send(action))
        if done is None:
            raise UsageError("no crawl is running", hint="`status` shows the state of the warehouse")
        return answer([{"action": action, "done": True}])


def _proof(proofs: dict[str, Evidence], page: str) -> Row:
    found = proofs.get(page)
    return {"page": page, "visited": found.visited if found else "", "record": found.record if found else ""}


def _text(value: object) -> str:
    return str(getattr(value, "value", value) if value is not None else "")
