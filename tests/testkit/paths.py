"""Where the tests find their data."""

import os
from pathlib import Path

#: The root of the project.
ROOT = Path(__file__).parents[2]

#: Data sets that are not in the repository; tests that need one skip where it is missing.
SHARED_DATA = Path(os.environ.get("ISOTROPE_DATA", ROOT.parent / "shared" / "data"))
