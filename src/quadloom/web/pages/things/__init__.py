"""Pages about things instead of pages: types as tables, questions step by step, the schema, saved queries.

In: a request with a view of the warehouse. Out: the template's name and its data. Imports what the other pages import.
"""
