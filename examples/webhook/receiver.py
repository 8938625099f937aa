"""Receive notices of changes: python receiver.py 8099 secret.txt

    quadloom subscribe add --site example.org --webhook http://127.0.0.1:8099/ --secret-file secret.txt

Signatures are those of Standard Webhooks. A notice may come twice, so its id is remembered.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOLERANCE = 300  # seconds that a signature is valid


def is_signed(headers: dict[str, str], body: bytes, secret: str) -> bool:
    """Whether the notice was sent by someone who knows the secret, and not long ago."""
    moment, number = headers.get("webhook-timestamp", "0"), headers.get("webhook-id", "")
    if not moment.isdigit() or abs(time.time() - int(moment)) > TOLERANCE:
        return False
    key = secret.encode() if not secret.startswith("whsec_") else base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, f"{number}.{moment}.".encode() + body, hashlib.sha256)
    return hmac.compare_digest(f"v1,{base64.b64encode(digest).decode()}", headers.get("webhook-signature", ""))


def serve(port: int, secret: str, received: Callable[[dict[str, object]], None]) -> ThreadingHTTPServer:
    """A server that calls `received` with each new notice; the caller runs it."""
    seen: set[str] = set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            good = is_signed(headers, body, secret)
            if good and headers["webhook-id"] not in seen:
                seen.add(headers["webhook-id"])
                received(json.loads(body))
            self.send_response(204 if good else 401)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet: notices are printed instead."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    serve(
        int(sys.argv[1]),
        Path(sys.argv[2]).read_text().strip(),
        lambda notice: print(notice["kind"], notice["url"], flush=True),
    ).serve_forever()
