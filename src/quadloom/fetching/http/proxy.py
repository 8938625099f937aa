"""An outgoing proxy: for networks that have no other way out.

The rules for addresses hold as without one. By default names are resolved here, the addresses are checked, and an
HTTPS or SOCKS5 connection is asked for by its checked address, so that the proxy resolves nothing. Plain HTTP through
an HTTP proxy names the host, because most proxies refuse `CONNECT` to port 80: the name was checked here, but the
proxy resolves it again. With `fetch.proxy_resolves` (or `socks5h://`) nothing is resolved here. Then only addresses
that a URL spells out and names that are local by their form can be refused; what a name means inside the proxy's
network is for the proxy's own rules.
"""

from __future__ import annotations

import socket
from typing import NamedTuple
from urllib.parse import urlsplit

import pycurl

from quadloom.errors import SettingsError
from quadloom.settings import FetchSettings
from quadloom.settings.secrets import secret

_KINDS = {
    "http": pycurl.PROXYTYPE_HTTP,
    "socks5": pycurl.PROXYTYPE_SOCKS5,
    "socks5h": pycurl.PROXYTYPE_SOCKS5_HOSTNAME,
}
_SUPPRESS_CONNECT_HEADERS = 265  # CURLOPT_SUPPRESS_CONNECT_HEADERS, which pycurl does not name
_LOCAL = (".localhost", ".local", ".internal", ".intranet", ".lan", ".home.arpa", ".corp", ".home")
_HINT = "write it as http://host:port, socks5://host:port or socks5h://host:port, or as $HTTPS_PROXY"


class Proxy(NamedTuple):
    """`addresses`: of the proxy itself, the only ones that are connected to. `login`: `user:password`, or nothing.
    `resolves`: whether names are left to it."""

    scheme: str
    host: str
    port: int
    addresses: tuple[str, ...]
    login: str
    resolves: bool

    def verdict(self, address: str) -> str | None:
        """Why a connection to this address is refused; None = it is the proxy."""
        return None if address in self.addresses else "not the proxy"

    def set_up(self, curl: pycurl.Curl) -> None:
        """The options of a handle that never change."""
        curl.setopt(pycurl.NOPROXY, "")
        address = self.addresses[0]
        curl.setopt(pycurl.PROXY, f"[{address}]:{self.port}" if ":" in address else f"{address}:{self.port}")
        curl.setopt(pycurl.PROXYTYPE, _KINDS["socks5h" if self.scheme == "socks5" and self.resolves else self.scheme])
        curl.setopt(_SUPPRESS_CONNECT_HEADERS, 1)
        if self.login:
            curl.setopt(pycurl.PROXYUSERPWD, self.login)

    def pins(self, url: str) -> bool:
        """Whether the proxy is asked for a connection to an address, not for a page by its name."""
        return self.scheme != "http" or url.startswith("https:")


def proxy_of(settings: FetchSettings) -> Proxy | None:
    """The proxy of the settings; None = connections are direct. Raises `SettingsError` if it cannot be used."""
    if not settings.proxy:
        return None
    text = secret("fetch.proxy", settings.proxy) if settings.proxy.startswith("$") else settings.proxy
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme not in _KINDS or not host:
        raise SettingsError("fetch.proxy is not the address of a proxy", hint=_HINT)
    if parts.username and not settings.proxy.startswith("$"):
        hint = 'put user:password into a file, and set fetch.proxy_login to its path, or to "$NAME" for a variable'
        raise SettingsError("fetch.proxy has a login in it, which would be shown with the settings", hint=hint)
    login = f"{parts.username}:{parts.password or ''}" if parts.username else ""
    if settings.proxy_login:
        login = secret("fetch.proxy_login", settings.proxy_login)
    port = port or (1080 if parts.scheme.startswith("socks") else 3128)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise SettingsError(f"the proxy {host} is not found: {error.strerror}", hint="check fetch.proxy") from None
    addresses = tuple(dict.fromkeys(str(address[0]) for *_, address in found))
    return Proxy(parts.scheme, host, port, addresses, login, settings.proxy_resolves or parts.scheme == "socks5h")


def local_name(name: str) -> str | None:
    """Why a name that is not resolved here is refused, None = it is not: one that can only mean a machine near by."""
    if "." not in name or name.endswith(_LOCAL):
        return "a name of a local network, which the proxy would resolve"
    return None


def refusal_of(status: int, text: str) -> str:
    """The fault of the proxy itself in what a request through it ended with; "" = it is the server's."""
    if status == 407 or "response 407" in text:
        return "the proxy asks for a login (fetch.proxy_login)"
    if text.startswith("CONNECT tunnel failed"):
        return f"the proxy has no connection to the server: {text}"
    if "roxy" in text or "SOCKS" in text:
        return f"the proxy (fetch.proxy): {text}"
    return ""
