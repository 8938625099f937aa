"""Orders of first reads on graphs that are known as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadloom_lab.scheduling.first_reads import LinkGraph, graph_of_folder, harvest, simulated_graph


def deep_graph() -> LinkGraph:
    """A long listing of leaves, and behind it a part of the site whose pages all recommend a few."""
    leaves, deep = range(1, 401), range(401, 601)
    links: list[tuple[int, ...]] = [(*leaves, 401)]
    links += [(0,) for _ in leaves]
    links += [(page + 1, *range(591, 600)) if page < 599 else (401,) for page in deep]
    return LinkGraph(tuple(f"http://a.example/{page}" for page in range(601)), tuple(links)[:601]).reachable()


def test_guided_reads_find_importance_that_is_deep_and_lose_nothing_where_it_is_not() -> None:
    graph = deep_graph()
    plain, guided = harvest(graph, "breadth-first", 0.0), harvest(graph, "breadth-first", 0.5)
    assert plain.pages == guided.pages == len(graph.urls)
    assert guided.mean > plain.mean + 0.1 and guided.at[3] > plain.at[3] + 0.1
    graph = simulated_graph(1500, 15)
    plain, guided = harvest(graph, "breadth-first", 0.0), harvest(graph, "breadth-first", 0.5)
    assert guided.mean > plain.mean - 0.01
    assert harvest(graph, "random", 0.0).mean < guided.mean - 0.03


def test_the_links_of_a_folder(tmp_path: Path) -> None:
    pages = {
        "index.html": '<a href="guide/">g</a> <a class="x" href=api/a.html#top>a</a> <a href="https://b.example/">b</a>',
        "guide/index.html": '<a href="../api/b%20c.html?x=1">b</a> <a href="missing.html">m</a>',
        "api/a.html": "<a href='../index.html'>up</a>",
        "api/b c.html": "nothing",
        "api/orphan.html": '<a href="a.html">a</a>',
    }
    for name, text in pages.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    graph = graph_of_folder(tmp_path)
    links = {graph.urls[page]: {graph.urls[target] for target in targets} for page, targets in enumerate(graph.links)}
    home, guide, a, b = (
        "http://top.example/index.html",
        "http://guide.example/guide/index.html",
        "http://api.example/api/a.html",
        "http://api.example/api/b c.html",
    )
    assert links == {home: {guide, a}, guide: {b}, a: {home}, b: set()}
    assert graph.importance().sum() == pytest.approx(1.0)
