"""The codes of errors: named in one place, and used by their names."""

import re
from pathlib import Path

from chatserve.error_codes import ErrorCode

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "chatserve"

LITERAL = re.compile(r'\bcode(?:: str)?\s?=\s?"|error_code="')
IN_LUA = re.compile(r"'error', '(\w+)'")


def test_no_module_spells_a_code_itself() -> None:
    spelling = [
        file.relative_to(PACKAGE)
        for file in sorted(PACKAGE.rglob("*.py"))
        if LITERAL.search(file.read_text())
    ]

    assert spelling == []


def test_codes_that_scripts_write_are_codes() -> None:
    scripts = (PACKAGE / "store" / "lua").glob("*.lua")

    written = {code for script in scripts for code in IN_LUA.findall(script.read_text())}

    assert written == {"worker_lost", "deadline_exceeded"} <= set(ErrorCode)


def test_every_code_is_used() -> None:
    sources = "".join(file.read_text() for file in PACKAGE.rglob("*.py"))
    lua = "".join(file.read_text() for file in (PACKAGE / "store" / "lua").glob("*.lua"))

    unused = [
        code.name
        for code in ErrorCode
        if f"ErrorCode.{code.name}" not in sources and f"'{code.value}'" not in lua
    ]

    assert unused == []


def test_every_code_is_named_by_a_test() -> None:
    """Clients compare with them, so that none may change or go without notice."""
    sources = "".join(file.read_text() for file in TESTS.rglob("test_*.py"))

    assert [code.name for code in ErrorCode if f'"{code.value}"' not in sources] == []
