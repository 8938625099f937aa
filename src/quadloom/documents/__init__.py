"""What a document says: bytes in; statements, links, words and findings out, without network or disk.

`pipeline.py` composes the phases `detect`, `transform`, `index` and `extract`; `syntaxes` reads markup and data,
`checks` judges it, `words` analyses text, `archives` reads WARC files, `native` has optional implementations in C.
A library of its own: it imports only `errors`, `model`, `settings` and `process`.
"""
