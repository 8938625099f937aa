"""`quadloom serve`: the website and API of a warehouse; with --crawl, also a crawl in a process of its own."""

from __future__ import annotations

import errno
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType

import uvicorn

from quadloom.cli.session import Session, session
from quadloom.errors import SettingsError, StoreError, UsageError
from quadloom.maintenance.recovery.lost_database import refuse_lost_database
from quadloom.stores.backends import exists
from quadloom.web.app import create_app
from quadloom.web.server.connections import BACKLOG, ServerConfig
from quadloom.web.server.security import is_loopback
from quadloom.web.server.state import SiteState
from quadloom.web.server.tokens import FILE, Tokens

_STOP_SECONDS = 60.0
_OTHER_FILES = 512  # besides connections: stores, query processes, the log
_LEAST_CONNECTIONS = 64
_NICE = 5  # a third of the weight of the crawl, if both want the same core


def serve(
    *urls: str,
    port: int | None = None,
    host: str | None = None,
    crawl: bool = False,
    control: bool = False,
    new_token: bool = False,
) -> int:
    """Serve search, SPARQL, entity pages and the live monitor of the warehouse. Read-only unless --crawl or --control
    is given.

    Parameters
    ----------
    urls
        with --crawl: URLs to start from; without any, the last crawl continues
    port
        port to listen on
    host
        address to listen on; anything but loopback needs a token
    crawl
        also run a continuous crawl, which holders of a token can control
    control
        holders of a token can control a crawl that runs in another terminal
    new_token
        create a token, print it once, store its hash, and exit
    """
    s = session()
    s.override({"web.port": port, "web.host": host})
    tokens = Tokens(Path(s.settings.web.token_file) if s.settings.web.token_file else s.warehouse / FILE)
    if new_token:
        s.write(tokens.make(time.strftime("%Y-%m-%d")))
        return 0
    _check(s, tokens, urls, crawl)
    # uvicorn raises a signal again for the previous handler; SIGTERM must not skip the end of the crawl.
    signal.signal(signal.SIGTERM, _interrupt)
    listening = _listen(s.settings.web.host, s.settings.web.port)
    child = _start_crawl(s, urls) if crawl else None
    if crawl:  # after the crawl has started, which would inherit it
        os.nice(_NICE)
    try:
        if (crawl or control) and not tokens:
            s.say(f"Token  {tokens.make('first')}   (shown only once; enter it at /sign-in)")
        _run(s, listening, may_control=crawl or control)
    except KeyboardInterrupt:
        s.say("stopped")
    finally:
        listening.close()
        if child is not None:
            _stop_crawl(s, child)
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _check(s: Session, tokens: Tokens, urls: tuple[str, ...], crawl: bool) -> None:
    if urls and not crawl:
        raise UsageError("URLs are only for --crawl", hint="add --crawl, or run `quadloom crawl` in another terminal")
    if not is_loopback(s.settings.web.host) and not tokens:
        raise SettingsError(
            f"listening on {s.settings.web.host} needs a token",
            hint="to create one: `quadloom serve --new-token`; or listen on 127.0.0.1",
        )
    refuse_lost_database(s.warehouse, s.settings)
    if not crawl and not exists(s.warehouse, s.settings):
        hint = "to create one: `quadloom crawl URL` or `quadloom demo`"
        raise StoreError(f"there is no warehouse at {s.warehouse}", hint=hint)


def _run(s: Session, listening: socket.socket, *, may_control: bool) -> None:
    host = s.settings.web.host
    # The crawl has its own process, so the site has an interpreter lock and memory of its own.
    state = SiteState(s.warehouse, s.settings, may_control=may_control)
    app = create_app(state)
    name = f"[{host}]" if ":" in host else host
    threading.Thread(target=state.warm, name="warming", daemon=True).start()
    s.say(f"Open   http://{name}:{listening.getsockname()[1]}/   (search, SPARQL, monitor) - press Ctrl-C to stop")
    connections = _connections(s, s.settings.web.connections)
    config = ServerConfig(app, s.settings.web, connections=connections, verbose=s.verbose)
    uvicorn.Server(config).run(sockets=[listening])


def _connections(s: Session, wanted: int) -> int:
    """Raise the limit of open files as far as the system permits; returns how many connections it allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + BACKLOG + _OTHER_FILES  # a burst is accepted before any of it is refused
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= wanted + _OTHER_FILES:
        return wanted
    allowed = max(_LEAST_CONNECTIONS, soft - _OTHER_FILES)
    s.say(f"at most {allowed} connections at a time: the system allows {soft} open files (ulimit -Hn)")
    return allowed


def _listen(host: str, port: int) -> socket.socket:
    """Bind the port before a crawl starts and the address is printed, which are useless if the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = (
            "another program is listening there" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        )
        hint = "choose another with --port or --host"
        raise UsageError(f"cannot listen on {host}:{port}: {reason}", hint=hint) from None


def _start_crawl(s: Session, urls: tuple[str, ...]) -> subprocess.Popen[bytes]:
    """Start the crawl, which owns the warehouse, in a process of its own. This process controls it by its socket."""
    # -P: a file xml.py in the working directory must not replace Python's own module.
    command = [sys.executable, "-P", "-m", "quadloom", "-w", str(s.warehouse)]
    if s.config is not None:
        command += ["--config", str(s.config)]
    if s.quiet:
        command.append("--quiet")
    # The pipe to its standard input closes with this process, even if it is killed, and that ends the crawl.
    child = subprocess.Popen([*command, "crawl", "--forever", "--until-input-ends", *urls], stdin=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not exists(s.warehouse, s.settings) and time.monotonic() < deadline:
        if child.poll() is not None:
            raise StoreError("the crawl did not start", hint="its message is above")
        time.sleep(0.1)
    return child


def _stop_crawl(s: Session, child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    child.stdin.close()
    try:
        child.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    s.say("the crawl has stopped and is saved")
