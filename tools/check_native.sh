#!/bin/sh
# Run what is in C with the address and undefined-behaviour sanitizers of GCC: both implementations on the corpora, on any markup, and
# the fuzzer of documents. Usage: tools/check_native.sh [PYTHON] [SECONDS of fuzzing]
set -eu
python=${1:-.venv/bin/python}
seconds=${2:-60}
native=src/quadloom/documents/native
kept=$(mktemp -d)
restore() { cp "$kept"/*.so $native/; rm -rf "$kept"; }
cp $native/*.so "$kept"
trap restore EXIT
include=$("$python" -c "import sysconfig; print(sysconfig.get_path('include'))")
# Usage: built MODULE SOURCE…
built() {
    module=$1
    shift
    gcc -std=c11 -O1 -g -Wall -Wextra -Werror -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover \
        -fPIC -shared -DPy_LIMITED_API=0x030B0000 -I"$include" "$@" -o "$native/$module.abi3.so"
}
built elements $native/elements.c $native/selection.c $native/view.c $native/page.c $native/library.c
built graphs $native/graphs.c $native/colours.c
built texts $native/texts.c $native/markup.c
built records $native/records.c $native/references.c
built terms $native/terms.c
# Python itself frees little at its end; its own allocator would hide what is beyond the end of a block.
export ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)"
export LD_PRELOAD
"$python" -m pytest -q -n 0 -p no:cacheprovider --timeout 1800 \
    tests/unit/documents/syntaxes/html/test_elements.py tests/property/test_native_elements.py tests/corpus \
    tests/property/test_blank_node_labels.py tests/unit/documents/syntaxes/rdf/test_blank_nodes.py \
    tests/property/test_foreign_names.py tests/property/test_native_tame.py tests/unit/documents/words \
    tests/property/test_native_records.py tests/property/test_references.py tests/property/test_native_terms.py tests/unit/documents/syntaxes/test_sink.py \
    tests/unit/documents/syntaxes/test_charset.py tests/unit/documents/syntaxes/html/test_tree.py tests/unit/documents/syntaxes/test_guards.py
"$python" tests/property/fuzzing.py document 11 "$seconds" "$kept/input"
