"""What must stay absent: these parts never load torch, nor anything that only a GPU needs.

Every module is imported in one fresh interpreter in which an import of a forbidden package fails
and is noted, so that a module which swallows the failure is caught as well.
"""

import json
import pkgutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

import chatserve

FORBIDDEN = ("torch", "triton", "transformers", "safetensors", "gguf")
PACKAGES = ("admin", "text", "protocol", "cache", "store", "gateway")
MODULES = (
    "engine.api",
    "planning.plan",
    "planning.report",
    "engine.scheduler",
    "model.hf_config",
)

_PROBE = """
import importlib, json, sys

attempts = []

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in forbidden:
            attempts.append(name)
            raise ImportError(f"{name} is forbidden here")

forbidden, modules = json.loads(sys.argv[1])
sys.meta_path.insert(0, Refuse())
report = {}
for module in modules:
    attempts.clear()
    try:
        importlib.import_module(module)
    except ImportError as error:
        attempts.append(str(error))
    report[module] = list(attempts)
print(json.dumps([report, sorted(set(sys.modules) & set(forbidden))]))
"""


def _modules() -> list[str]:
    names = [f"chatserve.{name}" for name in MODULES if find_spec(f"chatserve.{name}")]
    for package in PACKAGES:
        folder = Path(chatserve.__path__[0]) / package
        prefix = f"chatserve.{package}"
        walked = pkgutil.walk_packages([str(folder)], f"{prefix}.")
        names += [prefix, *(module.name for module in walked)]
    return names


@cache
def _probe(modules: tuple[str, ...]) -> tuple[dict[str, list[str]], list[str]]:
    """Return the forbidden imports that each module attempts, and those that succeeded."""
    probe = subprocess.run(
        [sys.executable, "-c", _PROBE, json.dumps([FORBIDDEN, modules])],
        capture_output=True,
        text=True,
        check=True,
    )
    report, loaded = json.loads(probe.stdout)
    return report, loaded


@pytest.mark.parametrize("module", _modules())
def test_module_loads_without_torch(module: str) -> None:
    report, loaded = _probe(tuple(_modules()))

    assert report[module] == []
    assert loaded == []


def test_the_probe_notices_a_module_that_needs_torch() -> None:
    report, _ = _probe(("chatserve.kernels.ops", "chatserve.errors"))

    assert "torch" in report["chatserve.kernels.ops"]
    assert report["chatserve.errors"] == []
