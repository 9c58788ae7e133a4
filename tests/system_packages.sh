#!/bin/sh
# Makes sure that the server programs which the tests start are there: PostgreSQL.
set -eu

have_postgres() {
    command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1
}

have_postgres && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends postgresql >/dev/null
    exit 0
fi
echo "The tests need PostgreSQL (initdb, pg_ctl): install the package 'postgresql' and try again." >&2
exit 1
