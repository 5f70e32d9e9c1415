"""What killed processes leave goes with the next one that holds the lock; what is not ours stays."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from isotrope.report import write_report
from isotrope.runs.run import Run
from isotrope.scanner import scan
from isotrope.storage.files import remove_leftovers, remove_leftovers_of

#: The command line, which sends itself a signal when a file or folder of a name is put in its place, or at a batch.
CODE = """
import os, signal, sys
import isotrope.runs.run as store
from isotrope.statistics import Collection
name, number = sys.argv[1], getattr(signal, sys.argv[2])
replace, update = store.Path.replace, Collection.update

def replaced(self, target):
    if target.name == name:
        os.kill(os.getpid(), number)
    return replace(self, target)

def updated(self, batch, *pool):
    update(self, batch, *pool)
    if name == f"batch {self.batches}":
        os.kill(os.getpid(), number)

store.Path.replace, Collection.update = replaced, updated
sys.argv = ["isotrope", *sys.argv[3:]]
from isotrope.cli.main import main
main()
"""

OURS = ["findings.json", "readings.csv", "readings.parquet", "report.html", "statistics", "tables"]


def _heeding() -> None:
    """Heed SIGINT, which a shell tells what it starts in the background to ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _signalled(at: str, number: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CODE, at, number, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, preexec_fn=_heeding)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(400, 6)).astype(np.float32) + 1)
    return tmp_path


def _hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob(".*"))


SCAN = ("scan", "rows.npy", "--sample", "50", "--batch-size", "100", "--checkpoint-every", "0")


class TestKilled:
    @pytest.mark.parametrize(
        "at",
        [
            "state.json",
            pytest.param("layer_0.safetensors", marks=pytest.mark.long),
            pytest.param("readings.csv", marks=pytest.mark.long),
            "findings.json",
            pytest.param("batch 3", marks=pytest.mark.long),
        ],
    )
    def test_a_run_that_goes_on_leaves_nothing_else(self, at: str, folder: Path) -> None:
        killed = _signalled(at, "SIGKILL", *SCAN, "-o", "run", folder=folder)
        assert killed.returncode == -signal.SIGKILL
        assert _hidden(folder)
        (folder / "run/.notes.7.part").write_text("mine")
        (folder / "run/tables").mkdir(exist_ok=True)
        (folder / "run/tables/.notes.7.part").write_text("mine")
        scan(vectors="rows.npy", sample=50, batch_size=100, output="run", resume=True)
        assert _hidden(folder) == [".notes.7.part"]
        assert sorted(path.name for path in (folder / "run").iterdir()) == [".notes.7.part", *OURS]

    def test_a_first_checkpoint_that_was_cut_short_is_no_run(self, folder: Path) -> None:
        assert _signalled("state.json", "SIGKILL", *SCAN, "-o", "run", folder=folder).returncode == -signal.SIGKILL
        assert list((folder / "run/checkpoint").iterdir())
        assert not Run(folder / "run").resumable
        scan(vectors="rows.npy", sample=50, output=folder / "run")
        assert sorted(path.name for path in (folder / "run").iterdir()) == OURS

    def test_a_checkpoint_beside_a_finished_run(self, folder: Path) -> None:
        """Killed between the findings, which make a run whole, and the removal of the checkpoint."""
        scan(vectors="rows.npy", sample=50, output=folder / "run")
        run = Run(folder / "run")
        run.checkpoints.write({"batches": 3}, {})
        (folder / "run/checkpoint/mine").write_text("mine")
        (folder / "run/.unfinished/tables").mkdir(parents=True)
        (folder / "run/.report.html.4711.part").write_text("half")
        write_report(run)
        assert [path.name for path in (folder / "run/checkpoint").iterdir()] == ["mine"]
        assert _hidden(folder) == []
        (folder / "run/checkpoint/mine").unlink()
        write_report(run)
        assert sorted(path.name for path in (folder / "run").iterdir()) == OURS

    def test_statistics_that_were_about_to_go(self, folder: Path) -> None:
        scan(vectors="rows.npy", sample=50, keep="none", output=folder / "run")
        (folder / "run/statistics/layer_0.safetensors").write_bytes(b"left")
        write_report(folder / "run")
        assert [path.name for path in (folder / "run/statistics").iterdir()] == ["index.json"]

    def test_a_repair(self, folder: Path) -> None:
        fit = ("repair", "fit", "rows.npy", "--with", "centering", "-o", "out")
        assert _signalled("out", "SIGKILL", *fit, folder=folder).returncode == -signal.SIGKILL
        assert any(name.endswith(".part") for name in _hidden(folder))
        (folder / ".other.7.part").write_text("mine")
        assert _signalled("never", "SIGKILL", *fit, folder=folder).returncode == 0
        assert _hidden(folder) == [".other.7.part"]

    def test_a_repaired_file(self, folder: Path) -> None:
        from isotrope import Centering

        Centering().fit(folder / "rows.npy").save(folder / "centering")
        apply = ("repair", "apply", "centering", "rows.npy", "-o", "out[1].npy")
        assert _signalled("out[1].npy", "SIGKILL", *apply, folder=folder).returncode == -signal.SIGKILL
        assert _signalled("never", "SIGKILL", *apply, folder=folder).returncode == 0
        assert _hidden(folder) == []
        assert (folder / "out[1].npy").exists()


