"""The fake web as tests use it: fixtures that serve one, a reader of its request log, and a hostile server.

The generator and its server are `quadloom_lab.fakeweb`.
"""

from fakeweb.hostile import HostileServer
from fakeweb.request_log import RequestLog, Served

__all__ = ["HostileServer", "RequestLog", "Served"]
