"""The rules of the house: the floor plan, the language and one way per thing, checked on the source itself."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TypeGuard

import isotrope
from isotrope.deprecation import MOVED
from testkit.paths import ROOT

SOURCE = Path(isotrope.__file__).parent

#: Folders with one file for each entry of a catalogue.
CATALOGUES = {"measures", "figures"}

#: What the documentation may import from.
PUBLIC = {"isotrope", *(f"isotrope.{name}" for name in ("integrations", "measures", "nn", "repairs", "studies"))}

MOST_FILES, MOST_LINES, MOST_FUNCTION_LINES, SHARED_LINES = 22, 300, 60, 10

#: Irregular participles. Regular ones end in "ed".
PARTICIPLES = frozenset(
    [
        "begun",
        "bent",
        "bound",
        "broken",
        "brought",
        "built",
        "chosen",
        "dealt",
        "done",
        "drawn",
        "driven",
        "fed",
        "felt",
        "found",
        "given",
        "gone",
        "grown",
        "held",
        "hidden",
        "kept",
        "known",
        "laid",
        "left",
        "lost",
        "made",
        "meant",
        "met",
        "paid",
        "put",
        "said",
        "seen",
        "sent",
        "shown",
        "sold",
        "sought",
        "spent",
        "split",
        "spoken",
        "stood",
        "sunk",
        "sworn",
        "taken",
        "taught",
        "thought",
        "thrown",
        "told",
        "torn",
        "tried",
        "understood",
        "woven",
        "worn",
        "written",
    ]
)

#: Verbs that look like participles.
VERBS = {"embed", "exceed", "feed", "need", "proceed", "put", "read", "seed", "shed", "speed", "split"}

#: Words that meant something only to us.
OWN_WORDS = re.compile(r"(^|_)(told|bent|beside|standin|watched|strides|carrying|choosing)(_|$)")


@cache
def modules() -> dict[str, tuple[str, ast.Module]]:
    """Text and syntax tree of every module, by its path below the package."""
    paths = sorted(SOURCE.rglob("*.py"))
    texts = {path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in paths}
    return {name: (text, ast.parse(text)) for name, text in texts.items()}


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for name, (_, tree) in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield name, node


@cache
def public_names() -> set[str]:
    """The names that the public packages export."""
    return {name for package in PUBLIC for name in getattr(import_module(package), "__all__", ())}


def public_functions() -> set[str]:
    """The names of public functions and of the methods of public classes, whose signatures stay explicit."""
    return {*isotrope.__all__, "__init__", *(name for name, _ in command_functions())}


def command_functions() -> Iterator[tuple[str, str]]:
    for name, node in functions():
        if name.startswith("cli/") and any(
            re.search("command|derive_options", ast.unparse(each)) for each in node.decorator_list
        ):
            yield node.name, name


class TestFloorPlan:
    def test_the_contract_covers_every_package_and_top_module(self) -> None:
        contract = (ROOT / "pyproject.toml").read_text("utf-8").partition("[[tool.importlinter.contracts]]")[2]
        named = set(re.findall(r"isotrope\.([a-z_]+)", contract))
        there = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
        assert named == there - {"__init__", "__main__"}

    def test_a_folder_has_few_files(self) -> None:
        counts = Counter(str(Path(name).parent) for name in modules())
        assert {folder: n for folder, n in counts.items() if n > MOST_FILES and folder not in CATALOGUES} == {}

    def test_a_file_is_short(self) -> None:
        lengths = {name: len(text.splitlines()) for name, (text, _) in modules().items()}
        assert {name: n for name, n in lengths.items() if n > MOST_LINES} == {}

    def test_no_module_imports_the_package_itself(self) -> None:
        found = []
        for name, (_, tree) in modules().items():
            for node in ast.walk(tree):
                if isinstance(node, ast.Import) and any(each.name == "isotrope" for each in node.names):
                    found.append(name)
                if isinstance(node, ast.ImportFrom) and node.module == "isotrope":
                    found.append(name)
        # `Findings.report` hands itself to the public function: the report stands above findings.
        assert [name for name in found if name not in ("__init__.py", "findings/findings.py")] == []

    def test_the_documentation_imports_from_public_packages_only(self) -> None:
        found = []
        for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
            for name in re.findall(r"(?m)^\s*(?:>>> )?(?:from|import) (isotrope[\w.]*)", page.read_text("utf-8")):
                if ".".join(name.split(".")[:2]) not in PUBLIC:
                    found.append(f"{page.name}: {name}")
        assert found == []


class TestLanguage:
    def test_no_function_is_named_by_a_bare_participle(self) -> None:
        found = []
        for name, node in functions():
            first = node.name.strip("_").partition("_")[0]
            is_participle = first not in VERBS and (first in PARTICIPLES or (first.endswith("ed") and len(first) > 3))
            # The name of a measure is the name of a value, as that of a property is.
            is_value = any(re.match(r"measure\(|.*property", ast.unparse(each)) for each in node.decorator_list)
            is_boolean = node.returns is not None and "bool" in ast.unparse(node.returns).lower()
            if is_participle and not is_value and not is_boolean and node.name not in public_names():
                found.append(f"{name}:{node.lineno} {node.name}")
        assert found == []

    def test_no_word_of_our_own(self) -> None:
        found = [name for name in modules() if OWN_WORDS.search(Path(name).stem)]
        found += [f"{name}:{node.lineno} {node.name}" for name, node in functions() if OWN_WORDS.search(node.name)]
        assert found == []

    def test_one_class_has_one_name(self) -> None:
        places = defaultdict(list)
        for name, (_, tree) in modules().items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    places[node.name.strip("_")].append(name)
        del places["SoftDecay"]  # the repair, and the layer of `isotrope.nn`: both are public
        assert {name: where for name, where in places.items() if len(where) > 1} == {}


class TestOneWay:
    def test_no_locals(self) -> None:
        found = [name for name, (text, _) in modules().items() if re.search(r"\blocals\(\)", text)]
        assert found == []

    def test_no_probing_of_a_source(self) -> None:
        found = [
            name for name, (text, _) in modules().items() if re.search(r"\b(get|has)attr\((self\.)?_?source,", text)
        ]
        assert found == []

    def test_a_function_is_short(self) -> None:
        found = []
        for name, node in functions():
            documented = ast.get_docstring(node, clean=False)
            length = (node.end_lineno or node.lineno) - node.lineno + 1 - len((documented or "").splitlines())
            if length > MOST_FUNCTION_LINES and node.name not in public_functions():
                found.append(f"{name}:{node.lineno} {node.name} has {length} lines")
        assert found == []

    def test_nothing_is_said_twice(self) -> None:
        """No two places share ten identical lines, without imports, public signatures and blank lines."""
        seen: dict[tuple[str, ...], str] = {}
        found = []
        for name, (text, tree) in modules().items():
            imports = {n for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom) for n in span(node)}
            imports |= {n for node in tree.body if is_public(node) for n in range(node.lineno, node.body[0].lineno)}
            lines = [
                (i, line.strip()) for i, line in enumerate(text.splitlines(), 1) if i not in imports and line.strip()
            ]
            for i in range(len(lines) - SHARED_LINES + 1):
                window = tuple(line for _, line in lines[i : i + SHARED_LINES])
                place = f"{name}:{lines[i][0]}"
                if window in seen:
                    found.append(f"{place} = {seen[window]}")
                seen.setdefault(window, place)
        assert found == []


def is_public(node: ast.stmt) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, ast.FunctionDef) and node.name in public_names()


def span(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


LOADED = """
import sys
import numpy as np
import isotrope
{code}
print(*sorted(name for name in sys.modules))
"""


def loaded(code: str) -> list[str]:
    """The modules that a fresh process has loaded after some code."""
    done = subprocess.run([sys.executable, "-c", LOADED.format(code=code)], capture_output=True, text=True, check=True)
    return done.stdout.split()


class TestImports:
    def test_importing_isotrope_loads_nothing_heavy(self) -> None:
        heavy = {"torch", "pandas", "pyarrow", "scipy", "transformers", "matplotlib"}
        assert heavy.isdisjoint(loaded(""))

    def test_scan_of_an_array_loads_what_an_array_needs(self) -> None:
        """Neither text, media, repairs, studies nor the report."""
        far = (
            r"isotrope\.(sources\.(text|media|corpora|models)|repairs|softdecay|studies|report|evaluation|advice)(\.|$)"
        )
        code = "isotrope.scan(vectors=np.random.default_rng(0).normal(size=(50, 4)), measures='mean_cosine')"
        assert [name for name in loaded(code) if re.match(far, name) and name not in MOVED] == []
