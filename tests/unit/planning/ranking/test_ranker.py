"""Page ranks during a crawl: from its links, by OPIC for new pages, raised by subscriptions, kept over a restart."""

from __future__ import annotations

import time
import tracemalloc
from array import array
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from quadloom.errors import ChildFailed
from quadloom.model.subscription import Subscription, personalization
from quadloom.model.url import fingerprint
from quadloom.planning.ranking import page_ranks, ranker
from quadloom.planning.ranking.link_blocks import LinkBlocks, LinkRows
from quadloom.planning.ranking.page_ranks import MOVED, Fingerprints, PageRanks, RankMasks, SortedPages, page_rank_of
from quadloom.planning.ranking.ranker import PageRanker
from quadloom.planning.ranking.ranking_job import RankingOrder, RankingResult
from quadloom.planning.ranking.ranking_process import RankingInThread, RankingProcess, start_ranking
from quadloom.planning.ranking.usefulness import rank
from quadloom.process.channel import ChildProcess
from quadloom.settings import FreshnessSettings
from waiting import wait_until

NOW = 1_000_000.0
KEYS = [fingerprint(f"https://a.example/{n}") for n in range(40)]


def packed(*numbers: int) -> bytes:
    return array("q", [KEYS[number] for number in numbers]).tobytes()


def star(ranking: PageRanker) -> None:
    """All pages link to page 0; page 0 links to 1."""
    ranking.append(KEYS[0], packed(1))
    for number in range(1, 30):
        ranking.append(KEYS[number], packed(0))
    ranking.flush()


def make(folder: Path, *subscriptions: Subscription, structured: tuple[int, ...] = (), chi: float = 1.0) -> PageRanker:
    return PageRanker(
        folder, FreshnessSettings(chi=chi), lambda: structured, lambda: subscriptions, runner=RankingInThread()
    )


def weigh(ranking: PageRanker, keys: list[int], *, are_data: bool = False) -> list[float | None]:
    found = ranking.weigh(keys, [are_data] * len(keys))
    return [None if rank is None else rank.weight for rank in found]


def test_what_many_link_to_weighs_most(tmp_path: Path) -> None:
    ranking = make(tmp_path)
    assert weigh(ranking, KEYS[:2]) == [None, None]
    star(ranking)
    ranking.recompute(NOW)
    found = weigh(ranking, [*KEYS[:30], KEYS[39]])
    weights = [weight for weight in found if weight is not None]
    assert found[30] is None and len(weights) == 30
    assert np.mean(weights) == pytest.approx(1.0)
    assert weights[0] > weights[1] > 3.0 * max(weights[2:])


def test_a_published_page_has_importance_from_its_publication(tmp_path: Path) -> None:
    plain = make(tmp_path / "plain")
    published = PageRanker(
        tmp_path / "published",
        FreshnessSettings(),
        lambda: (),
        lambda: (),
        lambda: ["https://a.example/7", "x:unknown"],
        runner=RankingInThread(),
    )
    for ranking in (plain, published):
        star(ranking)
        ranking.recompute(NOW)
    before, after = weigh(plain, KEYS[7:9]), weigh(published, KEYS[7:9])
    assert before[0] == before[1]
    assert after[0] is not None and after[1] is not None
    assert after[0] > 2 * after[1]


def test_weights_are_those_of_the_fixpoint(tmp_path: Path) -> None:
    chance = np.random.default_rng(5)
    links = {n: sorted({int(m) for m in chance.integers(0, 30, 4)} - {n}) for n in range(30)}
    ranking = make(tmp_path)
    for source, targets in links.items():
        ranking.append(KEYS[source], packed(*targets))
    ranking.flush()
    ranking.recompute(NOW)
    rows = [n for n in range(30) for _ in links[n]]
    columns = [m for n in range(30) for m in links[n]]
    csr = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(30, 30))
    expected = rank(LinkBlocks(LinkRows(csr.indptr, csr.indices)), np.zeros(30, dtype=bool)).importance * 30
    assert weigh(ranking, KEYS[:30]) == pytest.approx(list(expected), rel=1e-3)


