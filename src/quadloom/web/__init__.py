"""The web site and HTTP API of a warehouse: requests in, pages, JSON and RDF out.

Read `routes.py` first: the one table of everything that can be asked. `app.py` puts it behind the gate
(`security.py`); handlers are plain functions of a `WebRequest`, one module per group of pages, and never write to
a store: what changes a crawl is asked of its owner (`control.py`)."""
