"""Words of every script, the same for documents and questions.

In: text and, if known, its language. Out: `AnalysedText` for an index, `QueryWord`s for a question, a language for text
that does not say its own. Pure functions; imports nothing else of this package, so that every text index can use it.

`words` is the door. `scripts` makes text that splits into words (or n-grams) at blanks, `stems` finds what forms of a
word have in common, `languages` guesses a language.
"""
