"""`quadloom queries`: SPARQL queries with a name, kept in the warehouse."""

from __future__ import annotations

import sys
import time

import msgspec
from cyclopts import App

from quadloom.cli.session import session
from quadloom.crawling.subscriptions.saved_queries import (
    SavedQuery,
    checked_query,
    saved_queries,
    saved_query,
)

queries = App(name="queries", help="Save SPARQL queries by name, and run them again.")


@queries.default
def list_() -> None:
    """List the saved queries."""
    s = session()
    with s.read() as warehouse:
        found = saved_queries(warehouse.stores.catalog)
    s.records(found, ["name", "title", "description"], lambda saved: [saved.name, saved.title, saved.description])
    if not found:
        s.say("no query is saved; to save one: `quadloom queries save NAME QUERY`")


@queries.command
def save(name: str, query: str, *, title: str = "", description: str = "") -> None:
    """Save a query; one of the same name is replaced.

    Parameters
    ----------
    name
        lower-case letters, digits and hyphens; it is part of the query's address, /query/NAME
    query
        the SPARQL query; `-` reads it from standard input
    title
        the heading of its page
    description
        a sentence that says what it answers
    """
    s = session()
    text = sys.stdin.read() if query == "-" else query
    given = SavedQuery(name=name, query=text, title=title, description=description, saved_at=time.time())
    saved = checked_query(given, s.settings.limits)
    s.change("save-query", msgspec.to_builtins(saved), lambda warehouse: warehouse.subscriptions.save_query(saved))
    s.say(f"saved as {saved.name}; to run it: `quadloom queries run {saved.name}`")


@queries.command
def run(name: str, *, format: str = "tsv") -> None:
    """Run a saved query.

    Parameters
    ----------
    name
        name of the query
    format
        json, xml, csv, tsv, spreadsheet for rows; turtle, nt, nq, trig, jsonld, rdfxml for graphs
    """
    s = session()
    with s.read() as warehouse:
        saved = saved_query(warehouse.stores.catalog, name)
        with warehouse.ask.queries.ask(saved.query, format="json" if s.json else format) as result:
            for chunk in result:
                sys.stdout.buffer.write(chunk)


@queries.command
def remove(name: str) -> None:
    """Remove a saved query.

    Parameters
    ----------
    name
        name of the query
    """
    s = session()
    s.change("forget-query", {"name": name}, lambda warehouse: warehouse.subscriptions.forget_query(name))
    s.say(f"removed {name}")
