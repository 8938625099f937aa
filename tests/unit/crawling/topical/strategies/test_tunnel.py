"""Following links that say nothing: which group goes first, how far a path goes, what a crawl finds through it."""

from __future__ import annotations

from quadloom.crawling.topical.anchors import Anchor
from quadloom.crawling.topical.strategies.tunnel import _LONGEST, Tunnel, TunnelLink
from quadloom_lab.topical.evaluation import LayoutWorld


def link(path: str, signature: str = "a. li.") -> Anchor:
    url = f"http://s.test{path}"
    return Anchor(url, url, "more", signature, "")


def taken(tunnel: Tunnel) -> TunnelLink:
    found = tunnel.best(set())
    assert found is not None
    tunnel.take(found[1])
    return found[1]


def test_addresses_like_those_that_led_to_relevant_pages_go_first() -> None:
    tunnel = Tunnel()
    tunnel.offer("http://s.test/", [link("/q/1"), link("/p/1"), link("/q/2"), link("/p/2")], None, relevant=True)
    for _ in range(2):
        chosen = taken(tunnel)
        tunnel.learn(chosen, float("/p/" in chosen.url))
    assert "/p/" in taken(tunnel).url


def test_a_link_to_a_page_that_led_to_a_relevant_one_has_a_share_of_it() -> None:
    tunnel = Tunnel()
    tunnel.offer(
        "http://s.test/", [link("/list/1", "a.old"), link("/list/2", "a.old"), link("/x/1")], None, relevant=True
    )
    first = taken(tunnel)
    tunnel.learn(first, 0.0)
    tunnel.offer(first.url, [link("/post/1", "a.teaser")], first, relevant=False)
    for _ in range(2):
        tunnel.learn(TunnelLink("", "", "s.test", ("teaser", "", "", ""), 1, first), 1.0)
    assert "/list/" in taken(tunnel).url


def test_a_path_off_the_topic_ends() -> None:
    tunnel = Tunnel()
    tunnel.offer("http://s.test/", [link("/0")], None, relevant=False)
    followed = 0
    while tunnel.best(set()) is not None:
        at = taken(tunnel)
        followed += 1
        tunnel.learn(at, 0.0)
        tunnel.offer(at.url, [link(f"/{followed}")], at, relevant=False)
    assert followed == _LONGEST and len(tunnel) == 0


def test_a_barred_host_waits() -> None:
    tunnel = Tunnel()
    tunnel.offer("http://s.test/", [link("/0")], None, relevant=True)
    assert tunnel.best({"s.test"}) is None and tunnel.best(set()) is not None


def test_a_chain_whose_links_say_nothing_is_followed_to_its_end() -> None:
    """Relevant and other pages take turns; each has four links that lead nowhere."""
    world = LayoutWorld("chain", 11)
    ours, best_first = world.run("adaptive", 250), world.run("best-first", 250)
    assert ours.relevant > best_first.relevant
    assert ours.requests == 250, "the budget is spent as long as links wait"
