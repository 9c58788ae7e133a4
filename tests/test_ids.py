"""Ids: random, unique, and never the same in two processes."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from rungent.ids import ids_from, new_id

FORM = re.compile("evt_[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}")


def test_an_id_is_the_hex_form_of_a_random_uuid() -> None:
    made = [new_id("evt_") for _ in range(20_000)]
    assert all(FORM.fullmatch(one) for one in made)
    for place in range(32):
        # The version is fixed, and of the variant's digit half.
        digits = {one[4 + place] for one in made}
        assert len(digits) == {12: 1, 16: 4}.get(place, 16)


def test_ids_made_after_one_another_begin_alike_and_end_at_random() -> None:
    made = [new_id("evt_") for _ in range(6400)]
    heads, tails = {one[:16] for one in made}, {one[16:] for one in made}
    # Threads of other tests may have left rests of a few blocks.
    assert 90 <= len(heads) <= 110
    assert len(tails) == len(made)


def test_threads_never_make_the_same_id() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(new_id, ["evt_"] * 20_000))
    assert len(set(made)) == len(made)


def test_ids_of_a_given_source_are_repeatable() -> None:
    def few(seed: int) -> list[str]:
        with ids_from(random.Random(seed)):
            return [new_id("evt_") for _ in range(5)]

    assert few(1) == few(1)
    assert not set(few(1)) & set(few(2))


FORKING = """
import os
from rungent.ids import new_id

new_id("evt_")
child = os.fork()
made = "".join(new_id("evt_") + "\\n" for _ in range(50))
os.write(1, made.encode())  # at once: both write into one pipe
if child:
    os.waitpid(child, 0)
"""


def test_a_forked_process_makes_ids_of_its_own() -> None:
    made = subprocess.run(
        [sys.executable, "-c", FORKING], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    assert len(made) == len(set(made)) == 100
