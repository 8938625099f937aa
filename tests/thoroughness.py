"""How much a property test tries: enough to notice a defect in the default run, far more in `make test-all`.

`make test-all` is told by its marker expression, which pytest-xdist hands on to its workers.
"""

from __future__ import annotations

import sys

LONG = any("slow or not slow" in argument for argument in sys.argv)


def examples(few: int, many: int) -> int:
    """`few` by default, `many` when long proofs are asked for."""
    return many if LONG else few
