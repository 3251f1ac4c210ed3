"""What a number was measured with: versions of what computed it, and the machine."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from pyspar import __version__


@cache
def versions() -> dict[str, str]:
    """Return the versions of all that has a part in the numbers."""
    found = {"pyspar": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "scikit-learn", "torch"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@cache
def machine(device: str = "cpu") -> dict[str, str]:
    """Return the kind of machine, and of GPU where one is used; nothing that names its owner."""
    found = {"system": platform.system(), "processor": _processor(), "cores": str(os.cpu_count())}
    if device != "cpu":
        import torch

        found["gpu"] = torch.cuda.get_device_name(device)
    return found


def made_now(device: str = "cpu") -> dict[str, dict[str, str]]:
    """Return both, to be kept beside what is measured now."""
    return {"versions": versions(), "machine": machine(device)}


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
