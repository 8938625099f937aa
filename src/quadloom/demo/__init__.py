"""A small web of its own: a deterministic generator of sites and a loopback server for them.

In: a `WebSpec` (seed, pages, hosts, …). Out: `FakeWeb.answer()`, the bytes that a site would send for any request,
and an oracle that knows what a correct crawler must read. It is part of the package and not of the tests, because
`quadloom demo --offline` has to work from an installed wheel. It imports nothing else of Quadloom.
"""

from quadloom.demo.serving import DemoServer, serve_in_process
from quadloom.demo.spec import WebSpec
from quadloom.demo.web import FakeWeb, demo_web

__all__ = ["DemoServer", "FakeWeb", "WebSpec", "demo_web", "serve_in_process"]
