#!/usr/bin/env bash
# What the browser tests need: Chromium from Debian where this user may install it, and the site's browser parts from npm.
# Nothing here is essential: where it cannot be had, those tests skip and say so.
set -u
cd "$(dirname "$0")/.." || exit 0

if ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null && ! command -v google-chrome >/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing Chromium for the browser tests …"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 \
      || echo "Chromium could not be installed: the browser tests will be skipped"
  else
    echo "no Chromium and no right to install one: the browser tests will be skipped"
  fi
fi

if [ ! -d web-assets/node_modules ] && command -v npm >/dev/null; then
  (cd web-assets && npm ci --ignore-scripts --no-audit --no-fund --silent && npm run --silent build) >/dev/null 2>&1 \
    || echo "the site's browser parts could not be built: its pages are tested as plain HTML"
fi
exit 0
