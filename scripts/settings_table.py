"""Write the table of settings into the README, between its two marker comments."""

import re
import sys
from pathlib import Path

from chatserve.config import EngineConfig, GatewayConfig
from chatserve.settings import settings_table

BEGIN = "<!-- settings: written by scripts/settings_table.py -->"
END = "<!-- end of settings -->"


def with_table(document: str) -> str:
    """Return the document with the current table between the markers."""
    table = f"{BEGIN}\n{settings_table(EngineConfig, GatewayConfig)}{END}"
    return re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: table, document, flags=re.S)


if __name__ == "__main__":
    readme = Path(sys.argv[1])
    readme.write_text(with_table(readme.read_text()))
