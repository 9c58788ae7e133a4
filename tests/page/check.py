"""Checks the sources of the page, and that the committed files are what they build.

`python -m tests.page.check` installs what the page is built with, also for its tests.
"""

from __future__ import annotations

import sys

from tests.page.sources import PAGE
from tests.sdk.check import run_steps

STEPS = (("ci", "--prefer-offline"), ("run", "check"))

if __name__ == "__main__":
    sys.exit(run_steps(STEPS, PAGE))
