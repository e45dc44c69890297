"""Lets `python -m chatserve` be the `chatserve` command."""

import sys

from chatserve.cli import main

if __name__ == "__main__":
    sys.exit(main())
