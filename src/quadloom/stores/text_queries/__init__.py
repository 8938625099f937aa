"""What a question means, for every text index alike.

In: what somebody typed (`text_query`), and the words of an index. Out: the plan of a search (`query_plan`), from strict
to generous, and snippets of what it found. Imports `analysis` and `stores.protocols`; no engine.
"""
