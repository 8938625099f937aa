#!/bin/sh
# Fails if the structured data of any page below the given folder has an error: ./audit.sh public
# For a code scanner, write a report: quadloom inspect … --format sarif, or crawl a preview and run `quadloom audit`.
set -eu
find "${1:-public}" -name '*.html' -exec quadloom inspect --fail-on error {} +
