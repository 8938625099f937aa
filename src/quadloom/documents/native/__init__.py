"""Optional parts in C. They decide nothing about documents: each has an implementation in Python with the same results.

A machine without a compiler installs without them, and `QUADLOOM_WITHOUT_NATIVE=1` switches them off, so that a
suspected defect can be seen without them. `quadloom check` says whether they are in use; decision 0019 says why they
exist. Only the modules that have the other implementation import them.
"""

import os

if os.environ.get("QUADLOOM_WITHOUT_NATIVE"):  # here alone, so that none of them can be imported
    raise ImportError("switched off by QUADLOOM_WITHOUT_NATIVE")
