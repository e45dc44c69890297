"""The choice of backend, and what a machine without a GPU or a compiler is spared."""

import _ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_helpers import cpu_ops

from chatserve import kernels
from chatserve.errors import ConfigError
from chatserve.kernels import get_ops
from chatserve.kernels.cpu import CpuOps, library, usable_levels
from chatserve.kernels.cpu.build import LEVELS
from chatserve.kernels.torch_ops import TorchOps

_LOADED_RUNTIMES = """
import torch
from chatserve.kernels import get_ops

layer = get_ops("cpu").pack_linear(torch.ones(64, 64).bfloat16(), None, torch.bfloat16)
layer(torch.ones(300, 64).bfloat16())
torch.ones(500, 500) @ torch.ones(500, 500)
with open("/proc/self/maps") as maps:
    files = {line.split()[-1] for line in maps if ".so" in line}
print(*(file for file in files if "omp" in file.rsplit("/", 1)[-1]))
"""


@pytest.fixture
def no_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "usable_levels", list)


def test_a_cpu_gets_the_best_level_that_it_has() -> None:
    cpu_ops("plain")

    ops = get_ops("cpu")

    assert isinstance(ops, CpuOps)
    assert ops.level == usable_levels()[0]


@pytest.mark.parametrize("level", LEVELS)
def test_a_lower_level_can_be_asked_for(level: str) -> None:
    cpu_ops(level)

    ops = get_ops("cpu", level)

    assert isinstance(ops, CpuOps)
    assert ops.level == level


def test_the_reference_can_be_asked_for() -> None:
    assert isinstance(get_ops("cpu", "torch"), TorchOps)


@pytest.mark.usefixtures("no_libraries")
def test_without_libraries_the_reference_serves() -> None:
    assert isinstance(get_ops("cpu"), TorchOps)


@pytest.mark.usefixtures("no_libraries")
def test_a_level_is_refused_with_advice_where_nothing_is_built() -> None:
    with pytest.raises(ConfigError, match=r"--cpu-level avx2: .* not built; install a C\+\+"):
        get_ops("cpu", "avx2")


def test_a_level_that_is_not_there_is_refused_with_those_that_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernels, "usable_levels", lambda: ["plain"])

    with pytest.raises(ConfigError, match="--cpu-level avx2: this machine runs plain and torch"):
        get_ops("cpu", "avx2")


@pytest.mark.parametrize("content", [b"", b"no library"], ids=["empty", "garbage"])
def test_a_damaged_library_is_one_clear_error(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = tmp_path / "plain.so"
    damaged.write_bytes(content)
    monkeypatch.setattr(library, "library_path", lambda level: damaged)

    with pytest.raises(ConfigError, match=r"plain\.so is damaged: delete it and run"):
        get_ops("cpu")


def test_a_library_of_something_else_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Path(_ctypes.__file__)
    monkeypatch.setattr(library, "library_path", lambda level: other)

    with pytest.raises(ConfigError, match="is damaged: delete it and run"):
        get_ops("cpu")


def test_cuda_gets_triton_even_for_a_numbered_device() -> None:
    from chatserve.kernels.triton import TritonOps

    assert isinstance(get_ops("cuda:1"), TritonOps)


def test_ops_for_the_cpu_never_import_triton() -> None:
    probe = (
        "import sys; from chatserve.kernels import get_ops; get_ops('cpu');"
        "sys.exit('triton' in sys.modules)"
    )

    process = subprocess.run([sys.executable, "-c", probe], check=False)

    assert process.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_kernels_bring_no_second_openmp_runtime() -> None:
    cpu_ops("plain")

    process = subprocess.run(
        [sys.executable, "-c", _LOADED_RUNTIMES],
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert len(process.stdout.split()) == 1
