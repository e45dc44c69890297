"""What the documentation lists is what there is: metrics, and commands that work from a clone."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]


def test_every_metric_is_explained() -> None:
    sources = [path.read_text() for path in (ROOT / "chatserve").rglob("*.py")]
    names = {name for text in sources for name in re.findall(r'"(chatserve_[a-z_]+)"', text)}
    api = (ROOT / "docs/api.md").read_text()

    assert names
    assert [name for name in sorted(names) if not re.search(rf"\b{name}(_total)?\b", api)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_name_the_environment_that_has_the_packages(page: Path) -> None:
    bare = re.findall(r"(?<!\.venv/bin/)\bpython -m \S+", page.read_text())

    assert bare == []
