#!/bin/sh
# Run what is in C with the sanitizers of GCC for addresses, undefined behaviour and leaks: both implementations on the corpora, on any
# markup, and the fuzzer of documents. Usage: tools/check_native.sh [PYTHON] [SECONDS of fuzzing]
set -eu
python=${1:-.venv/bin/python}
seconds=${2:-60}
native=src/quadloom/documents/native
kept=$(mktemp -d)
restore() { cp "$kept"/*.so $native/; rm -rf "$kept"; }
cp $native/*.so "$kept"
trap restore EXIT
include=$("$python" -c "import sysconfig; print(sysconfig.get_path('include'))")
# Usage: built OUTPUT SOURCE…
built() {
    output=$1
    shift
    gcc -std=c11 -O1 -g -Wall -Wextra -Werror -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover \
        -fPIC -shared -DPy_LIMITED_API=0x030B0000 -I"$include" "$@" -o "$output"
}
# The modules and sources are those that a release builds.
"$python" - >"$kept/modules" <<'PYTHON'
import tomllib
with open("pyproject.toml", "rb") as file:
    for module in tomllib.load(file)["tool"]["setuptools"]["ext-modules"]:
        print(module["name"].rpartition(".")[2], *module["sources"])
PYTHON
while read -r module sources; do
    # shellcheck disable=SC2086 # a list of files
    built "$native/$module.abi3.so" $sources
done <"$kept/modules"
built "$kept/planted.so" tools/planted_errors.c

# Python's own allocator would hide what is beyond the end of a block.
export PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0
preloaded="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)"
# Usage: checked COMMAND…
checked() { LD_PRELOAD="$preloaded" "$@"; }
# Usage: leaks NAME COMMAND…; writes reports. Python itself frees little at its end, so leaks are judged by who allocated.
leaks() {
    name=$1
    shift
    ASAN_OPTIONS="detect_leaks=1:exitcode=0:fast_unwind_on_malloc=0:log_path=$kept/$name" checked "$@"
}
planted() { echo "import ctypes; ctypes.CDLL('$kept/planted.so').$1(ctypes.c_size_t(64))"; }

if checked "$python" -c "$(planted planted_overflow)" >"$kept/overflow" 2>&1 || ! grep -q heap-buffer-overflow "$kept/overflow"; then
    echo "the sanitizers do not report a planted overflow" >&2
    exit 1
fi
leaks control "$python" -c "$(planted planted_leak)"
if ! grep -q planted_leak "$kept"/control.*; then
    echo "the sanitizers do not report a planted leak" >&2
    exit 1
fi

leaks corpus "$python" tests/property/fuzzing.py document 7 20 "$kept/input"
if grep -l "$native\|quadloom/documents/native" "$kept"/corpus.* >/dev/null 2>&1; then
    grep -h -B 6 -A 6 "quadloom/documents/native" "$kept"/corpus.* | head -60 >&2
    echo "memory that is allocated in $native is never freed" >&2
    exit 1
fi

checked "$python" -m pytest -q -n 0 -p no:cacheprovider --timeout 1800 \
    tests/unit/documents/syntaxes/html/test_elements.py tests/property/test_native_elements.py tests/corpus \
    tests/property/test_blank_node_labels.py tests/unit/documents/syntaxes/rdf/test_blank_nodes.py \
    tests/property/test_foreign_names.py tests/property/test_native_tame.py tests/unit/documents/words \
    tests/property/test_native_records.py tests/property/test_references.py tests/property/test_native_terms.py tests/unit/documents/syntaxes/test_sink.py \
    tests/unit/documents/syntaxes/test_charset.py tests/unit/documents/syntaxes/html/test_tree.py tests/unit/documents/syntaxes/test_guards.py
checked "$python" tests/property/fuzzing.py document 11 "$seconds" "$kept/input"
