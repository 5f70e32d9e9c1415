"""The code in the documentation runs as it stands, and its commands are ones that there are."""

from __future__ import annotations

import ast
import re
import shlex
import signal
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from testkit.command import find_command
from testkit.document_inputs import write_inputs
from testkit.programs import run_program

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"

#: Pages whose Python blocks are signatures, no code: scripts write them, and tests compare them with the names.
SIGNATURES = ("docs/api.md", "docs/repairs/")

#: Blocks that only `make test-long` runs, by page and number, and why; `make test` compiles them.
SLOW = {
    ("docs/advice.md", 1): "asks for advice on a model, which takes a minute",
    ("docs/evaluation.md", 2): "imports mteb, which takes long by itself",
    ("docs/glue.md", 0): "fine-tunes a model ten times",
    ("docs/guides/cluster.md", 0): "starts Ray",
}


class Around(NamedTuple):
    """What is run before and after the blocks of a page, and how what they print begins; slow: with all blocks only."""

    before: str = ""
    after: str = ""
    prints: str = ""
    slow_before: str = ""
    slow_after: str = ""


#: What stands in for the world outside, and what must be true at the end.
AROUND = {
    "docs/quantizers.md": Around(prints=r"\(2000, 4\) \[2000 2000 2000 2000\] 0\."),
    "docs/repairs.md": Around(
        after="""
expected = repair.transform(rows)
for repaired in (by_numpy, by_torch, by_onnx):
    assert abs(repaired - expected).max() < 1e-5
plain = faiss.IndexFlatIP(16)
plain.add(expected.astype(np.float32))
assert (found == plain.search(expected[:3].astype(np.float32), 5)[1]).all()
assert abs(whitened - whitening.transform(encoded)).max() < 1e-5
""",
        prints=r"\(1, 16\) {'mean_cosine': 0\.",
    ),
    "docs/advice.md": Around(prints=r"repair it by Centering\n"),
    "docs/calibration.md": Around(
        prints=r"accept from 0\.\d+ on \(0\.\d+ to 0\.\d+\)\n\d+ of 100 .*\nTrue\n0\.\d+, .*: 1.0"
    ),
    "docs/training.md": Around(
        prints=r"α went from -0.5 to -0\.\d+, mean cosine is 0\.\d+\n{'IsoScoreStar': 0\..*\n"
        r"{'geometry/0/mean_cosine': 0\..* None\n$"
    ),
    "docs/embedders.md": Around(
        after="""
expected = repair.transform(rows[:5])
expected /= (expected**2).sum(axis=1, keepdims=True) ** 0.5
assert abs(encoded - expected).max() < 1e-5
expected = weighted(texts[:5])
expected /= (expected**2).sum(axis=1, keepdims=True) ** 0.5
assert abs(SentenceTransformer("weighted-embedder", device="cpu").encode(texts[:5]) - expected).max() < 1e-5
"""
    ),
    "docs/evaluation.md": Around(  # mteb's own tasks are downloaded
        slow_before=f"""
import sys
sys.path += [{str(TESTS)!r}, {str(TESTS / "integrations")!r}]
import mteb
from test_mteb import ManualSTS
mteb.get_tasks = lambda tasks: [ManualSTS()]
""",
        slow_after="assert results.task_results[0].get_score() > 0",
    ),
    "docs/modalities.md": Around(after='assert findings.layers and findings.counts["images"] == 3'),
    "docs/guides/cluster.md": Around(  # what torchrun says to the only rank
        before="""
import os, socket
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = str(free.getsockname()[1])
os.environ |= {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
""",
        after="assert moments.n == 128",
    ),
}


def blocks(page: str, *languages: str) -> list[str]:
    """The code blocks of a page in some languages."""
    text = (ROOT / page).read_text("utf-8")
    return re.findall(rf"^```(?:{'|'.join(languages)})\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


PAGES = [path.relative_to(ROOT).as_posix() for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])]
PYTHON = [p for p in PAGES if blocks(p, "python") and not p.startswith(SIGNATURES) and p != "CONTRIBUTING.md"]


