"""The choice of backend, and what a machine without a GPU is spared."""

import subprocess
import sys

from chatserve.kernels import get_ops
from chatserve.kernels.torch_ops import TorchOps


def test_cpu_gets_the_torch_reference() -> None:
    assert isinstance(get_ops("cpu"), TorchOps)


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
