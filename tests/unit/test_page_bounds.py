"""What the page knows of the service's bounds by itself, without being told, is what they are."""

import re
from pathlib import Path

from chatserve.gateway.conversation_archive import MAX_IMPORT_BYTES

WEB = Path(__file__).parents[2] / "web" / "src"


def test_the_page_takes_as_large_a_file_as_the_service_imports() -> None:
    source = (WEB / "sessions" / "import_file.ts").read_text()

    bounds = re.findall(r"^const maxFileBytes = (\d+) \* (\d+) \*\* (\d+);$", source, re.MULTILINE)

    assert [int(count) * int(base) ** int(power) for count, base, power in bounds] == [
        MAX_IMPORT_BYTES
    ]
