"""Signed requests: HTTP Message Signatures (RFC 9421) in the form of Web Bot Auth, with Ed25519 keys.

A signature covers the authority that is asked and `Signature-Agent`, the site where the public keys are. It is made for
each hop, so a redirect carries none to another host. The form is always the same, so it is written here; the tests
verify it with an independent library (decision 0035). Needs the extra `sign`.

Keys are files in `crawl.sign_keys`: the newest signs, all of them are published until they are older than
`crawl.sign_key_age`. So a key is rotated by adding a file.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import msgspec

from quadloom.errors import SettingsError
from quadloom.settings import Settings
from quadloom.settings.lengths import length_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

DIRECTORY = "/.well-known/http-message-signatures-directory"
DIRECTORY_TYPE = "application/http-message-signatures-directory+json"
_TAG, _DIRECTORY_TAG = "web-bot-auth", "http-message-signatures-directory"
_VALID = 60  # seconds of a request's signature
_DIRECTORY_VALID = 3600
_EARLIER = 5  # seconds by which the clock of a server may be slow
_RELOAD = 60.0  # seconds between two looks for new keys
_MOST_ASKING = 100_000  # authorities that asked for signatures


class SigningKey(NamedTuple):
    """`id`: the thumbprint of its JWK (RFC 7638). `begins` and `ends`: Unix times."""

    id: str
    x: str
    private: Ed25519PrivateKey
    begins: float
    ends: float


class SignedField(NamedTuple):
    """Values of Signature-Input and Signature, with their label."""

    input: str
    signature: str


def signing_keys(settings: Settings, now: float) -> list[SigningKey]:
    """The keys that are valid, the newest first. Raises `SettingsError` for a file that is no such key."""
    if find_spec("cryptography") is None:
        raise SettingsError("crawl.sign needs the package cryptography", hint="pip install 'quadloom[sign]'")
    folder = Path(settings.crawl.sign_keys).expanduser()
    age = length_of("crawl.sign_key_age", settings.crawl.sign_key_age)
    files = sorted(folder.glob("*.pem")) if settings.crawl.sign_keys else []
    found = [_read(file, age) for file in files]
    return sorted((key for key in found if key.ends > now), key=lambda key: (key.begins, key.id), reverse=True)


def _read(file: Path, age: float) -> SigningKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        private, begins = load_pem_private_key(file.read_bytes(), None), float(int(file.stat().st_mtime))
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(f"crawl.sign_keys: cannot read {file}: {error}", hint=_HOW) from None
    if not isinstance(private, Ed25519PrivateKey):
        raise SettingsError(f"crawl.sign_keys: {file} is not an Ed25519 key", hint=_HOW)
    x = _base64(private.public_key().public_bytes_raw())
    jwk = f'{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}'
    return SigningKey(_base64(hashlib.sha256(jwk.encode()).digest()), x, private, begins, begins + age)


_HOW = "make one: openssl genpkey -algorithm ed25519 -out FOLDER/NAME.pem"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class RequestSigner:
    """The header lines that sign requests. Raises `SettingsError` if there is no key, or no site that publishes it."""

    def __init__(self, settings: Settings, now: Callable[[], float]) -> None:
        self._settings = settings
        self._now = now
        self._always = settings.crawl.sign == "always"
        self._asking: OrderedDict[str, None] = OrderedDict()
        site = settings.web.public_url.rstrip("/")
        if not site.startswith("https://") or not _is_field(site):
            hint = "set web.public_url to the https address of `quadloom serve`, which publishes the keys"
            raise SettingsError("crawl.sign needs the address of a site that publishes the keys", hint=hint)
        self._agent = site
        keys = signing_keys(settings, now())
        if not keys:
            raise SettingsError(f"there is no valid key in crawl.sign_keys {settings.crawl.sign_keys!r}", hint=_HOW)
        self._keys = keys
        self._reload_at = now() + _RELOAD

    def _newest(self) -> SigningKey | None:
        """None if all keys have expired since the start: then the crawl goes on without signatures."""
        now = self._now()
        if now >= self._reload_at:
            self._reload_at = now + _RELOAD
            with suppress(SettingsError):  # a key that is being written: the next look finds it
                self._keys = signing_keys(self._settings, now)
        return next((key for key in self._keys if key.ends > now), None)

    def lines(self, url: str) -> tuple[str, ...]:
        """For a request to this URL; none if its server did not ask and signatures are sent only then."""
        authority = authority_of(url)
        key = self._newest() if authority and (self._always or authority in self._asking) else None
        if key is None:
            return ()
        covered = (('"@authority"', authority), ('"signature-agent"', f'"{self._agent}"'))
        signed = sign(key, covered, _TAG, self._now(), _VALID)
        return (
            f'Signature-Agent: "{self._agent}"',
            f"Signature-Input: {signed.input}",
            f"Signature: {signed.signature}",
        )

    def answered(self, url: str, headers: Sequence[tuple[str, str]]) -> None:
        """Remember a server that asks for signatures by `Accept-Signature`."""
        if self._always or not any(name == "accept-signature" for name, _ in headers):
            return
        self._asking[authority_of(url)] = None
        if len(self._asking) > _MOST_ASKING:
            self._asking.popitem(last=False)


def sign(
    key: SigningKey, covered: Sequence[tuple[str, str]], tag: str, now: float, valid: int, label: str = "sig1"
) -> SignedField:
    """`covered`: components and their values, as RFC 9421 2.5 writes them."""
    created = int(now) - _EARLIER
    names = " ".join(name for name, _ in covered)
    parameters = (
        f'({names});created={created};expires={created + _EARLIER + valid};keyid="{key.id}";alg="ed25519"'
        f';nonce="{_base64(secrets.token_bytes(32))}";tag="{tag}"'
    )
    base = "".join(f"{name}: {value}\n" for name, value in covered) + f'"@signature-params": {parameters}'
    signature = base64.b64encode(key.private.sign(base.encode("ascii"))).decode()
    return SignedField(f"{label}={parameters}", f"{label}=:{signature}:")


def authority_of(url: str) -> str:
    """Host and port as `@authority` has them (RFC 9421, 2.2.3); "" if the URL has none in ASCII."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").encode("idna").decode().lower(), parts.port
    except ValueError:
        return ""
    host = f"[{host}]" if ":" in host else host
    return host if not port or port == {"http": 80, "https": 443}.get(parts.scheme) else f"{host}:{port}"


def key_directory(keys: Sequence[SigningKey], authority: str, now: float) -> tuple[bytes, dict[str, str]]:
    """The public keys as a JWK set, and headers in which each of the keys signs this answer for this authority."""
    jwks = [
        {"kty": "OKP", "crv": "Ed25519", "kid": key.id, "x": key.x, "use": "sig", "nbf": int(key.begins)}
        | ({"exp": int(key.ends)} if key.ends < 1e11 else {})
        for key in keys
    ]
    signed = [
        sign(key, (('"@authority";req', authority),), _DIRECTORY_TAG, now, _DIRECTORY_VALID, f"sig{place}")
        for place, key in enumerate(keys, 1)
    ]
    headers = {
        "Signature-Input": ", ".join(one.input for one in signed),
        "Signature": ", ".join(one.signature for one in signed),
        "Cache-Control": "max-age=3600",
    }
    return msgspec.json.encode({"keys": jwks}), headers


def _is_field(text: str) -> bool:
    return text.isascii() and text.isprintable() and not set(text) & set('"\\')
