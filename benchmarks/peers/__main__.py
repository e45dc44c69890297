"""Install the peers, find the best flags for llama.cpp's server, or say what is there.

python -m benchmarks.peers setup     about 20 minutes on two cores, 6 GB; may be interrupted
python -m benchmarks.peers sweep     about 10 minutes; records the best flags in results/
python -m benchmarks.peers status
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.peers.install import install_llama, install_vllm
from benchmarks.peers.layout import (
    INSTALL_HINT,
    PeerError,
    PeerFolder,
    PeerModel,
    default_folder,
)
from benchmarks.peers.random_model import write_peer_files
from benchmarks.peers.sweep import sweep
from benchmarks.peers.weights import convert_default_model
from chatserve.errors import ChatServeError


@dataclass(frozen=True, slots=True)
class Step:
    """One part of the set-up: what it costs, whether it is done, how it is done."""

    title: str
    cost: str
    is_done: Callable[[PeerFolder], bool]
    do: Callable[[PeerFolder], None]


STEPS = (
    Step(
        "llama.cpp",
        "80 MB; up to 15 minutes where it has to be compiled",
        lambda folder: folder.has_llama,
        install_llama,
    ),
    Step(
        "the default model's weights for the peers",
        "1 GB, a minute",
        lambda folder: folder.has_weights(PeerModel.DEFAULT),
        convert_default_model,
    ),
    Step(
        "vLLM for CPUs",
        "3 GB, 5 minutes",
        lambda folder: folder.has_vllm,
        install_vllm,
    ),
    Step(
        "random weights in the shape of Qwen2.5-0.5B",
        "2 GB, a minute",
        lambda folder: folder.has_weights(PeerModel.QWEN_SHAPE),
        write_peer_files,
    ),
)


def set_up(folder: PeerFolder) -> None:
    """Do every step that is not done."""
    print(f"the peers' folder is {folder.root}")
    folder.root.mkdir(parents=True, exist_ok=True)
    for number, step in enumerate(STEPS, start=1):
        heading = f"[{number}/{len(STEPS)}] {step.title}"
        if step.is_done(folder):
            print(f"{heading}: there already")
            continue
        print(f"{heading}: {step.cost} …", flush=True)
        began = time.monotonic()
        step.do(folder)
        print(f"{heading}: done in {(time.monotonic() - began) / 60:.1f} minutes")


def print_status(folder: PeerFolder) -> None:
    for step in STEPS:
        print(f"{step.title}: {'there' if step.is_done(folder) else INSTALL_HINT}")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=["setup", "sweep", "status"])
    parser.add_argument("--sessions", type=int, default=16, help="of each load of the sweep")
    args, folder = parser.parse_args(), default_folder()
    try:
        match args.command:
            case "setup":
                set_up(folder)
            case "sweep":
                print(f"recorded in {sweep(folder, args.sessions)}")
            case "status":
                print_status(folder)
    except (PeerError, ChatServeError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
