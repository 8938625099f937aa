"""Transform workers. In: pages with their visits. Out: what each page says, or why it was quarantined.

`pool` serves a running crawl, `batch` a known set of pages in order; both start `worker_main` processes.
May import: pipeline and below, process.
"""
