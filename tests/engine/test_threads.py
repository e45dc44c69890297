"""Only one pool of threads computes: the kernels' own, or torch's."""

from collections.abc import Iterator

import pytest
import torch

from chatserve.kernels import Ops
from chatserve.kernels.cpu import CpuOps, usable_levels
from chatserve.kernels.torch_ops import TorchOps
from chatserve.planning.machine import one_pool, use_threads


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def kernels() -> CpuOps:
    if not usable_levels():
        pytest.skip("the CPU kernels are not built")
    return CpuOps(usable_levels()[0])


def test_no_number_of_threads_leaves_what_torch_chose() -> None:
    use_threads(3)

    use_threads(None)

    assert torch.get_num_threads() == 3


def test_torch_is_left_one_thread_where_the_kernels_compute(kernels: Ops) -> None:
    use_threads(3)

    one_pool(kernels, torch.bfloat16)

    assert torch.get_num_threads() == 1


def test_torch_keeps_its_threads_where_it_computes(kernels: Ops) -> None:
    use_threads(3)

    one_pool(kernels, torch.float32)
    one_pool(TorchOps(), torch.bfloat16)

    assert torch.get_num_threads() == 3