def test_a_page_read_again_replaces_its_links(tmp_path: Path) -> None:
    ranking = make(tmp_path)
    star(ranking)
    for number in range(1, 30):
        ranking.append(KEYS[number], packed(2 if number != 2 else 3))
    ranking.flush()
    ranking.recompute(NOW)
    weights = weigh(ranking, KEYS[:4])
    assert weights[0] is not None and weights[2] is not None and weights[2] > 10.0 * weights[0]


def test_pages_found_after_a_fixpoint_have_an_estimate(tmp_path: Path) -> None:
    ranking = make(tmp_path)
    star(ranking)
    ranking.recompute(NOW)
    ranking.append(KEYS[0], packed(1, 35))
    ranking.append(KEYS[5], packed(0, 36))
    ranking.estimate_new(NOW + 1.0)
    from_hub, from_leaf, unlinked = weigh(ranking, [KEYS[35], KEYS[36], KEYS[39]])
    assert from_hub is not None and from_leaf is not None and unlinked is None
    assert from_hub > from_leaf > 0.0


def test_pages_without_an_estimate_if_too_many_are_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What OPIC remembers between two rankings is bounded; the next ranking has all of them."""
    monkeypatch.setattr(ranker, "_OPIC_PAGES", 3)
    ranking = make(tmp_path)
    star(ranking)
    ranking.recompute(NOW)
    ranking.append(KEYS[0], packed(1, *range(30, 36)))
    ranking.append(KEYS[35], packed(30, 31))  # read, but not remembered
    ranking.append(KEYS[30], packed(0, 36))
    ranking.flush()
    ranking.estimate_new(NOW + 1.0)
    found = weigh(ranking, KEYS[30:37])
    assert [weight is not None for weight in found] == [True] * 3 + [False] * 4
    ranking.recompute(NOW + 2.0)
    assert None not in weigh(ranking, KEYS[30:37])


@pytest.mark.parametrize(
    ("new", "share", "early"), [(5, 1.0, False), (30, 1.0, True), (30, 0.0, False)], ids=["few", "many", "too dear"]
)
def test_a_ranking_comes_early_if_links_grew_by_a_third_and_it_may_be_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: int, share: float, early: bool
) -> None:
    """The matrix has 30 links; the next regular ranking would be in an hour."""
    monkeypatch.setattr(ranker, "_OPIC_EVERY", 0.02)
    monkeypatch.setattr(ranker, "_OPIC_PAGES", 2)
    monkeypatch.setattr(ranker, "_LEAST_GROWTH", 1)
    monkeypatch.setattr(ranker, "_SHARE", share)
    ranking = make(tmp_path)
    star(ranking)
    ranking.recompute(NOW)
    ranking.append(KEYS[0], array("q", [fingerprint(f"https://b.example/{n}") for n in range(new)]).tobytes())
    ranking.flush()
    errors: list[BaseException] = []
    last = fingerprint(f"https://b.example/{new - 1}")  # beyond what is remembered
    ranking.start(errors.append)
    patience = time.monotonic() + (30.0 if early else 0.5)
    while weigh(ranking, [last]) == [None] and time.monotonic() < patience:
        time.sleep(0.02)
    ranking.close()
    assert not errors
    assert (weigh(ranking, [last]) != [None]) is early


def test_all_rankings_of_a_growing_web_stay_within_their_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crawl that reads 600,000 links at 100 µs of CPU each. A ranking costs half a second and 1 µs a link."""
    spent, order = [0.0], []

    class Priced:
        def run(self, order_: RankingOrder) -> RankingResult:
            order.append(ranking._appended)
            return RankingResult(links=ranking._appended, cpu_seconds=0.5 + 1e-6 * ranking._appended)

        def close(self) -> None: ...

    monkeypatch.setattr("quadloom.planning.ranking.ranker.time.process_time", lambda: spent[0])
    ranking = PageRanker(tmp_path, FreshnessSettings(), lambda: (), lambda: (), runner=Priced())
    ranking.recompute(NOW)  # the first comes by the clock
    for number in range(600):
        ranking.append(number, packed(0) * 1000)
        spent[0] += 0.1
        if ranking._has_grown():
            ranking.recompute(NOW)
            assert ranking.cpu_seconds <= 0.05 * spent[0]
    ranking.close()
    assert len(order) >= 3
    assert all(later - earlier >= max(50_000, earlier / 3) for earlier, later in pairwise(order))


def test_a_ranking_in_a_child_process_is_the_same(tmp_path: Path) -> None:
    here, child = make(tmp_path / "here"), make(tmp_path / "child")
    child._runner = RankingProcess()
    for ranking in (here, child):
        star(ranking)
        ranking.recompute(NOW)
    assert weigh(child, KEYS[:31]) == weigh(here, KEYS[:31])
    assert child.cpu_seconds > 0.0
    first, second = here.take_moved(), child.take_moved()
    assert first is not None and second is not None and np.array_equal(first, second)
    assert child.take_moved() is None
    child.close()


def start_and_kill() -> ChildProcess:
    """A child that dies before it answers."""
    child = start_ranking()
    child.process.kill()
    return child


def test_a_ranking_that_is_killed_costs_only_that_ranking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranker, "_OPIC_EVERY", 0.02)
    notices: list[str] = []
    errors: list[BaseException] = []
    ranking = PageRanker(
        tmp_path, FreshnessSettings(), lambda: (), lambda: (), runner=RankingInThread(), notice=notices.append
    )
    star(ranking)
    ranking.recompute(NOW)
    before = weigh(ranking, KEYS[:30])
    ranking._runner = RankingProcess(start_and_kill)
    ranking.append(KEYS[7], packed(0, 8))
    ranking.start(errors.append)
    ranking.prefer(2.0)
    wait_until(lambda: notices)
    assert "signal 9" in notices[0]
    assert weigh(ranking, KEYS[:30]) == before
    ranking.close()
    assert not errors
    again = make(tmp_path)
    assert weigh(again, KEYS[:30]) == before
    again.recompute(NOW + 1.0)
    assert weigh(again, KEYS[:30]) != before, "the links of the killed ranking are in the next one"


def test_an_error_in_the_child_is_named(tmp_path: Path) -> None:
    order = RankingOrder(directory=str(tmp_path / "file" / "links"), freshness=FreshnessSettings(), data_weight=1.0)
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ChildFailed, match="could not be ranked"):
        RankingProcess().run(order)


def test_closing_ends_a_ranking_in_progress(tmp_path: Path) -> None:
    runner = RankingProcess()
    runner.close()
    with pytest.raises(ChildFailed, match="stopped"):
        runner.run(RankingOrder(directory=str(tmp_path), freshness=FreshnessSettings(), data_weight=1.0))


def test_a_warm_start_saves_passes_and_finds_the_same(tmp_path: Path) -> None:
    chance = np.random.default_rng(8)
    links = {n: chance.integers(0, 40, 5).tolist() for n in range(35)}
    passes = []
    for name in ("warm", "cold"):
        ranking = make(tmp_path / name, structured=tuple(KEYS[3:6]))
        for source, targets in links.items():
            ranking.append(KEYS[source], packed(*targets))
        ranking.flush()
        ranking.run()
        assert ranking.run().passes <= 2, "nothing is new"
        ranking.append(KEYS[3], packed(4, 5))
        ranking.flush()
        if name == "cold":
            (tmp_path / name / "vectors.npy").unlink()
        passes.append(ranking.run().passes)
        ranking.recompute(NOW)
    assert passes[0] < passes[1]
    warm, cold = (PageRanks.load(tmp_path / name).table for name in ("warm", "cold"))
    assert np.allclose(warm["weight"], cold["weight"], rtol=1e-2)


def test_links_that_wait_for_estimates_are_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranker, "_OPIC_BACKLOG", 1000)
    ranking = make(tmp_path)
    for number in range(30):
        ranking.append(KEYS[number], packed(*range(10)))
    assert ranking._read_bytes == sum(len(targets) for _, targets in ranking._read) <= 1000
    ranking.estimate_new(NOW)
    assert ranking._read_bytes == 0 and not ranking._read
    assert weigh(ranking, KEYS[:10]) != [None] * 10


def test_subscribed_pages_are_raised_into_the_top(tmp_path: Path) -> None:
    plain, wanted = make(tmp_path / "a"), make(tmp_path / "b", Subscription(id="s", urls=("https://a.example/17",)))
    for ranking in (plain, wanted):
        star(ranking)
        ranking.recompute(NOW)
    before, after = weigh(plain, KEYS[:30]), weigh(wanted, KEYS[:30])
    assert before[17] == pytest.approx(before[16])
    top = sorted((weight or 0.0 for weight in after), reverse=True)[:2]  # 5 % of 30 pages
    assert (after[17] or 0.0) >= top[-1]


def test_jumps_go_to_the_virtual_pages_of_subscriptions() -> None:
    assert personalization(10, [np.array([], dtype=np.intp)]) is None
    vector = personalization(10, [np.array([3, 4]), np.array([4])])
    assert vector is not None and vector.sum() == pytest.approx(1.0)
    assert vector[0] == pytest.approx(0.08) and vector[3] == pytest.approx(0.13) and vector[4] == pytest.approx(0.23)


def test_a_restart_begins_with_the_last_weights(tmp_path: Path) -> None:
    ranking = make(tmp_path)
    star(ranking)
    ranking.recompute(NOW)
    ranking.close()
    again = make(tmp_path)
    assert weigh(again, KEYS[:30]) == weigh(ranking, KEYS[:30])
    assert PageRanks.load(tmp_path / "nowhere").lookup([1]) == [None]
    (known,) = ranking.weigh([KEYS[3]], [False])
    assert page_rank_of(tmp_path, KEYS[3]) == known
    assert page_rank_of(tmp_path, KEYS[39]) is None and page_rank_of(tmp_path / "nowhere", KEYS[3]) is None


def test_chi_is_the_mean_weight_of_data_that_was_read(tmp_path: Path) -> None:
    """Unread pages must not count: they would raise ordinary pages that were read above their mean of 1."""
    data = tuple(KEYS[20:30])
    ranking = make(tmp_path, structured=data, chi=3.0)
    for number in range(10):
        ranking.append(KEYS[number], packed((number + 1) % 10, 20 + number, 30 + number))  # 30 … 39 are never read
    for number in range(20, 30):
        ranking.append(KEYS[number], packed())
    ranking.flush()
    ranking.recompute(NOW)
    ordinary, structured = weigh(ranking, KEYS[:10]), weigh(ranking, list(data), are_data=True)
    assert np.mean([weight or 0.0 for weight in ordinary]) == pytest.approx(1.0, rel=1e-5)
    assert np.mean([weight or 0.0 for weight in structured]) == pytest.approx(3.0, rel=1e-5)
    taken_for_a_page, is_data = weigh(ranking, KEYS[30:31])[0], weigh(ranking, KEYS[30:31], are_data=True)[0]
    assert taken_for_a_page and is_data and is_data > 2.0 * taken_for_a_page, "weighed as what it turned out to be"
    ranking.prefer(6.0)
    ranking.recompute(NOW + 1.0)
    assert np.mean([weight or 0.0 for weight in weigh(ranking, list(data), are_data=True)]) == pytest.approx(6.0)


def test_only_pages_that_moved_are_published_again(tmp_path: Path) -> None:
    ranking = make(tmp_path)
    assert ranking.take_moved() is None
    star(ranking)
    ranking.recompute(NOW)
    first = ranking.take_moved()
    assert first is not None and set(first.tolist()) == set(KEYS[:30]), "none of them was published before"
    assert ranking.take_moved() is None
    before = weigh(ranking, KEYS[:30])
    ranking.append(KEYS[7], packed(0, 8))
    ranking.flush()
    ranking.recompute(NOW + 1.0)
    second = ranking.take_moved()
    assert second is not None and 0 < len(second) < 5 and KEYS[8] in second
    for key, old, new in zip(KEYS[:30], before, weigh(ranking, KEYS[:30]), strict=True):
        assert old is not None and new is not None
        assert (abs(new - old) > MOVED * min(new, old)) == (key in second) or new == old


