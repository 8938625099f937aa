"""Which servers may be used without encryption.

A store server receives everything that was crawled, and perhaps a password. Connections within the machine are safe;
for any other network the operator has to declare, in `guard.allow`, that it is trusted.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from quadloom.errors import SettingsError
from quadloom.settings import GuardSettings


def check_plain_http(name: str, url: str, guard: GuardSettings) -> None:
    """Raises `SettingsError` if `url`, the value of setting `name`, is plain http to a host that is not trusted."""
    parts = urlsplit(url)
    if parts.scheme == "https":
        return
    host = guard.hosts.get(parts.hostname or "", parts.hostname or "")
    if not _is_trusted("127.0.0.1" if host == "localhost" else host, guard):
        raise SettingsError(
            f"{name} = {url!r} would send data unencrypted to {host or 'no host'}",
            hint="use https, or list the server's address in guard.allow (for a name, guard.hosts says which it is)",
        )


def _is_trusted(host: str, guard: GuardSettings) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    blocks = (ipaddress.ip_network(block, strict=False) for block in guard.allow)
    return address.is_loopback or any(address in block for block in blocks)
