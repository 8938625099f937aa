"""The web site and HTTP API of a warehouse: HTTP requests in; pages, JSON, RDF and event streams out.

Read `routes.py` first, the table of all addresses; `app.py` serves it behind the gate (`server/security.py`). Rooms,
each importing only those before it: `view`, `server`, `api`, `pages`. Handlers are plain functions of a `WebRequest`
and never write to a store: a change of the crawl is requested from the process that runs it (`api/control.py`). Only
`cli` imports this package; it may import everything else.
"""
