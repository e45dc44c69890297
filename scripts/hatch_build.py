"""Builds the CPU kernels wherever chatserve is installed: a hook that hatchling calls.

A wheel that carries them is for one platform, though for every Python. Without a compiler it is
for all of them, and plain torch computes.
"""

import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):  # type: ignore[misc]
    """Compiles before the files of a wheel, or of an editable install, are collected.

    Used from: hatchling.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        program = Path(self.root, "chatserve", "kernels", "cpu", "build.py")
        if runpy.run_path(str(program))["build"]():
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform}"
