"""A web for tests, benchmarks and the demo: a deterministic generator of sites and a loopback server for them.

In: a `WebSpec` (seed, pages, hosts, …). Out: `FakeWeb.answer()`, the bytes that a site would send for any request,
and an oracle that knows what a correct crawler must read. Imports nothing of Quadloom but the demo's data format.
"""

from quadloom_lab.fakeweb.exchange import FakeRequest, FakeResponse
from quadloom_lab.fakeweb.server.process import FakeWebServer, serve_in_process
from quadloom_lab.fakeweb.sites.spec import WebSpec
from quadloom_lab.fakeweb.web import FakeWeb, demo_web

__all__ = ["FakeRequest", "FakeResponse", "FakeWeb", "FakeWebServer", "WebSpec", "demo_web", "serve_in_process"]
