"""Part of the build: the native kernel goes into the wheel where there is a compiler, and is left out where not.

A wheel without it is for any machine; one with it is for this kind of machine. An editable installation has it in its
clone.
"""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "tools"))
from build_kernel import IN_PLACE, build_kernel, wheel_tag


class KernelHook(BuildHookInterface):
    """An installation never fails for want of it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        is_editable = version == "editable"
        target = IN_PLACE if is_editable else Path(self.directory) / IN_PLACE.name
        target.parent.mkdir(parents=True, exist_ok=True)
        fault = build_kernel(target)
        if fault is not None:
            self.app.display_warning(f"without the native kernel: {fault}")
        elif not is_editable:
            build_data["pure_python"] = False
            build_data["tag"] = wheel_tag()
            build_data["force_include"][str(target)] = f"agentmark/batch/{IN_PLACE.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        (Path(self.directory) / IN_PLACE.name).unlink(missing_ok=True)