class TestNames:
    def test_only_what_was_asked_for(self, tmp_path: Path) -> None:
        for name in (
            ".a.parquet.12.part",
            ".b.csv.12.part",
            ".a.parquet.part",
            "a.parquet.12.part",
            ".a.parquet.x.part",
        ):
            (tmp_path / name).write_text("")
        remove_leftovers(tmp_path, "*.parquet")
        left = {".b.csv.12.part", ".a.parquet.part", "a.parquet.12.part", ".a.parquet.x.part"}
        assert {path.name for path in tmp_path.iterdir()} == left
        remove_leftovers(tmp_path / "missing", "*")

    def test_a_folder_that_was_being_exchanged_comes_back(self, tmp_path: Path) -> None:
        for name in (".repair.12.old", ".repair.12.part"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "config.json").write_text(name)
        remove_leftovers_of(tmp_path / "repair")
        assert [path.name for path in tmp_path.iterdir()] == ["repair"]
        assert (tmp_path / "repair/config.json").read_text() == ".repair.12.old"

    def test_a_link_is_removed_and_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "victim").mkdir()
        (tmp_path / "victim/kept").write_text("")
        (tmp_path / ".a.12.part").symlink_to(tmp_path / "victim")
        remove_leftovers_of(tmp_path / "a")
        assert sorted(path.name for path in tmp_path.rglob("*")) == ["kept", "victim"]


class TestStopped:
    """Each command says only what is true of it."""

    @pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
    def test_before_the_first_checkpoint(self, number: str, folder: Path) -> None:
        once = ("scan", "rows.npy", "--sample", "50", "--batch-size", "100")
        stopped = _signalled("batch 2", number, *once, "-o", "run", folder=folder)
        assert stopped.returncode == 128 + getattr(signal, number)
        expected = "no checkpoint had been written yet, so there is nothing to continue"
        assert stopped.stderr == f"isotrope: stopped; {expected}.\n"
        assert not (folder / "run").exists()

    def test_without_a_folder_the_one_that_was_made_is_named_and_can_be_continued(self, folder: Path) -> None:
        stopped = _signalled("batch 3", "SIGINT", *SCAN, folder=folder)
        (made,) = (folder / "isotrope-runs").iterdir()
        place = made.relative_to(folder)
        words = f"continue with the same command and -o {place} --resume"
        assert stopped.stderr == f"isotrope: stopped; {words}.\n"
        resumed = _signalled("never", "SIGINT", *SCAN, "-o", str(place), "--resume", folder=folder)
        assert resumed.returncode == 0
        found = json.loads((made / "findings.json").read_text())
        assert found["provenance"]["resumed_at_batch"] >= 2
        assert found["readings"] == scan(vectors="rows.npy", sample=50, batch_size=100).to_dict()["readings"]

    def test_with_json_nothing_is_kept(self, folder: Path) -> None:
        stopped = _signalled("batch 3", "SIGINT", *SCAN, "--json", folder=folder)
        expected = "nothing was kept; name a run folder with -o to be able to continue"
        assert (stopped.stdout, stopped.stderr) == ("", f"isotrope: stopped; {expected}.\n")
        assert [path.name for path in folder.iterdir()] == ["rows.npy"]

    def test_while_the_report_is_made_the_run_is_whole(self, folder: Path) -> None:
        stopped = _signalled("report.html", "SIGTERM", *SCAN, "-o", "run", folder=folder)
        assert stopped.stderr == "isotrope: stopped; continue with the same command and -o run --resume.\n"
        assert Run(folder / "run").finished
        assert _signalled("never", "SIGINT", *SCAN, "-o", "run", "--resume", folder=folder).returncode == 0
        assert sorted(path.name for path in (folder / "run").iterdir()) == OURS

    def test_a_command_without_parts_promises_nothing(self, folder: Path) -> None:
        stopped = _signalled(
            "out", "SIGINT", "repair", "fit", "rows.npy", "--with", "centering", "-o", "out", folder=folder
        )
        assert (stopped.returncode, stopped.stderr) == (130, "isotrope: stopped.\n")
        assert [path.name for path in folder.iterdir()] == ["rows.npy"]

    @pytest.mark.parametrize("command", [("evaluate", "sts"), ("evaluate", "retrieval"), ("advise",), ("build",)])
    def test_no_other_command_speaks_of_resuming(self, command: tuple[str, ...]) -> None:
        """Stopped where it reads its options, before anything else: only commands with --resume may name it."""
        code = (
            "import signal, sys\n"
            "from isotrope.cli import main, progress\n"
            "def stop(*a, **k): raise progress.Stopped(signal.SIGINT)\n"
            "main.app = stop\n"
            "main.main()\n"
        )
        stopped = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True)
        assert (stopped.returncode, stopped.stderr) == (130, "isotrope: stopped.\n")
