"""Questions about a device that only torch can answer, and the threads that compute on it.

Owns how many threads there are and which pool they are in. Knows no model and no plan.

Three processes share the cores: the store and the gateway, which need a core for some microseconds
at a time but soon, and the engine, which wants all of them for milliseconds. In the engine there
are the thread that steps, the event loop that talks to the store, and up to two pools:

    pool       waits for work by                     computes
    kernels    spinning for 50 us, then sleeping     the model, where the C++ kernels serve
    OpenMP     sleeping (`environment.wait_passively`)    the model, where torch serves

1. One thread per core, and not one less for the neighbours. A step is as long as its slowest
   thread, but one that loses its core does not hold the others up: the kernels' threads take
   iterations from each other. With one thread less a core would be idle whenever the neighbours
   are, which is most of the time.
2. Spinning pays within a step, where the next loop comes after a few microseconds; a sleeping
   thread takes tens to wake. Between two steps nobody spins for longer than that, and a core that
   the store or the gateway asks for is free.
3. Only one of the pools is used. Where the kernels compute the model, torch is left with small
   things between them, and a second pool costs more than it gives: what takes 25 us on one thread
   took 8 to 16 ms on two, on two cores with other busy processes, since each use waits for the
   pool's other thread to be given a core. So torch then has a single thread (`one_pool`).
"""

import torch

from chatserve.errors import ConfigError
from chatserve.kernels import Ops
from chatserve.kernels.cpu import CpuOps


def require_device(device: str) -> None:
    """Raise ConfigError where torch cannot compute on the device."""
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device cuda: torch finds no CUDA device here; use --device cpu")


def use_threads(num_threads: int | None) -> None:
    """Set how many threads compute, before the ops are made.

    None leaves it to torch: OMP_NUM_THREADS, or one per core.
    """
    if num_threads is not None:
        torch.set_num_threads(num_threads)


def kernels_compute(ops: Ops, dtype: torch.dtype) -> bool:
    """Return whether the C++ kernels compute a model of this dtype, and not torch."""
    return isinstance(ops, CpuOps) and dtype == torch.bfloat16


def one_pool(ops: Ops, dtype: torch.dtype) -> None:
    """Leave torch a single thread if the kernels' own compute a loaded model of this dtype."""
    if kernels_compute(ops, dtype):
        torch.set_num_threads(1)


def free_gpu_bytes() -> int:
    free, _total = torch.cuda.mem_get_info()
    return int(free)
