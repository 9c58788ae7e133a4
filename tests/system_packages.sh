#!/bin/sh
# Makes sure that the programs which the tests start are there: PostgreSQL's server, curl,
# nginx, and a Chromium for the tests of the page.
set -eu

missing=""
command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 ||
    missing="$missing postgresql"
command -v curl >/dev/null 2>&1 || missing="$missing curl"
command -v nginx >/dev/null 2>&1 || [ -x /usr/sbin/nginx ] || missing="$missing nginx-light"
command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 ||
    missing="$missing chromium"
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086 # a list of package names
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
    exit 0
fi
echo "The tests need these system packages: install$missing and try again." >&2
exit 1
