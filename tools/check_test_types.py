"""mypy over the tests, strict, with a ratchet: files may have the errors listed in test_types.toml, and no more.

A file that is not listed has none. `--update` writes the present numbers, which may only go down.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ALLOWED = ROOT / "tools/test_types.toml"
FOLDERS = ("src", "lab", "tests")
_LAX = ("import-not-found", "import-untyped")  # modules beside a test are found by pytest alone; rivals have no types
_ERROR = re.compile(r"^(?P<file>tests/[^:]+):\d+: error: ")


def main() -> int:
    output = _mypy()
    found = Counter(match["file"] for line in output.splitlines() if (match := _ERROR.match(line)))
    if not found and "Success" not in output:
        print(output)
        return 1
    if "--update" in sys.argv:
        lines = [f'"{file}" = {count}' for file, count in sorted(found.items())]
        head = "# Type errors of test files, by `tools/check_test_types.py --update`. They may only go down."
        ALLOWED.write_text("\n".join([head, *lines, ""]))
        return 0
    allowed: dict[str, int] = tomllib.loads(ALLOWED.read_text())
    worse = {file for file, count in found.items() if count > allowed.get(file, 0)}
    print("\n".join(line for line in output.splitlines() if (match := _ERROR.match(line)) and match["file"] in worse))
    better = sorted(file for file, count in allowed.items() if found[file] < count)
    if better:
        print(f"fewer errors than allowed; run tools/check_test_types.py --update: {', '.join(better)}")
    return 1 if worse else 0


def _mypy() -> str:
    lax = [f"--disable-error-code={code}" for code in _LAX]
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--explicit-package-bases",
        "--no-error-summary",
        *lax,
        "tests",
    ]
    environment = {"MYPYPATH": ":".join(FOLDERS), "PATH": ""}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr or "Success"


if __name__ == "__main__":
    sys.exit(main())
