"""What must not change unless somebody means it: findings, help texts and public names, recorded by `record.py`."""

from pathlib import Path

FOLDER = Path(__file__).parent

RECORD = "python tests/goldens/record.py"
