#!/bin/sh
# Fails if the structured data of any page below the given folder has an error: ./audit.sh public
# For a code scanner, crawl a preview of the site and run: quadloom audit --format sarif --output audit.sarif
set -eu
find "${1:-public}" -name '*.html' -exec quadloom inspect --fail-on error {} +
