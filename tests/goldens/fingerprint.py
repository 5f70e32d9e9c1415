"""What decides the last bits of a number: the processor, the kernels for it, and the versions of the libraries."""

from __future__ import annotations

import platform
import re
from importlib.metadata import version
from typing import Any


def fingerprint(needs: tuple[str, ...]) -> dict[str, Any]:
    """The fingerprint of this machine for a scan that needs some packages besides numpy and scipy."""
    import scipy.linalg  # noqa: F401  # scipy has a BLAS of its own
    from threadpoolctl import threadpool_info

    # Other packages, such as faiss, bring a BLAS of their own that no number here comes from.
    pools = [pool for pool in threadpool_info() if re.search("numpy|scipy", pool["filepath"])] or threadpool_info()
    kernels = {f"{pool['internal_api']} {pool['architecture']}" for pool in pools if "architecture" in pool}
    found: dict[str, Any] = {"processor": platform.machine(), "blas": sorted(kernels)}
    packages = ["numpy", "scipy"]
    if "torch" in needs:
        import torch

        found["torch_kernels"] = torch.backends.cpu.get_cpu_capability()
        packages += ["torch", "transformers"]
    return found | {"versions": {package: version(package) for package in packages}}