def test_a_slow_drift_is_published_in_the_end(tmp_path: Path) -> None:
    """If ranks were compared with the last ranking and not with the published values, small steps would be lost."""
    ranking = make(tmp_path)
    star(ranking)
    ranking.recompute(NOW)
    ranking.take_moved()
    published = 0
    for step in range(9, 25):
        ranking.append(KEYS[step], packed(0, 8, *range(25, 30)))
        ranking.flush()
        ranking.recompute(NOW + step)
        moved = ranking.take_moved()
        published += moved is not None and KEYS[8] in moved
    assert 2 <= published < 16


def test_others_see_links_while_the_crawl_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ranking = make(tmp_path)
    ranking.append(KEYS[1], packed(0))
    assert not sum(file.stat().st_size for file in tmp_path.glob("*.edges"))
    monkeypatch.setattr("quadloom.planning.ranking.ranker._FLUSH_SECONDS", 0.0)
    ranking.append(KEYS[2], packed(0))
    assert sum(file.stat().st_size for file in tmp_path.glob("*.edges"))


def test_a_matrix_beyond_its_memory_is_read_from_disk_and_ranks_the_same(tmp_path: Path) -> None:
    chance = np.random.default_rng(6)
    links = {n: sorted({int(m) for m in chance.integers(0, 40, 5)} - {n}) for n in range(35)}
    found = []
    for name, memory in (("memory", 1 << 30), ("disk", 100)):
        settings = FreshnessSettings(importance_memory=memory)
        ranking = PageRanker(tmp_path / name, settings, lambda: KEYS[3:6], lambda: (), runner=RankingInThread())
        for source, targets in links.items():
            ranking.append(KEYS[source], packed(*targets))
        ranking.flush()
        ranking.recompute(NOW)
        assert bool(list((tmp_path / name).glob("matrix-*/blocks-*"))) == (name == "disk")
        found.append(weigh(ranking, KEYS))
        ranking.close()
    in_memory, on_disk = found
    assert on_disk == pytest.approx(in_memory, rel=1e-4)


def test_ranks_are_published_in_parts_and_take_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of all pages for each step took 150 bytes a page: half a gigabyte for three million URLs."""
    count, chance = 200_000, np.random.default_rng(7)
    fingerprints = np.unique(chance.integers(-(1 << 62), 1 << 62, count))
    pages = SortedPages(fingerprints, chance.permutation(len(fingerprints)).astype(np.int32))
    masks = RankMasks(chance.random(len(fingerprints)) < 0.1, chance.random(len(fingerprints)) < 0.5)
    first = chance.random((3, len(fingerprints)))
    second = first + 10.0
    second[:, ::3] = first[:, ::3] * 1.01  # every third page hardly moves
    found = []
    noted: list[Fingerprints] = []
    for name, part in (("small", 1000), ("large", 1 << 20)):
        monkeypatch.setattr(page_ranks, "_PART", part)
        folder = tmp_path / name
        folder.mkdir()
        ranks = PageRanks.load(folder)
        for vectors in (first, second):
            named = dict(zip(("weight", "importance", "usefulness"), ((row, 2.0) for row in vectors), strict=True))
            tracemalloc.start()
            ranks = PageRanks.publish(folder, pages, named, masks, ranks, lambda _folder, moved: noted.append(moved))
            moved = noted[-1]
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            if name == "small":
                assert peak < 25 * count, peak / count
        found.append((ranks.table.tobytes(), moved.tobytes()))
        kept = pages.ids % 3 == 0
        assert np.allclose(ranks.table["weight"][kept], 2.0 * first[0][pages.ids[kept]], rtol=1e-6)
        assert set(moved.tolist()) == set(fingerprints[~kept & masks.read[pages.ids]].tolist())
    assert found[0] == found[1]
