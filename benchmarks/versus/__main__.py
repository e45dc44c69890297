"""Measure chatserve beside llama.cpp and vLLM on this machine, and print the table.

    python -m benchmarks.versus                       all rows, three rounds: about 35 minutes
    python -m benchmarks.versus --quick               one round of shorter loads
    python -m benchmarks.versus --rows single decode  some rows
    python -m benchmarks.versus --from benchmarks/results/versus-DATE.json --readme

What was measured goes to benchmarks/results/: versus-DATE.json, or versus-partial-DATE.json where
rows were chosen or the run was quick. Nothing else should run on the machine meanwhile.
"""

import argparse
import json
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.peers.layout import VERSIONS, default_folder
from benchmarks.peers.sweep import recorded_best
from benchmarks.record import RESULTS, write_record
from benchmarks.versus.contenders import all_contenders
from benchmarks.versus.rounds import Measurement, RoundPlan, run_rounds
from benchmarks.versus.rows import Row, all_rows
from benchmarks.versus.table import compare, markdown, provenance, to_json, with_table
from chatserve.environment import process_environ

README = RESULTS.parents[1] / "README.md"
_ROUNDS = 3


def measure(rows: Sequence[Row], args: argparse.Namespace) -> Path:
    """Run the rounds and write the record; return its path."""
    if "OMP_NUM_THREADS" in process_environ():
        sys.exit("OMP_NUM_THREADS is set: unset it, every server is to use all cores")
    flags = recorded_best()
    plan = RoundPlan(args.rounds or (1 if args.quick else _ROUNDS), args.quick, args.seed)
    contenders = all_contenders(default_folder(), flags)
    measurement = run_rounds(contenders, rows, plan, _report)
    is_partial = args.quick or len(rows) < len(all_rows())
    record = {
        "versions": VERSIONS,
        "llama_server_flags": asdict(flags),
        **asdict(plan),
        "keys": sorted({row.key for row in rows}),
        "rows": [to_json(compare(row, measurement)) for row in rows],
        **measurement.to_json(),
    }
    return write_record("versus-partial" if is_partial else "versus", record)


def table_of(record: Mapping[str, Any]) -> str:
    """Return the table of a record as Markdown."""
    measurement = Measurement.from_json(record)
    rows = [row for row in all_rows() if row.key in record["keys"]]
    return markdown(compare(row, measurement) for row in rows)


def main() -> None:
    args = _parser().parse_args()
    rows = [row for row in all_rows() if not args.rows or row.key in args.rows]
    path: Path = args.record or measure(rows, args)
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        sys.exit(f"{path} is no record of this benchmark: {error}")
    table = f"{table_of(record)}\n{provenance(record, path.name)}"
    print(table)
    if args.readme:
        README.write_text(with_table(README.read_text(), table))


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.versus",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    keys = list(dict.fromkeys(row.key for row in all_rows()))
    add = parser.add_argument
    add("--rows", nargs="+", choices=keys, metavar="ROW", help=f"of: {', '.join(keys)}")
    add("--rounds", type=int, help=f"{_ROUNDS} if not given, 1 with --quick")
    add("--quick", action="store_true", help="shorter loads")
    add("--readme", action="store_true", help="put the table into README.md")
    add("--from", dest="record", type=Path, metavar="FILE", help="measure nothing; read this")
    add("--seed", default=secrets.token_hex(4), help="varies the prompts")
    return parser


if __name__ == "__main__":
    main()
