"""Values that contradict each other are refused when they are loaded, with the figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadloom.documents.extract import STRATEGIES
from quadloom.errors import SettingsError
from quadloom.settings import length_of
from quadloom.settings.loading import LoadedSettings, Tree, Value, fields, load, shareable
from quadloom.settings.reading import STRATEGY_NAMES


def loading(folder: Path, text: str) -> LoadedSettings:
    (folder / "quadloom.toml").write_text(text)
    return load(environ={}, directory=folder)


def test_a_service_is_a_url_or_a_command(tmp_path: Path) -> None:
    loading(tmp_path, '[[service]]\nurl = "http://127.0.0.1:9001/"\n[[service]]\ncommand = ["cat"]\n')
    for wrong in ('url = "http://127.0.0.1:9001/"\ncommand = ["cat"]', 'url = " "', 'kinds = ["image"]'):
        with pytest.raises(SettingsError, match="a url or a command"):
            loading(tmp_path, f"[[service]]\n{wrong}\n")


def test_a_service_may_take_longer_than_the_transformation(tmp_path: Path) -> None:
    loaded = loading(tmp_path, '[[service]]\nurl = "http://127.0.0.1:9001/"\ntimeout = 300.0\nretries = 3\n')
    assert loaded.settings.service[0].timeout > loaded.settings.limits.transform_seconds


def test_authorities_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there is no file"):
        loading(tmp_path, f'[guard]\nauthorities = "{tmp_path}/none.pem"\n')


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("foo", "known are all, same-site"),
        ("fedes", "did you mean feeds"),
        ("External", "did you mean external"),
        ("external,feeds", "--strategy external --strategy feeds"),
        ("all, mine.rq", '["all", "mine.rq"]'),
    ],
)
def test_a_misspelt_link_strategy_is_refused_with_the_near_names(tmp_path: Path, name: str, hint: str) -> None:
    with pytest.raises(SettingsError, match="unknown link strategy") as refused:
        loading(tmp_path, f'[crawl]\nstrategies = ["{name}"]\n')
    assert hint in refused.value.hint


def test_every_name_of_a_strategy_is_one() -> None:
    assert tuple(STRATEGIES) == STRATEGY_NAMES


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("[crawl]\nin_flight = 0", r"crawl\.in_flight: .* >= 1"),
        ("[crawl]\nbatch = -5", r"crawl\.batch: .* >= 1"),
        ("[politeness]\ndelay = -1.0", r"politeness\.delay: .* >= 0"),
        ("[limits]\ntotal_seconds = 0.0", r"limits\.total_seconds: .* > 0"),
        ("[freshness]\nsuspect_share = 1.5", r"freshness\.suspect_share: .* <= 1"),
        ("[web]\nport = 70000", r"web\.port: .* <= 65535"),
        ('[[site]]\nmatch = "*"\ndelay = -2.0', r"site\[0\]\.delay: .* >= 0"),
    ],
)
def test_what_no_crawl_could_work_with_is_refused_with_its_place(tmp_path: Path, line: str, place: str) -> None:
    with pytest.raises(SettingsError, match=place):
        loading(tmp_path, line)


@pytest.mark.parametrize(
    "name", ["freshness.min_interval", "index.retention", "topic.channel_ttl", "subscriptions.keep"]
)
def test_a_length_of_time_is_one(name: str) -> None:
    for right in ("forever", "90d", "1.5h", "30m", "45", " 2w "):
        load(environ={}, overrides={name: right})
    for wrong in ("soon", "-1d", "", "nan", "1y", "1e400"):
        with pytest.raises(SettingsError, match="not a length of time") as refused:
            load(environ={}, overrides={name: wrong})
        assert "90d" in refused.value.hint


def test_lengths_of_settings_that_were_made_are_checked_where_they_are_used() -> None:
    assert length_of("x", "2h") == 7200.0
    assert length_of("x", "0s", 5.0) == 5.0
    assert length_of("x", "forever") < 4e9, "dates are made of it"
    with pytest.raises(SettingsError, match="x = 'soon'"):
        length_of("x", "soon")


def test_an_explicit_delay_is_not_slowed_down_by_defaults(tmp_path: Path) -> None:
    alone = loading(tmp_path, "[politeness]\ndelay = 0.05\n")
    assert (alone.settings.politeness.ip_delay, alone.settings.politeness.adaptive) == (0.05, 0.0)
    assert "follows politeness.delay" in alone.origins["politeness.adaptive"]
    long = loading(tmp_path, "[politeness]\ndelay = 30.0\n").settings.politeness
    assert (long.ip_delay, long.adaptive) == (0.2, 0.0), "hosts of one address do not wait for each other that long"
    both = loading(tmp_path, "[politeness]\ndelay = 0.05\nadaptive = 3.0\nip_delay = 1.0\n").settings.politeness
    assert (both.ip_delay, both.adaptive) == (1.0, 3.0)
    none = loading(tmp_path, "").settings.politeness
    assert (none.ip_delay, none.adaptive) == (0.2, 2.0)


def test_shared_settings_come_after_all_others_but_defaults(tmp_path: Path) -> None:
    file = tmp_path / "quadloom.toml"
    file.write_text("[crawl]\nmax_depth = 4\n", encoding="utf-8")
    shared: Tree = {"crawl": {"max_depth": 9, "max_pages": 8}, "politeness": {"delay": 3.0}}
    loaded = load(config=file, environ={"QUADLOOM_POLITENESS__DELAY": "2"}, shared=shared)
    assert (loaded.settings.crawl.max_depth, loaded.settings.crawl.max_pages) == (4, 8)
    assert loaded.settings.politeness.delay == 2.0
    assert loaded.origins["crawl.max_pages"] == "shared settings of the cluster"
    with pytest.raises(SettingsError, match=r"crawl\.max_pagez"):
        load(config=file, environ={}, shared={"crawl": {"max_pagez": 1}})


def test_what_is_shared_has_neither_the_database_nor_a_password(tmp_path: Path) -> None:
    file = tmp_path / "quadloom.toml"
    file.write_text('[stores]\nfrontier = "postgresql://me:secret@db/x"\ntext = "postgresql:"\n', encoding="utf-8")
    assert shareable(file) == {"stores": {"text": "postgresql:"}}
    file.write_text('[stores]\nquads = "sparql+http://me:secret@db/"\n', encoding="utf-8")
    with pytest.raises(SettingsError, match=r"stores\.quads has a password"):
        shareable(file)


def test_an_index_for_each_shard_commits_less_often(tmp_path: Path) -> None:
    """Every shard with new documents costs a commit of its own."""
    environ = {"QUADLOOM_STORES__TEXT": "tantivy+shards:///mnt/text"}
    plain, sharded = load(environ={}, directory=tmp_path), load(environ=environ, directory=tmp_path)
    assert sharded.settings.index.text_commit_seconds > plain.settings.index.text_commit_seconds
    assert "follows stores.text" in sharded.origins["index.text_commit_pages"]
    chosen = load(environ={**environ, "QUADLOOM_INDEX__TEXT_COMMIT_SECONDS": "2"}, directory=tmp_path)
    assert chosen.settings.index.text_commit_seconds == 2.0


ODD: tuple[Value, ...] = (
    float("nan"), float("inf"), -1, 10**30, True, "", "\x00", "a" * 10_000, "http://[", [], [[]], [""], {"a": {}},
)  # fmt: skip


def test_every_setting_refuses_what_it_cannot_use_with_a_hint() -> None:
    for field in fields():
        section, _, key = field.name.partition(".")
        for value in ODD:
            try:
                load(environ={"HOME": "/nonexistent"}, directory=Path("/nonexistent"), shared={section: {key: value}})
            except SettingsError as error:
                assert error.hint and len(str(error)) < 1000, (field.name, value)


@pytest.mark.parametrize("raw", ["", "x", "80,x", "nan", "1e300", "9" * 5000, "-1", "\x00", "²", "[" * 9000])
def test_so_does_every_variable_of_the_environment(raw: str) -> None:
    for field in fields():
        name = "QUADLOOM_" + field.name.upper().replace(".", "__")
        try:
            load(environ={name: raw, "HOME": "/nonexistent"}, directory=Path("/nonexistent"))
        except SettingsError as error:
            assert error.hint and len(str(error)) < 1000, (field.name, raw)


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 100_000,
        "[guard]\nhosts = " + "{a=" * 400 + "1" + "}" * 400,
        "[crawl]\n[crawl]\n",
        "[crawl]\nbatch = 1\nbatch = 2\n",
        "[crawl]\nbatch = " + "9" * 5000,
        "[" + ".".join("a" * 500) + "]\n",
        "crawl = 3\n",
        "site = 3\n",
        "[[crawl]]\nbatch = 3\n",
        "\x00",
    ],
)
def test_a_hostile_file_is_refused_with_a_hint(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError) as refused:
        loading(tmp_path, text)
    assert refused.value.hint and len(str(refused.value)) < 1000


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    assert loading(tmp_path, "\ufeff[crawl]\nbatch = 7\n").settings.crawl.batch == 7


@pytest.mark.parametrize("line", ['[stores]\ndirectories = ["a", "\\u0000"]', '[index]\nsynonyms = "\\u0000"'])
def test_a_null_character_is_refused_with_its_place(tmp_path: Path, line: str) -> None:
    with pytest.raises(SettingsError, match=r"(stores\.directories|index\.synonyms): it has a null character \(.*toml"):
        loading(tmp_path, line)


@pytest.mark.parametrize("value", ["inf", "1e308", "9223372036854775807"])
@pytest.mark.parametrize("name", ["limits.query_seconds", "crawl.batch_seconds", "subscriptions.webhook_seconds"])
def test_more_seconds_than_clocks_count_are_refused(tmp_path: Path, name: str, value: str) -> None:
    section, key = name.split(".")
    with pytest.raises(SettingsError, match=rf"{name}: .* is more than ten years \(.*toml"):
        loading(tmp_path, f"[{section}]\n{key} = {value}")
