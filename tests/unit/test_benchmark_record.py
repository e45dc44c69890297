"""The result of a benchmark on disk."""

import json
from pathlib import Path

import pytest

from benchmarks import record


def test_a_record_says_what_it_was_measured_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "RESULTS", tmp_path)

    path = record.write_record("memory", {"pages": 7})

    written = json.loads(path.read_text())
    assert path == tmp_path / f"memory-{written['date']}.json"
    assert written.keys() == {"date", "commit", "machine", "command", "pages"}
    assert written["pages"] == 7
    assert written["machine"]["processor"]
    assert written["command"].startswith("python ")


def test_a_record_outside_a_repository_does_not_know_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    monkeypatch.setenv("GIT_DIR", str(tmp_path))

    written = json.loads(record.write_record("memory", {}).read_text())

    assert written["commit"] == "unknown"
