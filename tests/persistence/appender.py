"""A process that appends events to a run, for the tests with several processes.

`python -m tests.persistence.appender KIND FOLDER RUN_ID COUNT` says `ready`, waits for a line on
its input, and then prints the seq of each acknowledged event. COUNT 0 means for ever.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import trio

from rungent.testing.store_samples import OWNER, step
from tests.persistence.stores import sql_store


async def main(kind: str, folder: str, run_id: str, count: int) -> None:
    store = sql_store(kind, Path(folder))
    async with store.open():
        run = await store.get_run(run_id)
        print("ready", flush=True)
        sys.stdin.readline()
        for _ in range(count) if count else itertools.count():
            commit = step(run)
            await store.commit(commit, owner=OWNER, token=run.fencing_token)
            run = commit.run
            print(run.event_seq, flush=True)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
