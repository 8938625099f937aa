"""The one write path: every page of a crawl, an import or a topical crawl is archived, settled and indexed here.

In: visits with what was fetched. Out: settlements, durable in one transaction each batch, and pages in both indexes.
May import: workers, pipeline and phases, asking (queries and statistics), stores, process, model, settings.
"""
