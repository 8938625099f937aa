"""SPARQL for strangers. In: the text of a query. Out: a result document, streamed, within limits of time and size.

`service` is the door; `worker` runs in a child process. May import: stores, syntaxes, process and below.
"""
