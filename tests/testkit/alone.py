"""Code run where isotrope cannot be imported: what an export must stand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_WITHOUT = """
import sys
sys.modules["isotrope"] = None
try:
    import isotrope
except ImportError:
    pass
else:
    raise AssertionError("isotrope can be imported")
"""


def run_without_isotrope(code: str, folder: Path) -> None:
    """Run Python code in a folder, in a process of its own that cannot import isotrope."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT + code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
