"""What every benchmark prints first: the machine and the versions; and how it measures."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

PACKAGES = ("isotrope", "numpy", "scipy", "torch", "transformers", "scikit-learn", "spectralyte", "faiss-cpu", "ray")


def describe() -> str:
    """One line on the machine, one on the versions."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        name = f"{len(names)} × {names[0]}" if names else name
    versions = []
    packages = (
        "isotrope",
        "numpy",
        "scipy",
        "torch",
        "transformers",
        "scikit-learn",
        "spectralyte",
        "vecscope",
        "faiss-cpu",
        "ray",
    )
    for package in packages:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return f"{name}, {platform.system()}, Python {platform.python_version()}\n{', '.join(versions)}"


def seconds(function: Callable[[], object]) -> float:
    """Wall time of one call."""
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin
