"""What quads on a SPARQL server cost the crawler, and the server: `python tests/bench/bench_remote.py [PAGES]`.

CPU-ms a page, for first reads (batches of 500 pages) and for refreshes in which three of thirty statements changed,
beside the embedded store. The server is Oxigraph's, on this machine; its CPU time is read from /proc.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from quadloom.model.quads import Quads, line_fingerprints
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.queries import SparqlServer
from quadloom.stores.quads.oxigraph import OxigraphQuads
from quadloom.stores.quads.sparql import SparqlQuads
from quadloom_lab.benchmarks.index import page
from servers import Server, sparql_server

_BATCH = 500


def main(pages: int) -> None:
    first, second = ([page(number, revision) for number in range(pages)] for revision in (0, 1))
    with tempfile.TemporaryDirectory() as folder:
        embedded = OxigraphQuads(Path(folder) / "quads")
        _report("embedded", embedded, first, second, lambda: 0.0)
        embedded.close()
        server = sparql_server("--location", str(Path(folder) / "server"))
        try:
            remote = SparqlQuads(SparqlServer(query=f"{server.url}/query", update=f"{server.url}/update"))
            _report("server", remote, first, second, lambda: _cpu_of(server))
            remote.close()
        finally:
            server.stop()


def _report(
    name: str, store: QuadStore, first: list[Quads], second: list[Quads], server_cpu: Callable[[], float]
) -> None:
    known = [line_fingerprints(quads.nquads) for quads in first]
    for what, action in (
        ("new", lambda: [store.insert_new(first[at : at + _BATCH]) for at in range(0, len(first), _BATCH)]),
        ("refresh", lambda: [store.replace(*pair) for pair in zip(second, known, strict=True)]),
    ):
        mine, theirs, clock = time.process_time(), server_cpu(), time.perf_counter()
        action()
        used = (time.process_time() - mine, server_cpu() - theirs, time.perf_counter() - clock)
        client, server, wall = (seconds / len(first) * 1000 for seconds in used)
        print(f"{name:9} {what:8} {client:6.2f} CPU-ms here  {server:6.2f} at the server  {wall:6.2f} ms of the clock")


def _cpu_of(server: Server) -> float:
    fields = Path(f"/proc/{server.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
