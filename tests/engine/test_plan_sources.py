"""The engine starts with the plan that `chatserve plan` prints; inputs are those of the model."""

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from engine.model_helpers import hf_configs, load, make_hf_model, write_gguf, write_hf_folder

from chatserve.config import EngineConfig
from chatserve.engine.launch import build_engine
from chatserve.errors import ConfigError
from chatserve.model.peek import peek_config
from chatserve.planning import machine_speed, sources
from chatserve.planning.sources import plan_for_loaded, plan_without_loading
from chatserve.planning.step_time import MachineSpeed, ModelCost

CONFIGS = hf_configs()
MEASURED = MachineSpeed(bandwidth_gb_per_s=3.0, kv_bandwidth_gb_per_s=2.0, throughput_gflops=50.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = make_hf_model(CONFIGS["plain"])
    return write_hf_folder(model, tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def config(folder: Path, tmp_path: Path) -> EngineConfig:
    return EngineConfig(
        model=str(folder),
        data_dir=tmp_path,
        dtype="float32",
        kv_memory_bytes=2**20,
        bandwidth_gb_per_s=1.0,
        throughput_gflops=1.0,
    )


@pytest.fixture
def measurements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The dtypes that were measured; every measurement gives `MEASURED`."""
    seen: list[str] = []

    def measure(_model: Any, cost: ModelCost, *_where: Any) -> MachineSpeed:
        seen.append(cost.dtype)
        return MEASURED

    monkeypatch.setattr(machine_speed, "measure_speed", measure)
    return seen


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_are_counted_as_the_loaded_model_counts_them(
    name: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    folder = write_hf_folder(make_hf_model(CONFIGS[name]), tmp_path / "folder")
    loaded = load(folder, tmp_path / "cache", dtype)

    cost = ModelCost.of(peek_config(folder), str(dtype).removeprefix("torch."))

    assert cost.step_read_bytes == loaded.weight_bytes


@pytest.mark.parametrize("write", [write_hf_folder, write_gguf], ids=["folder", "gguf"])
def test_a_peek_finds_the_configuration_that_loading_finds(
    write: Callable[[Any, Path], Path], tmp_path: Path
) -> None:
    path = write(make_hf_model(CONFIGS["tied"]), tmp_path / "model")

    assert peek_config(path) == load(path, tmp_path / "cache").config


def test_the_engine_starts_with_the_plan_that_is_printed(config: EngineConfig) -> None:
    printed = plan_without_loading(config)

    built = build_engine(config)

    assert built.plan == printed
    assert built.card.max_model_len == printed.max_model_len


def test_a_container_limit_counts_as_the_machines_memory(
    config: EngineConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_CGROUP_LIMIT", tmp_path / "memory.max")
    free = replace(config, kv_memory_bytes=None)

    (tmp_path / "memory.max").write_text("4000000\n")
    limited = plan_without_loading(free)
    (tmp_path / "memory.max").write_text("max\n")
    unlimited = plan_without_loading(free)

    assert limited.inputs.pool_share_bytes == 1_000_000
    assert limited.num_pages == 1_000_000 // limited.kv_bytes_per_page
    assert unlimited.inputs.pool_share_bytes > 10**8


def test_speed_is_measured_in_the_dtype_to_be_used(
    config: EngineConfig, measurements: list[str]
) -> None:
    unknown = replace(config, dtype="bfloat16", bandwidth_gb_per_s=None, throughput_gflops=None)

    plan = plan_without_loading(unknown)

    assert plan.inputs.speed == MEASURED
    assert measurements == ["bfloat16"]


def test_a_given_speed_takes_the_place_of_the_measured_one(
    config: EngineConfig, measurements: list[str]
) -> None:
    half_known = plan_without_loading(replace(config, throughput_gflops=None))
    all_known = plan_without_loading(config)

    assert half_known.inputs.speed == MachineSpeed(1.0, 1.0, MEASURED.throughput_gflops)
    assert all_known.inputs.speed == MachineSpeed(1.0, 1.0, 1.0)
    assert len(measurements) == 1


def test_an_engine_measures_only_what_a_limit_depends_on(
    config: EngineConfig, folder: Path, measurements: list[str]
) -> None:
    model = peek_config(folder)
    unknown = replace(config, bandwidth_gb_per_s=None, throughput_gflops=None)

    fixed = replace(unknown, max_num_seqs=2, max_num_batched_tokens=64)
    half_fixed = replace(unknown, max_num_seqs=2)

    cost = ModelCost.of(model, "float32")

    assert plan_for_loaded(fixed, "tiny", model, cost).inputs.speed is None
    assert plan_for_loaded(half_fixed, "tiny", model, cost).inputs.speed == MEASURED
    assert len(measurements) == 1


def test_sessions_share_half_of_their_tokens_unless_told(config: EngineConfig) -> None:
    halves = plan_without_loading(replace(config, session_tokens=100))
    told = plan_without_loading(replace(config, session_tokens=100, shared_tokens=7))

    assert halves.inputs.workload.shared_tokens == 50
    assert told.inputs.workload.shared_tokens == 7


@pytest.mark.parametrize("changes", [{"dtype": "auto"}, {"kv_memory_bytes": None}])
def test_a_missing_gpu_is_one_line(config: EngineConfig, changes: dict[str, Any]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")

    with pytest.raises(ConfigError, match="torch finds no CUDA device here; use --device cpu"):
        plan_without_loading(replace(config, device="cuda", **changes))


def test_the_start_logs_limits_and_warnings_and_details_for_debugging(
    config: EngineConfig, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "chatserve.engine.start_log"):
        build_engine(replace(config, max_num_seqs=200, max_num_batched_tokens=200))

    records = [each for each in caplog.records if each.name == "chatserve.engine.start_log"]
    lines = [(record.levelname, record.getMessage()) for record in records]
    levels = ["INFO", "INFO", "INFO", "DEBUG", "DEBUG", "WARNING", "WARNING"]
    assert [level for level, _ in lines] == levels
    backend, model, limits, reasons, inputs, *_ = [message for _, message in lines]
    assert backend.startswith("computing with ")
    assert model.startswith("serving tiny on cpu: weights in f32, 0 MB read for a token; ")
    assert limits.startswith("limits: 200 requests, 200 tokens a step, ")
    assert reasons.startswith("plan: --max-num-seqs 200: given; ")
    assert inputs.startswith("planned from: weights 0 MB; machine reads 1.0 GB/s")
