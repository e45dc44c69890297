"""What `--dtype auto` means, by what the backend computes with."""

import platform

import pytest
import torch

from chatserve.errors import ConfigError
from chatserve.kernels import Ops
from chatserve.kernels.cpu import CpuOps, usable_levels
from chatserve.kernels.torch_ops import TorchOps
from chatserve.planning.dtype import resolve_dtype


@pytest.fixture(params=[level for level in ("avx512", "avx2") if level in usable_levels()])
def vector_ops(request: pytest.FixtureRequest) -> CpuOps:
    return CpuOps(request.param)


@pytest.fixture
def plain_ops() -> CpuOps:
    if "plain" not in usable_levels():
        pytest.skip("the CPU kernels are not built")
    return CpuOps("plain")


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_a_named_dtype_is_taken_as_it_is(name: str) -> None:
    assert resolve_dtype(name, "cpu", TorchOps()) == getattr(torch, name)


def test_kernels_with_vector_instructions_store_bfloat16(vector_ops: Ops) -> None:
    assert resolve_dtype("auto", "cpu", vector_ops) == torch.bfloat16


@pytest.mark.parametrize(
    ("machine", "dtype"), [("x86_64", torch.float32), ("aarch64", torch.bfloat16)]
)
def test_plain_kernels_store_bfloat16_on_arm64_only(
    plain_ops: Ops, machine: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)

    assert resolve_dtype("auto", "cpu", plain_ops) == dtype


@pytest.mark.parametrize(("is_native", "dtype"), [(True, torch.bfloat16), (False, torch.float32)])
def test_without_kernels_it_depends_on_the_instructions_that_torch_finds(
    is_native: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: is_native)

    assert resolve_dtype("auto", "cpu", TorchOps()) == dtype


def test_an_unknown_dtype_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="auto, float32, bfloat16, float16, received 'int3'"):
        resolve_dtype("int3", "cpu", TorchOps())
