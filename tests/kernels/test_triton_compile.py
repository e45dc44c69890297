"""The Triton kernels compile for GPUs that are not here, and fit their shared memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# What one program may use, by compute capability.
SHARED_BYTES = {80: 163 * 1024, 90: 227 * 1024}


@pytest.mark.parametrize("capability", SHARED_BYTES)
def test_kernels_compile_to_machine_code(capability: int, tmp_path: Path) -> None:
    environ = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    environ.pop("TRITON_INTERPRET", None)
    program = Path(__file__).with_name("compile_kernels.py")

    process = subprocess.run(
        [sys.executable, str(program), str(capability)],
        capture_output=True,
        text=True,
        env=environ,
        timeout=300,
    )

    assert process.returncode == 0, process.stderr
    compiled = json.loads(process.stdout)
    assert len(compiled) == 12
    for name, kernel in compiled.items():
        assert {"ptx", "cubin"} <= set(kernel["kinds"]), name
        assert kernel["shared_bytes"] <= SHARED_BYTES[capability], name
