"""The settings of scopes, pins and saved prefixes reach the engine."""

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from engine.model_helpers import hf_configs, make_hf_model, write_hf_folder

from chatserve.cache_snapshot import CacheSnapshot
from chatserve.config import EngineConfig
from chatserve.engine.api import KeptPrefix, PrefixReport, PrefixState
from chatserve.engine.launch import build_engine


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = make_hf_model(hf_configs()["plain"])
    return write_hf_folder(model, tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def config(folder: Path, tmp_path: Path) -> EngineConfig:
    return EngineConfig(
        model=str(folder),
        data_dir=tmp_path,
        dtype="float32",
        page_size=4,
        num_pages=64,
        max_model_len=64,
        max_num_seqs=4,
        max_num_batched_tokens=64,
    )


def keep(config: EngineConfig, prefix: KeptPrefix) -> PrefixReport:
    """Build an engine, let it keep a prefix, and return what became of it."""
    report, _ = keep_and_look(config, prefix)
    return report


def keep_and_look(config: EngineConfig, prefix: KeptPrefix) -> tuple[PrefixReport, CacheSnapshot]:
    """Build an engine, let it keep a prefix; return what became of it, and of the cache."""
    engine = build_engine(config).engine
    reports: list[PrefixReport] = []
    done = threading.Event()

    def take(news: Sequence[PrefixReport]) -> None:
        reports.extend(news)
        if news[-1].state is not PrefixState.WARMING:
            done.set()

    engine.start(lambda _: None, lambda _: done.set(), take)
    engine.keep_exactly([prefix])
    assert done.wait(timeout=30)
    snapshot, _ = engine.cache_snapshot().result(timeout=30)
    engine.stop()
    return reports[-1], snapshot


def make_prefix(num_pages: int, tenant: str = "acme") -> KeptPrefix:
    return KeptPrefix(tenant, "support", tuple(range(3, 3 + 4 * num_pages)))


def test_a_tenant_may_pin_a_quarter_of_what_all_may(config: EngineConfig) -> None:
    most = keep(config, make_prefix(8))
    more = keep(config, make_prefix(9))

    assert most.state is PrefixState.PINNED
    assert more.reason == ("it needs 9 more pages, with 8 left of 8 that a tenant may pin")


def test_the_quota_of_tenants_is_a_setting_and_does_not_bind_the_preamble(
    config: EngineConfig,
) -> None:
    strict = replace(config, tenant_pinned_pages=2)

    assert keep(strict, make_prefix(3)).state is PrefixState.REFUSED
    assert keep(strict, make_prefix(3, tenant="")).state is PrefixState.PINNED


def test_a_pinned_prefix_is_saved_in_the_data_folder_and_restored(
    config: EngineConfig, tmp_path: Path
) -> None:
    first = keep(config, make_prefix(3))
    (saved,) = (tmp_path / "prefixes").iterdir()

    second = keep(config, make_prefix(3))

    assert (first.is_restored, second.is_restored) == (False, True)
    assert saved.stat().st_mode & 0o777 == 0o600


def test_a_restored_prefix_was_used_when_it_was_restored(config: EngineConfig) -> None:
    keep(config, make_prefix(3))

    report, snapshot = keep_and_look(config, make_prefix(3))

    assert report.is_restored
    assert snapshot.nodes
    assert all(node.idle_s < 60 for node in snapshot.nodes)


def test_nothing_is_saved_where_no_space_is_given(config: EngineConfig, tmp_path: Path) -> None:
    report = keep(replace(config, saved_prefixes_bytes=0), make_prefix(3))

    assert report.state is PrefixState.PINNED
    assert not (tmp_path / "prefixes").exists()


def test_a_scope_that_lets_tenants_see_each_other_is_warned_about_once(
    config: EngineConfig, caplog: pytest.LogCaptureFixture
) -> None:
    for scope in ("user", "tenant", "all"):
        with caplog.at_level(logging.WARNING):
            build_engine(replace(config, cache_scope=scope))

    warnings = [record.message for record in caplog.records if "--cache-scope" in record.message]
    assert warnings == [
        "--cache-scope all: by the time that answers take, tenants can find out what others ask"
    ]
