"""What a person's own sites ask of those who may read them: headers, a login, a client certificate.

It is looked up by the host of each request, also after a redirect, so that another host never receives it. It comes
from files, and is in no setting, archive or log.
"""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import NamedTuple

from quadloom.errors import SettingsError
from quadloom.model.url import host_matches, host_of
from quadloom.settings import Settings, SiteSettings
from quadloom.settings.secrets import secret, secret_lines

_REFUSED = frozenset(("host", "content-length", "transfer-encoding", "connection", "user-agent", "accept-encoding"))


class Credentials(NamedTuple):
    """Header lines, and the PEM file of a certificate with its key; "" = none."""

    lines: tuple[str, ...] = ()
    certificate: str = ""


NOTHING = Credentials()


class SignIn:
    """Credentials by host. Reads all files at once. Raises `SettingsError` for one that cannot be used."""

    def __init__(self, settings: Settings) -> None:
        self._sites = tuple(
            (site.match, _credentials(site)) for site in settings.site if site.headers or site.login or site.certificate
        )
        self.is_used = bool(self._sites)

    def of(self, url: str) -> Credentials:
        """What goes with a request to this URL: of all tables that match its host."""
        host = host_of(url)
        found = [credentials for match, credentials in self._sites if host_matches(host, match)]
        if not found:
            return NOTHING
        lines = tuple(line for one in found for line in one.lines)
        return Credentials(lines, next((one.certificate for one in found if one.certificate), ""))


def _credentials(site: SiteSettings) -> Credentials:
    name = f"site {site.match!r}"
    if not site.own:
        hint = "set own = true in the same table; nothing is sent to sites of others"
        raise SettingsError(f"{name}: headers, login and certificate are for your own sites", hint=hint)
    lines = (
        [_header(f"{name}: headers", line) for line in secret_lines(f"{name}: headers", site.headers)]
        if site.headers
        else []
    )
    if site.login:
        login = secret(f"{name}: login", site.login)
        if ":" not in login:
            raise SettingsError(f"{name}: login has no colon", hint="write user:password")
        lines.append(f"Authorization: Basic {b64encode(login.encode()).decode()}")
    if site.certificate and not Path(site.certificate).expanduser().is_file():
        hint = "name a PEM file with the certificate and its key"
        raise SettingsError(f"{name}: there is no certificate {site.certificate}", hint=hint)
    return Credentials(tuple(lines), str(Path(site.certificate).expanduser()) if site.certificate else "")


def _header(setting: str, line: str) -> str:
    name, colon, value = line.partition(":")
    if not colon or not name.strip().replace("-", "").replace("_", "").isalnum() or not line.isprintable():
        raise SettingsError(f"{setting}: a line is no header", hint="write Name: value in each line")
    if name.strip().lower() in _REFUSED:
        raise SettingsError(f"{setting}: {name.strip()} cannot be set", hint="leave it out; Quadloom sends its own")
    return f"{name.strip()}: {value.strip()}"