def run(page: str, code: list[str], folder: Path) -> None:
    """Run the blocks of a page, in order and as one program, among the files of which they speak."""
    write_inputs(folder)
    around = AROUND.get(page, Around())
    parts = [around.before, *code, around.after]
    if len(code) == len(blocks(page, "python")):
        parts = [around.slow_before, *parts, around.slow_after]
    whole = "\n".join(parts)
    done = run_program(whole, folder, MPLBACKEND="agg", MTEB_CACHE=str(folder / "mteb"))
    assert done.code == 0, done.err
    assert re.match(around.prints, done.out), done.out


@pytest.mark.parametrize("page", PYTHON)
def test_python_runs(page: str, tmp_path: Path) -> None:
    code = blocks(page, "python")
    for block in code:
        compile(block, page, "exec")
    quick = [block for i, block in enumerate(code) if (page, i) not in SLOW]
    if quick:
        run(page, quick, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("page", sorted({page for page, _ in SLOW}))
def test_slow_python_runs(page: str, tmp_path: Path) -> None:
    run(page, blocks(page, "python"), tmp_path)


def test_what_is_left_out_is_there() -> None:
    """No entry of the lists above outlives its block, and no page of signatures holds anything else."""
    for page, number in SLOW:
        assert number < len(blocks(page, "python")), page
    assert AROUND.keys() <= set(PYTHON)
    for page in PAGES:
        if page.startswith(SIGNATURES):
            assert all(re.match(r"isotrope\.[\w.]+\(", block) for block in blocks(page, "python")), page


def test_all_names_are_defined_on_their_page() -> None:
    """A block takes what it uses from an import or from a block before it on the same page."""
    for page in PYTHON:
        tree = ast.parse("\n".join(blocks(page, "python")))
        stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        stored |= {a.asname or a.name.split(".")[0] for n in ast.walk(tree) for a in getattr(n, "names", [])}
        stored |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        stored |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
        used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        assert used - stored <= set(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__), page


def commands(page: str) -> list[list[str]]:
    """The commands of a page as lists of words, without the program and comments."""
    lines = "\n".join(blocks(page, "bash", "sh")).splitlines()
    return [shlex.split(re.sub(r"\s#.*", "", line))[1:] for line in lines if line.startswith("isotrope ")]


WITH_COMMANDS = [page for page in PAGES if commands(page)]


def parse(words: list[str]) -> Any:
    """A command as the command line understands it; an error where it would refuse it."""
    command, rest = find_command(words)
    return command.make_context(command.name, rest)


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_are_understood(page: str) -> None:
    for words in commands(page):
        parse(words)


@pytest.mark.parametrize("words", [["scan", "--nosuch"], ["compare"], ["scan", "--sample", "many"], ["nosuch"]])
def test_other_commands_would_not_be(words: list[str]) -> None:
    with pytest.raises(Exception, match=r"(?i)no such option|missing parameter|valid integer|nosuch"):
        parse(words)


#: Commands that are only understood, not run: they need a model, a run or a cluster, or take long.
NOT_RUN = re.compile(
    r"--model|--text|--engine ray|\.gguf|://|lancedb:|\.faiss|corpus|photos|MODEL|NAME|RUN|DIR|runs/|quantized|all$"
)

#: Pages whose other commands are run, in order.
RUN = ("README.md", "docs/guides/production.md", "docs/guides/retrieval.md", "docs/repairs.md")


@pytest.mark.parametrize("page", RUN)
def test_commands_for_vectors_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from isotrope.cli.main import main

    write_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    runnable = [words for words in commands(page) if not NOT_RUN.search(" ".join(words))]
    assert len(runnable) >= 3
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for words in runnable:
        monkeypatch.setattr(sys, "argv", ["isotrope", *words])
        try:
            main()
            code: Any = 0
        except SystemExit as leaving:
            code = leaving.code
        gated = "--fail-on" in words
        assert code in ((0, 1) if gated else (0, None)), (words, capsys.readouterr())
    for number, handler in handlers.items():
        signal.signal(number, handler)
