"""What may be connected to: http and https, on allowed ports, at addresses of the public internet.

A crawler follows links that strangers wrote, from inside somebody's network, so each of them may try to reach what
only that network should (server-side request forgery). The rule has no memory and no exceptions: a name is resolved
once, every address of it is checked here, and the connection goes to a checked address and nowhere else. Because
check and connection use the same number, a name that resolves differently the second time (DNS rebinding) gains
nothing. IP literals are checked in the same way; whatever notation the link used (decimal, octal, hex), here it is a
number.

The check is about what the address *means*, not how it is written: IPv4 inside IPv6 (mapped, NAT64) counts as IPv4.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import NamedTuple

import ada_url

from quadloom.errors import SettingsError
from quadloom.settings import GuardSettings

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# IANA special-purpose registries (RFC 6890 and successors), without the few blocks that are globally reachable.
_REFUSED_V4: tuple[tuple[ipaddress.IPv4Network, str], ...] = tuple(
    (ipaddress.IPv4Network(block), words)
    for block, words in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local, also cloud metadata"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "protocol assignments"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")  # the only unicast space that IANA has handed out
_REFUSED_V6: tuple[tuple[ipaddress.IPv6Network, str], ...] = tuple(
    (ipaddress.IPv6Network(block), words)
    for block, words in (
        ("2001::/32", "Teredo tunnel"),
        ("2001::/23", "protocol assignments"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4 tunnel"),
        ("3fff::/20", "documentation"),
    )
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address
_METADATA = {  # inside otherwise global or allowed space; named for the message of the refusal
    ipaddress.ip_address("168.63.129.16"): "cloud platform address",
    ipaddress.ip_address("100.100.100.200"): "cloud metadata",
    ipaddress.ip_address("fd00:ec2::254"): "cloud metadata",
}


class Destination(NamedTuple):
    """`addresses` that the URL or `guard.hosts` spells out; empty = the name is to be resolved. They are still to be
    checked. `refusal`: why nothing may be sent there, None = it may."""

    name: str
    addresses: tuple[str, ...]
    refusal: str | None = None


class Guard:
    """Checks URLs and addresses. Both verdicts are None for "allowed", else the reason in words."""

    def __init__(self, settings: GuardSettings) -> None:
        self._allow = tuple(_network(text) for text in settings.allow)
        self._ports = frozenset(settings.ports)
        self._hosts = {name.lower().rstrip("."): address for name, address in settings.hosts.items()}
        # All three depend on their argument and the settings alone.
        self.destination = lru_cache(maxsize=65536)(self._destination)
        self.permitted = lru_cache(maxsize=65536)(self._permitted)
        self.address_verdict = lru_cache(maxsize=65536)(self._address_verdict)

    def _destination(self, origin: str) -> Destination:
        """Where the URLs of an origin lead to, by scheme and port. The address is checked after resolution, by
        `permitted`."""
        if not origin.startswith(("http://", "https://")):
            return Destination("", (), f"only http and https are visited, not {origin.partition(':')[0][:20]!r}")
        try:
            name, port = endpoint(origin)
        except ValueError:
            return Destination("", (), "not a URL")
        if self._ports and port not in self._ports:
            return Destination(name, (), f"port {port} is not among guard.ports")
        address = literal(name) or self.override(name)
        return Destination(name, () if address is None else (address,))

    def override(self, name: str) -> str | None:
        """Address from `guard.hosts`, exact name first, then `*.` above it from near to far. Still to be checked."""
        if not self._hosts:
            return None
        found = self._hosts.get(name)
        while found is None and name:
            name = name.partition(".")[2]
            found = self._hosts.get(f"*.{name}")
        return found

    def _permitted(self, addresses: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
        """Those that may be connected to, in order, and the reason for the first that may not."""
        allowed: list[str] = []
        refusal = ""
        for address in addresses:
            reason = self.address_verdict(address)
            if reason is None:
                allowed.append(address)
            elif not refusal:
                refusal = f"{address} is {reason}"
        return tuple(allowed), refusal

    def _address_verdict(self, text: str) -> str | None:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return "not an IP address"
        meant = embedded(address)
        if any(candidate in network for candidate in (address, meant) for network in self._allow):
            return None
        return refusal(meant)


def refusal(address: Address) -> str | None:
    """Why an address is not part of the public internet; None = it is."""
    if address in _METADATA:
        return _METADATA[address]
    if isinstance(address, ipaddress.IPv4Address):
        return next((words for network, words in _REFUSED_V4 if address in network), None)
    if address.scope_id is not None or address not in _GLOBAL_V6:
        return "not a global unicast address"
    return next((words for network, words in _REFUSED_V6 if address in network), None)


def embedded(address: Address) -> Address:
    """The IPv4 address that a mapped (::ffff:0:0/96) or NAT64 (64:ff9b::/96) address stands for, else itself.

    6to4 and Teredo also carry IPv4 addresses, but no web server uses them any more: refused as a whole.
    """
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def origin_of(href: str) -> str:
    """Scheme and authority of an absolute URL."""
    slash = href.find("/", href.find("//") + 2)
    return href if slash < 0 else href[:slash]


def endpoint(href: str) -> tuple[str, int]:
    """Host name or address (without brackets) and port of an absolute URL. Raises ValueError for anything else.

    Parsed by Ada, as everywhere: a second parser with its own opinion on `http://a@b\\@c/` is how guards are fooled.
    """
    parts = ada_url.URL(origin_of(href))
    port = int(parts.port) if parts.port else (443 if parts.protocol == "https:" else 80)
    return parts.hostname.strip("[]").rstrip(".").lower(), port


@lru_cache(maxsize=65536)
def literal(name: str) -> str | None:
    """The address that a host name spells out, or None for a name to be resolved."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return None


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise SettingsError(
            f"guard.allow: {text!r} is not a CIDR block", hint="write it as 10.0.0.0/8 or fd00::/8"
        ) from None


def is_opened(host: str, settings: GuardSettings) -> bool:
    """Whether a host, by `guard.hosts` or as a literal, has an address that `guard.allow` permits. Without DNS."""
    name = host.rpartition(":")[0] or host
    for pattern, address in settings.hosts.items():
        if name == pattern or (pattern.startswith("*.") and name.endswith(pattern[1:])):
            name = address
    try:
        found = ipaddress.ip_address("127.0.0.1" if name == "localhost" else name.strip("[]"))
    except ValueError:
        return False
    return any(found in _network(block) for block in settings.allow)
