"""Help is fast because it imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

from goldens.help_texts import commands
from testkit.command import Command

HEAVY = ("torch", "matplotlib", "numpy", "scipy", "pandas", "pyarrow", "transformers", "safetensors", "datasets")

CODE = """
import sys
from isotrope.cli.main import main
sys.argv = ["isotrope", *sys.argv[1:]]
try:
    main()
finally:
    print([name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [*([*words, "--help"] for words in commands()), ["--version"]])
def test_imports_nothing_heavy(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(heavy=HEAVY), *arguments], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"
    assert done.stdout


def test_import_of_the_package_is_light() -> None:
    code = f"import sys, isotrope; print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


OPTIONS = """
    --model --revision --gguf-file --text --column --split --corpus --vectors --pooling --layers --measures --group-by
    --special-tokens --sample --seed --batch-size --device --trust-remote-code --precision --dry-run --resume --fail-on
    -o --json
"""


def test_scan_help_names_the_options(isotrope: Command) -> None:
    out = isotrope("scan", "--help").out
    for option in OPTIONS.split():
        assert option in out


REPAIR_OPTIONS = {
    "fit": "--with --alpha --form --strength --dimensions --directions --clusters --steps --model --text --layer -o",
    "apply": "DIR --model --text --pooling --layer -o --json",
    "show": "DIR --measures --sample --seed --json",
    "export": "DIR --to --model --rows -o --json",
}


@pytest.mark.parametrize("command", REPAIR_OPTIONS)
def test_repair_help_names_the_options(command: str, isotrope: Command) -> None:
    out = isotrope("repair", command, "--help").out
    for option in REPAIR_OPTIONS[command].split():
        assert option in out


def test_without_arguments_help(isotrope: Command) -> None:
    result = isotrope()
    assert result.code in (0, 2)
    assert "scan" in result.out + result.err
