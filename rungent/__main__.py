"""`python -m rungent` is the command line."""

import sys

from rungent.cli import main

if __name__ == "__main__":
    sys.exit(main())
