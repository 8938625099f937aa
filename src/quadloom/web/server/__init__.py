"""What every handler shares: requests, responses, errors, the gate, thread pools, views of the warehouse, caches.

In: an ASGI request and a warehouse's path. Out: `WebRequest` for a handler, and its answer as bytes. Imports `view`,
never `api` or `pages`.
"""
