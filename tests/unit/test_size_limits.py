"""The line budgets of files and functions, which no linter checks."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("benchmarks", "chatserve", "kernels", "scripts", "tests", "web/src", "web/test")
SUFFIXES = (".cpp", ".h", ".py", ".lua", ".ts", ".tsx")
MAX_COLUMNS = 100
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_KERNEL_LINES = 120

Function = ast.FunctionDef | ast.AsyncFunctionDef


def source_files() -> list[Path]:
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    return sorted(path for path in found if path.suffix in SUFFIXES and path.is_file())


def functions_of(file: Path) -> Iterator[Function]:
    tree = ast.parse(file.read_text())
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def num_lines(function: Function) -> int:
    """Return the length of a function without its docstring and decorators."""
    first = function.body[0]
    is_documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring_lines = (first.end_lineno or 0) - first.lineno + 1 if is_documented else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring_lines


def is_kernel(function: Function) -> bool:
    return any("triton.jit" in ast.unparse(decorator) for decorator in function.decorator_list)


def test_files_are_short_enough_to_read_in_one_go() -> None:
    lengths = {file: len(file.read_text().splitlines()) for file in source_files()}

    too_long = [str(file) for file, length in lengths.items() if length > MAX_FILE_LINES]

    assert lengths
    assert too_long == []


def test_lines_of_what_no_formatter_reads_fit_the_screen() -> None:
    too_long = [
        f"{file}:{number}"
        for file in source_files()
        if file.suffix in (".cpp", ".h")
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if len(line) > MAX_COLUMNS
    ]

    assert too_long == []


def test_functions_are_short_enough_to_see_whole() -> None:
    too_long = [
        f"{file}:{function.lineno} {function.name}"
        for file in source_files()
        if file.suffix == ".py"
        for function in functions_of(file)
        if num_lines(function) > (MAX_KERNEL_LINES if is_kernel(function) else MAX_FUNCTION_LINES)
    ]

    assert too_long == []
