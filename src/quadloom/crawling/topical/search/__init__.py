"""The search of a site: how to find it, how to query it, how to read its answers; and web search engines.

In: a home page. Out: a `SearchChannel` and its `ResultPage`s. Imports `forms`, `anchors`, `access` and `model`;
requests are yielded as `SiteRequest`s and sent by the caller.
"""
