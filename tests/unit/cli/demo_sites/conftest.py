"""Fixtures of the fake web for the tests of its own parts."""

from fakeweb.fixtures import demo_site, fake_web, hostile, serve

__all__ = ["demo_site", "fake_web", "hostile", "serve"]
