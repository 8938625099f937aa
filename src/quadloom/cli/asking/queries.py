"""`quadloom queries`: SPARQL queries with a name, kept in the warehouse."""

from __future__ import annotations

import sys
import time

import msgspec
from cyclopts import App

from quadloom.cli.session import session
from quadloom.crawling.run.control import ask
from quadloom.crawling.subscriptions.saved_queries import (
    SavedQuery,
    checked_query,
    saved_queries,
    saved_query,
)
from quadloom.warehouse import Warehouse

queries = App(name="queries", help="Save SPARQL queries by name, and run them again.")


@queries.default
def list_() -> None:
    """List the saved queries."""
    s = session()
    with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
        found = saved_queries(warehouse.stores.catalog)
    if s.json:
        for saved in found:
            s.emit(saved)
        return
    if found:
        s.table(["name", "title", "description"], [[saved.name, saved.title, saved.description] for saved in found])
    else:
        s.say("no query is saved; to save one: `quadloom queries save NAME QUERY`")


@queries.command
def save(name: str, query: str, *, title: str = "", description: str = "") -> None:
    """Save a query, in place of one of the same name.

    Parameters
    ----------
    name
        small letters, digits and hyphens; it is part of the query's address, /query/NAME
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
    if ask(s.warehouse, "save-query", **msgspec.to_builtins(saved)) is None:
        with Warehouse.open(s.warehouse, settings=s.settings) as warehouse:
            warehouse.subscriptions.save_query(saved)
    s.say(f"saved as {saved.name}; to run it: `quadloom queries run {saved.name}`")


@queries.command
def run(name: str, *, format: str = "tsv") -> None:
    """Run a saved query.

    Parameters
    ----------
    name
        its name
    format
        json, xml, csv, tsv, spreadsheet for rows; turtle, nt, nq, trig, jsonld, rdfxml for graphs
    """
    s = session()
    with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
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
        its name
    """
    s = session()
    if ask(s.warehouse, "forget-query", name=name) is None:
        with Warehouse.open(s.warehouse, settings=s.settings) as warehouse:
            warehouse.subscriptions.forget_query(name)
    s.say(f"removed {name}")
