from __future__ import annotations

import pytest

from quadloom.errors import SettingsError
from quadloom.fetching.guard import Guard, endpoint, is_opened, literal
from quadloom.model.url import resolve
from quadloom.settings import GuardSettings

REFUSED = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254",
    "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1",
    "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "168.63.129.16", "100.100.100.200", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "2002:7f00:1::", "2002:a00:1::1", "3fff::1", "fc00::1",
    "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "5f00::1", "not an address", "",
]  # fmt: skip
ALLOWED = [
    "1.1.1.1", "8.8.8.8", "100.63.0.1", "172.32.0.1", "192.0.1.1", "198.20.0.1", "2606:4700::1", "64:ff9b::808:808",
    "::ffff:8.8.8.8", "2a00:1450::5",
]  # fmt: skip


@pytest.mark.parametrize("address", REFUSED)
def test_refused(address: str) -> None:
    assert Guard(GuardSettings()).address_verdict(address)


@pytest.mark.parametrize("address", ALLOWED)
def test_allowed(address: str) -> None:
    assert Guard(GuardSettings()).address_verdict(address) is None


@pytest.mark.parametrize(
    "href",
    [
        "http://127.0.0.1/", "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://127.1/",
        "http://0x7f.1/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::1]/",
        "http://①②⑦.0.0.1/", "http://127.0.0.1./", "http://0/", "http://user:pass@127.0.0.1/",
        "http://a@b@127.0.0.1/", "http:\\\\127.0.0.1\\x", "http://127。0。0。1/", "http://%31%32%37.0.0.1/",
        "http://[0:0:0:0:0:ffff:a9fe:a9fe]/",
    ],
)  # fmt: skip
def test_every_notation_of_an_address_is_seen_as_an_address(href: str) -> None:
    absolute = resolve(href)
    assert absolute is not None
    address = literal(endpoint(absolute)[0])
    assert address is not None
    assert Guard(GuardSettings()).address_verdict(address)


def refusal(guard: Guard, origin: str) -> str | None:
    return guard.destination(origin).refusal


def test_schemes_and_ports() -> None:
    guard = Guard(GuardSettings(ports=[80, 443]))
    assert refusal(guard, "http://e.org") is None
    assert refusal(guard, "https://e.org") is None
    assert "8080" in (refusal(guard, "http://e.org:8080") or "")
    for href in ("file:///etc/passwd", "ftp://e.org/", "gopher://e.org/", "dict://e.org/", "javascript:1"):
        assert refusal(guard, href)
    assert refusal(Guard(GuardSettings()), "http://e.org:8080") is None


def test_allow_list_opens_blocks_also_in_their_mapped_form() -> None:
    guard = Guard(GuardSettings(allow=["127.0.0.0/8", "fd00::/8"]))
    for address in ("127.0.0.1", "::ffff:127.0.0.1", "fd12::1"):
        assert guard.address_verdict(address) is None
    for address in ("10.0.0.1", "169.254.169.254", "::1"):
        assert guard.address_verdict(address)


def test_mixed_answers_keep_only_what_is_allowed() -> None:
    allowed, reason = Guard(GuardSettings()).permitted(("127.0.0.1", "8.8.8.8", "::1"))
    assert allowed == ("8.8.8.8",)
    assert "loopback" in reason


def test_overrides_match_exactly_or_below_and_stay_subject_to_judgement() -> None:
    guard = Guard(GuardSettings(hosts={"a.test": "8.8.8.8", "*.b.test": "127.0.0.1"}))
    assert guard.override("a.test") == "8.8.8.8"
    assert guard.override("x.a.test") is None
    assert guard.override("x.b.test") == guard.override("y.x.b.test") == "127.0.0.1"
    assert guard.override("b.test") is None
    assert guard.address_verdict("127.0.0.1")


def test_a_wrong_block_is_a_settings_error() -> None:
    with pytest.raises(SettingsError, match="CIDR"):
        Guard(GuardSettings(allow=["everything"]))


def test_a_block_that_is_none_is_named_with_the_way_to_write_it() -> None:
    settings = GuardSettings(allow=['["127.0.0.0/8"]'])
    with pytest.raises(SettingsError, match="is not a CIDR block"):
        is_opened("127.0.0.1:80", settings)
