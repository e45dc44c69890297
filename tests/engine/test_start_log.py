"""What an engine says at its start of what computes."""

import logging

import pytest
import torch
from kernel_helpers import cpu_ops

from chatserve.config import EngineConfig
from chatserve.engine.start_log import log_backend
from chatserve.kernels.torch_ops import TorchOps


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def test_missing_kernels_are_one_warning_with_the_cure(said: pytest.LogCaptureFixture) -> None:
    log_backend(TorchOps(), torch.float32, EngineConfig())

    (record,) = said.records
    assert record.levelname == "WARNING"
    assert "install a C++ compiler, then run `make install`" in record.getMessage()


def test_torch_that_was_asked_for_is_no_warning(said: pytest.LogCaptureFixture) -> None:
    log_backend(TorchOps(), torch.float32, EngineConfig(cpu_level="torch"))

    (record,) = said.records
    assert record.levelname == "INFO"


def test_a_dtype_that_the_kernels_leave_to_torch_is_told(said: pytest.LogCaptureFixture) -> None:
    log_backend(cpu_ops("plain"), torch.float32, EngineConfig())

    (message,) = said.messages
    assert message.startswith("computing with torch on ")
    assert message.endswith(", in float32")


@pytest.mark.parametrize(("count", "words"), [(1, "on 1 thread"), (2, "on 2 threads")])
def test_the_level_and_the_threads_are_told(
    said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, count: int, words: str
) -> None:
    ops = cpu_ops("plain")
    monkeypatch.setattr(torch, "get_num_threads", lambda: count)

    log_backend(ops, torch.bfloat16, EngineConfig())

    assert said.messages == [f"computing with the CPU kernels for plain, {words}"]
