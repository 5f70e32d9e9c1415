"""Help is fast because it imports nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from goldens.help_texts import commands
from testkit.command import Command

HEAVY = ("torch", "matplotlib", "numpy", "scipy", "pandas", "pyarrow", "transformers", "safetensors", "datasets")

#: Runs commands in one process: for each, whether it says something, and what heavy packages are imported by then.
CODE = """
import contextlib, io, json, sys
from isotrope.cli.main import main

for line in sys.argv[1:]:
    sys.argv = ["isotrope", *line.split()]
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as out:
        main()
    print(json.dumps([line, bool(out.getvalue()), [name for name in {heavy} if name in sys.modules]]))
"""


def test_imports_nothing_heavy() -> None:
    lines = [*(" ".join([*words, "--help"]) for words in commands()), "--version"]
    code = CODE.format(heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code, *lines], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert [json.loads(found) for found in done.stdout.splitlines()] == [[line, True, []] for line in lines]


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
