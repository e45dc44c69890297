"""What bounds a decode step."""

import pytest
import torch

from benchmarks.machine_bound import MachineBound
from chatserve.kernels.torch_ops import TorchOps


@pytest.fixture
def bound() -> MachineBound:
    bound = MachineBound(TorchOps(), read_bytes=4096, num_threads=2)
    bound.sample()
    return bound


def test_the_longer_of_reading_and_computing_bounds_a_step(bound: MachineBound) -> None:
    read_s, compute_s = 1e9 / bound.bytes_per_s, 1e9 / bound.operations_per_s

    assert bound.seconds(1e9, 0) == pytest.approx(read_s)
    assert bound.seconds(0, 1e9) == pytest.approx(compute_s)
    assert bound.seconds(1e9, 1e9) == pytest.approx(max(read_s, compute_s))


def test_torch_has_its_threads_back_after_a_sample(bound: MachineBound) -> None:
    before = torch.get_num_threads()

    bound.sample()

    assert torch.get_num_threads() == before
