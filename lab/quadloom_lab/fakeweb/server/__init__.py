"""A loopback HTTP/1.1 server for a fake web, in a process of its own.

In: a `FakeWeb`. Out: `FakeWebServer`, with its port, request log and counters. Imports `fakeweb.web` and below.
"""
