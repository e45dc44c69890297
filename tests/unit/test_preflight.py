"""What `chatserve serve` finds out before it fetches a model or starts anything."""

import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from chatserve.config import EngineConfig, GatewayConfig, ServeConfig
from chatserve.engine.api import BEAT_TTL_MS
from chatserve.errors import ConfigError, StoreError
from chatserve.supervisor import serve as serve_module
from chatserve.supervisor.preflight import check_surroundings
from chatserve.supervisor.serve import POLICY, serve

NOWHERE = "unix:///nowhere/store.sock"


def settings(tmp_path: Path, *, device: str = "cpu", store_url: str | None = None) -> ServeConfig:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    url = store_url or NOWHERE
    return ServeConfig(
        EngineConfig(data_dir=tmp_path, device=device, redis_url=url),
        GatewayConfig(port=port, redis_url=url),
        uses_bundled_store=store_url is None,
    )


def test_a_store_that_is_away_is_told_before_a_model_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It used to be told after a download, by a gateway that died five times."""

    def fetch(*_: Any) -> Path:
        raise AssertionError("a model was fetched")

    monkeypatch.setattr(serve_module, "fetch_if_missing", fetch)

    with pytest.raises(StoreError, match=r"--redis-url: .*; is it running"):
        serve(settings(tmp_path, store_url=NOWHERE), say=print)


@pytest.mark.parametrize("code", [0, 1, 3])
def test_a_gpu_that_is_not_there_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """A torch that does not even start is left to the engine, which says why."""
    asked: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        asked.append(command)
        return subprocess.CompletedProcess(command, code)

    monkeypatch.setattr(subprocess, "run", run)
    config = settings(tmp_path, device="cuda")

    if code == 3:
        with pytest.raises(ConfigError, match="--device cuda: torch finds no CUDA device"):
            check_surroundings(config)
    else:
        check_surroundings(config)

    assert len(asked) == 1


def test_nothing_but_the_address_is_asked_for_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", None)

    check_surroundings(settings(tmp_path))


def test_readiness_is_not_believed_while_a_dead_engines_heartbeat_counts() -> None:
    """`ready again` used to be printed while no engine ran."""
    assert POLICY.settle_s * 1e3 > BEAT_TTL_MS
