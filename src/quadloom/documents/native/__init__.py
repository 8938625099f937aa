"""Optional parts in C. They decide nothing about documents: each has a twin in Python with the same results.

A machine without a compiler installs without them. `quadloom check` says whether they are in use; decision 0019 says
why they exist. Only the modules that have the twins import them.
"""
