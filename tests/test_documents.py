"""What README, CONTRIBUTING and the docs say is true."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def blocks(name: str, language: str) -> list[str]:
    """The code blocks of a document in one language."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL)


def test_the_thresholds_of_the_advice_are_in_the_docs() -> None:
    from isotrope.advice.candidate import EVERYDAY, GAIN, GAIN_OF_REPAIRABLE
    from isotrope.repairs.softdecay import FIRMNESS
    from isotrope.verdict.thresholds import REPAIRABLE

    page = (DOCS / "advice.md").read_text("utf-8")
    words = " or in ".join(f"`{word}`" for word in REPAIRABLE)
    assert f"at least {GAIN_OF_REPAIRABLE} where the rows are {words}, {GAIN} where they are" in page
    assert f"A repair is advised where they are {words} by the [table](verdict.md)" in page
    assert f"of 3,000 rows is {FIRMNESS:g}" in page
    assert f"weigh {EVERYDAY:.0%}".replace("%", " %") in page


def test_the_page_about_training_names_all_that_there_is() -> None:
    from isotrope import nn

    page = (DOCS / "training.md").read_text("utf-8")
    assert all(name in page for name in nn.__all__)


def test_the_page_about_repairs_names_every_kind_of_export() -> None:
    from isotrope.integrations import KINDS

    page = (DOCS / "repairs.md").read_text("utf-8")
    assert all(f"`{kind}`" in page for kind in KINDS.names())


def test_the_page_about_repairs_names_them_all() -> None:
    from isotrope.repairs import REPAIRS

    page = (DOCS / "repairs.md").read_text("utf-8")
    for kind in REPAIRS:
        assert f"| `{kind.name}` | `{kind.__name__}(" in page


def test_values_in_the_readme_are_right() -> None:
    import numpy as np

    import isotrope

    rows = np.random.default_rng(0).normal(size=(5000, 64)) + 0.5
    found = isotrope.measure(rows, ["mean_cosine", "isoscore"])
    claimed = re.search(
        r"\{'mean_cosine': ([\d.]+)\.\.\., 'isoscore': ([\d.]+)\.\.\.\}", (ROOT / "README.md").read_text()
    )
    assert claimed is not None
    for value, text in zip(found.values(), claimed.groups(), strict=True):
        assert str(value).startswith(text)


def test_the_worked_example_adds_a_measure_everywhere(tmp_path: Path) -> None:
    """The one file of CONTRIBUTING, put beside a copy of the measures, is found, shown and right."""
    import shutil

    package = tmp_path / "isotrope"
    shutil.copytree(ROOT / "src" / "isotrope", package)
    (package / "measures" / "stable_rank.py").write_text(blocks("CONTRIBUTING.md", "python")[0], "utf-8")
    code = (
        "import json, numpy as np, isotrope\n"
        "from isotrope.measures import stable_rank, select\n"
        "X = np.diag([3.0, 4.0])\n"
        "scan = isotrope.scan(vectors=np.random.default_rng(0).normal(size=(500, 8)))\n"
        "print(json.dumps([stable_rank(X), isotrope.measure(X, 'stable_rank')['stable_rank'], "
        "'stable_rank' in [m.name for m in select('moments')], scan.get('stable_rank').low]))\n"
    )
    environment = {"PYTHONPATH": str(tmp_path), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    direct, by_name, in_group, low = json.loads(done.stdout)
    assert direct == by_name == pytest.approx(25 / 16)
    assert in_group
    assert 1 < low < 8


def test_commands_of_the_readme_exist() -> None:
    from isotrope.cli.main import COMMANDS

    used = set(re.findall(r"^isotrope (\w+)", "\n".join(blocks("README.md", "bash")), re.MULTILINE))
    table = set(re.findall(r"^\| `isotrope (\w+)", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE))
    assert used <= COMMANDS.keys()
    assert table == COMMANDS.keys()


def test_the_thresholds_are_in_the_docs() -> None:
    """docs/verdict.md shows the one table of thresholds, word for word."""
    from isotrope.verdict.thresholds import DUPLICATES, SEARCH_THRESHOLDS, THRESHOLDS

    page = (ROOT / "docs" / "verdict.md").read_text("utf-8")
    table = (*THRESHOLDS, *DUPLICATES, *SEARCH_THRESHOLDS)
    shown = [f"| {t.word} | `{t.measure}` {t.bound} | {t.meaning} | {t.evidence} |" for t in table]
    assert [line for line in page.splitlines() if line.startswith("| ") and "`" in line] == shown


def test_how_measures_move_with_n_is_shown_for_all_that_work_from_rows() -> None:
    from isotrope.measures import MEASURES

    page = (ROOT / "docs" / "finite_samples.md").read_text("utf-8")
    for m in MEASURES:
        if m.needs in ("moments", "sample", "image", "cells"):
            assert page.count(f"| `{m.name}` |") == 2, m.name


PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def test_links_in_the_documents_lead_somewhere() -> None:
    for page in PAGES:
        for target, heading in re.findall(r"\]\((?!https?://)([^)#]*)#?([^)]*)\)", prose(page)):
            other = page.parent / target if target else page
            assert other.exists(), f"{page.name} points to {target}"
            if heading:
                assert heading in headings(other), f"{page.name} points to {target}#{heading}"


def prose(page: Path) -> str:
    """A page without its code blocks."""
    return re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as the site and most forges write them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_the_site_knows_every_page() -> None:
    import yaml

    def pages(entries: list) -> set[str]:
        found: set[str] = set()
        for entry in entries:
            for value in entry.values():
                found |= pages(value) if isinstance(value, list) else {value}
        return found

    known = pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"])
    there = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    apart = ("measures/", "validation/")  # pages that their index lists, and parts of a page
    assert known == {page for page in there if not page.startswith(apart)} | {"measures/README.md"}


def script(name: str) -> ModuleType:
    """One of the scripts that write pages."""
    spec = spec_from_file_location(f"pages_of_{name}", DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_measure_has_a_page_made_from_its_record_and_a_picture() -> None:
    from isotrope.measures import MEASURES

    pages = script("measures")
    assert (pages.PAGES / "README.md").read_text("utf-8") == pages.index()
    for m in MEASURES:
        again = "run `isotrope scan --measures all -o RUN`, then `python docs/measures.py RUN`"
        assert (pages.PAGES / f"{m.name}.md").read_text("utf-8") == pages.page(m), again
        drawn = m.group is not None and m.needs not in pages.COMMANDS
        assert not drawn or "</svg>" in (pages.PICTURES / f"{m.name}.svg").read_text("utf-8"), again
    assert len(list(pages.PAGES.iterdir())) == len(list(MEASURES)) + 1


def test_every_repair_has_a_page_made_from_its_class() -> None:
    from isotrope.repairs import REPAIRS

    pages = script("repair_pages")
    for kind in REPAIRS:
        assert (pages.PAGES / f"{kind.name}.md").read_text("utf-8") == pages.page(kind), "run docs/repair_pages.py"
    assert len(list(pages.PAGES.iterdir())) == len(REPAIRS)


def test_the_page_of_public_names_is_made_from_their_docstrings() -> None:
    assert (DOCS / "api.md").read_text("utf-8") == script("api").page(), "run docs/api.py"


def test_every_figure_is_on_its_page_with_a_picture() -> None:
    from isotrope.figures import FIGURES

    pages = script("figures")
    assert pages.PAGE.read_text("utf-8") == pages.page(), "run docs/figures.py RUN RUN"
    shown = {path.name for path in pages.PICTURES.iterdir() if "smollm2" not in path.name}
    assert shown == {f"{name}.png" for name in FIGURES.names()}
