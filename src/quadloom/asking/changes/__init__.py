"""Pages and statements through time: visits, archived versions, differences, and differences for people.

In: the catalog's history and the archive. Out: graphs of earlier versions, and what changed between two.
May import: stores, workers, process, model, settings; `asking.things` for names.
"""
