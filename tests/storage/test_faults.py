"""What may go wrong around a run: two processes, a damaged file, a full disk, a clock that is set back."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from isotrope.cli.options import name_new_folder
from isotrope.errors import StoreError
from isotrope.repairs import Centering, saved_moments
from isotrope.report import write_report
from isotrope.runs.run import Run
from isotrope.scanner import scan
from isotrope.storage import provenance
from isotrope.storage.files import add_checksum
from isotrope.storage.locks import hold_lock, reserve_path

#: Holds a folder until it is told to end.
HOLD = """
import sys
from isotrope.storage.locks import hold_lock
with hold_lock(sys.argv[1]):
    print(1, flush=True)
    sys.stdin.read()
"""


def _command(*arguments: str, folder: Path, **more: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "isotrope", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, **more)  # type: ignore[call-overload]


def _save_rows(folder: Path) -> Path:
    np.save(folder / "rows.npy", np.random.default_rng(0).normal(size=(400, 6)).astype(np.float32) + 1)
    return folder / "rows.npy"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return _save_rows(tmp_path)


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run of the rows, for all tests."""
    folder = tmp_path_factory.mktemp("scanned")
    scan(vectors=_save_rows(folder), sample=100, output=folder / "run")
    return folder / "run"


@pytest.fixture
def run(scanned: Path, tmp_path: Path) -> Path:
    """A copy of the whole run, to be damaged."""
    return Path(shutil.copytree(scanned, tmp_path / "run"))


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that writes the folder `busy`."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "busy")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


class TestTwoProcesses:
    @pytest.mark.parametrize("more", [(), ("--resume",)])
    def test_a_second_scan_is_refused(
        self, more: tuple[str, ...], rows: Path, holder: subprocess.Popen[str], tmp_path: Path
    ) -> None:
        refused = _command("scan", "rows.npy", "-o", "busy", *more, folder=tmp_path)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr == (
            f"isotrope: 'busy' is being written by another process (number {holder.pid}); "
            "wait until it has ended, or choose another name.\n"
        )
        assert [path.name for path in (tmp_path / "busy").iterdir()] == [".lock"]

    def test_what_a_killed_process_left_does_not_stand_in_the_way(
        self, rows: Path, holder: subprocess.Popen[str], tmp_path: Path
    ) -> None:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert (tmp_path / "busy/.lock").exists()
        scan(vectors=rows, sample=0, output=tmp_path / "busy", resume=True)
        assert not (tmp_path / "busy/.lock").exists()

    def test_only_one_of_many_at_once(self, rows: Path, tmp_path: Path) -> None:
        """Whoever is refused is refused by name, and what the others made is whole."""
        command = [sys.executable, "-m", "isotrope", "scan", "rows.npy", "--sample", "50", "-o", "run"]
        started = [
            subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(3)
        ]
        ended = [(process.communicate()[1], process.returncode) for process in started]
        assert sorted(code for _, code in ended) == [0, 2, 2]
        for sentence, code in ended:
            assert code == 0 or "'run' is being written" in sentence or "'run' already holds a run" in sentence
        assert Run(tmp_path / "run").findings().counts["rows"] == 400

    def test_a_study_is_refused(self, holder: subprocess.Popen[str], tmp_path: Path) -> None:
        refused = _command("study", "uniformity", "--quick", "-o", "busy", folder=tmp_path)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "'busy' is being written by another process" in refused.stderr

    @pytest.mark.parametrize("out", ["made", "deep/made"])
    def test_names_that_are_claimed(self, out: str, rows: Path, tmp_path: Path) -> None:
        with reserve_path(tmp_path / out):
            refused = _command("repair", "fit", "rows.npy", "--with", "centering", "-o", out, folder=tmp_path)
        assert refused.returncode == 2
        assert f"{out!r} is being written by another process" in refused.stderr
        assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.npy"]

    def test_apply(self, rows: Path, tmp_path: Path) -> None:
        Centering().fit(rows).save(tmp_path / "centering")
        with reserve_path(tmp_path / "out.npy"):
            refused = _command("repair", "apply", "centering", "rows.npy", "-o", "out.npy", folder=tmp_path)
        assert "'out.npy' is being written by another process" in refused.stderr
        assert not list(tmp_path.glob(".*"))

    @pytest.mark.parametrize("command", ["report", pytest.param("compare", marks=pytest.mark.long)])
    def test_reports_wait_for_nobody_and_add_nothing_to_a_run_in_use(
        self, command: str, run: Path, tmp_path: Path
    ) -> None:
        for name in ("tables/coordinates.parquet", "report.html"):
            (run / name).unlink()
        index = json.loads((run / "statistics/index.json").read_text())
        del index["sha256"]["tables/coordinates.parquet"], index["checksum"]
        (run / "statistics/index.json").write_text(add_checksum(index))
        made = (
            ["report", "run", "-o", "out.html"]
            if command == "report"
            else ["compare", "run", "run", "--html", "out.html"]
        )
        with hold_lock(run):
            refused = _command(*made, folder=tmp_path)
        assert "'run' is being written by another process" in refused.stderr
        assert not (run / "tables/coordinates.parquet").exists()
        assert not (tmp_path / "out.html").exists()
        assert _command(*made, folder=tmp_path).returncode == 0
        assert (run / "tables/coordinates.parquet").exists()
        with hold_lock(run):  # nothing is added to it any more
            assert _command(*made, folder=tmp_path).returncode == 0
            refused = _command("report", "run", folder=tmp_path)
        assert "'run' is being written by another process" in refused.stderr
        assert not (run / "report.html").exists()

    def test_a_run_that_cannot_be_written_is_reported_elsewhere(self, run: Path, tmp_path: Path) -> None:
        (run / ".lock").mkdir()  # even for root
        assert write_report(run, tmp_path / "out.html").exists()
        with pytest.raises(StoreError, match="cannot be written"):
            write_report(run)

    @pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="this system has no such folder")
    def test_a_folder_in_which_nothing_can_be_made(self) -> None:
        with pytest.raises(StoreError, match="'/proc/self' cannot be written"), hold_lock("/proc/self"):
            pass

    def test_a_lock_that_was_a_link_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "victim").write_text("mine")
        (tmp_path / "run").mkdir()
        (tmp_path / "run/.lock").symlink_to(tmp_path / "victim")
        with pytest.raises(StoreError, match="cannot be written"), hold_lock(tmp_path / "run"):
            pass
        assert (tmp_path / "victim").read_text() == "mine"


def _flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


class TestDamage:
    """A flipped byte or a missing end is found wherever it is, and the file is named."""

    @pytest.mark.parametrize(
        "name", ["findings.json", "tables/spectra.parquet", "tables/coordinates.parquet", "statistics/index.json"]
    )
    def test_findings_and_tables(self, name: str, run: Path) -> None:
        whole = (run / name).read_bytes()
        for at in np.linspace(0, len(whole) - 1, 40).astype(int):
            _flip(run / name, at)
            with pytest.raises(StoreError, match=name.replace(".", r"\.")):
                Run(run).findings()
            (run / name).write_bytes(whole)
        (run / name).write_bytes(whole[:-3])
        with pytest.raises(StoreError, match=name.replace(".", r"\.")):
            Run(run).findings()
        (run / name).write_bytes(whole)
        assert Run(run).findings().counts["rows"] == 400

    def test_statistics(self, run: Path) -> None:
        path = run / "statistics/layer_0.safetensors"
        whole = path.read_bytes()
        (run / "report.html").unlink()
        (run / "tables/coordinates.parquet").unlink()
        for damaged in (whole[:-1], whole[:900] + bytes([whole[900] ^ 1]) + whole[901:], b""):
            path.write_bytes(damaged)
            with pytest.raises(StoreError, match=r"layer_0\.safetensors"):
                saved_moments(run)
        path.write_bytes(whole)
        assert saved_moments(run).n == 400

    def test_a_report_does_not_draw_damaged_statistics(self, rows: Path, tmp_path: Path) -> None:
        run = Run(tmp_path / "run")
        found = scan(vectors=rows, sample=100, output=run.folder)
        _flip(run.folder / "statistics/layer_0.safetensors", 1000)
        del found.tables["coordinates"]
        from isotrope.report.tables import add_tables

        with pytest.raises(StoreError, match="its checksum differs"):
            add_tables(run, found, lambda *_: None)

    def test_a_missing_table(self, run: Path) -> None:
        (run / "tables/spectra.parquet").unlink()
        with pytest.raises(StoreError, match=r"spectra\.parquet' is missing"):
            Run(run).findings()

    def test_a_state_that_still_is_json(self, rows: Path, tmp_path: Path) -> None:
        run = Run(tmp_path / "run")
        run.checkpoints.write({"batches": 3}, {})
        path = run.folder / "checkpoint/00000001/state.json"
        path.write_text(path.read_text().replace('"batches": 3', '"batches": 7'))
        with pytest.raises(StoreError, match=r"state\.json' is damaged"):
            run.checkpoints.read_last()

    def test_a_run_from_before_there_were_checksums(self, run: Path) -> None:
        path = run / "statistics/index.json"
        index = json.loads(path.read_text())
        path.write_text(json.dumps({name: index[name] for name in ("format", "files")}))
        assert Run(run).findings().counts["rows"] == 400
        assert saved_moments(run).n == 400

    def test_tables_of_a_report_are_verified_too(self, run: Path) -> None:
        hashes = json.loads((run / "statistics/index.json").read_text())["sha256"]
        tables = {f"tables/{path.name}" for path in (run / "tables").iterdir()}
        assert tables | {"findings.json", "statistics/layer_0.safetensors"} <= hashes.keys()
        write_report(run)


class TestPaths:
    """Nothing in a run folder leads out of it."""

    @pytest.mark.parametrize("name", ["../../other", "/etc/passwd", "a/../../../x"])
    def test_names_of_statistics(self, name: str, run: Path) -> None:
        path = run / "statistics/index.json"
        path.write_text(json.dumps({"format": 1, "files": {name: [None, 0]}}))
        with pytest.raises(StoreError, match=r"index\.json' is damaged"):
            saved_moments(run)

    def test_names_in_a_checkpoint(self, tmp_path: Path) -> None:
        from isotrope.storage.files import add_checksum

        run = Run(tmp_path / "run")
        run.checkpoints.write({"batches": 3}, {})
        state = add_checksum({"format": 1, "files": {"../../../other": "0" * 64}, "batches": 3})
        (run.folder / "checkpoint/00000001/state.json").write_text(state)
        with pytest.raises(StoreError, match="leads out of the folder"):
            run.checkpoints.read_last()

    @pytest.mark.parametrize("name", ["tables/spectra.parquet", "statistics/layer_0.safetensors", "findings.json"])
    def test_links(self, name: str, run: Path, tmp_path: Path) -> None:
        (run / name).rename(tmp_path / "elsewhere")
        (run / name).symlink_to(tmp_path / "elsewhere")
        with pytest.raises(StoreError, match="leads out of the folder"):
            _ = Run(run).findings(), saved_moments(run)

    @pytest.mark.parametrize("name", ["checkpoint", "statistics", "tables", ".unfinished"])
    def test_folders_that_are_links(self, name: str, rows: Path, tmp_path: Path) -> None:
        (tmp_path / "other").mkdir()
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / name).symlink_to(tmp_path / "other")
        with pytest.raises(StoreError, match="leads out of the folder"):
            scan(vectors=rows, output=tmp_path / "run", resume=True)
        assert list((tmp_path / "other").iterdir()) == []

    def test_a_part_of_a_study(self, tmp_path: Path) -> None:
        from isotrope.studies.runner import load_part

        (tmp_path / "parts/one").mkdir(parents=True)
        (tmp_path / "x.json").write_text("[]")
        part = {"name": "one", "tables": [{"name": "../../x", "title": "", "columns": []}], "claims": [], "figures": []}
        (tmp_path / "parts/one/part.json").write_text(json.dumps(part))
        with pytest.raises(StoreError, match="leads out of the folder"):
            load_part(tmp_path, "one")


class TestFullDisk:
    """The system lets no file grow beyond a size; whatever was being written is not there afterwards."""

    @staticmethod
    def _limited(size: int) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as a full disk, it then is an error and no signal
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    @pytest.mark.parametrize(
        ("size", "arguments"),
        [
            (5_000, ["scan", "rows.npy", "-o", "out"]),
            pytest.param(20_000, ["scan", "rows.npy", "-o", "out", "--checkpoint-every", "0"], marks=pytest.mark.long),
            pytest.param(60_000, ["scan", "rows.npy", "-o", "out", "--sample", "100"], marks=pytest.mark.long),
            (1_000, ["repair", "fit", "rows.npy", "--with", "whitening", "-o", "out"]),
            (5_000, ["repair", "apply", "centering", "rows.npy", "-o", "out.npy"]),
            pytest.param(
                5_000, ["repair", "apply", "centering", "rows.npy", "-o", "out.parquet"], marks=pytest.mark.long
            ),
            pytest.param(
                5_000, ["repair", "apply", "centering", "rows.npy", "-o", "out.safetensors"], marks=pytest.mark.long
            ),
        ],
    )
    def test_nothing_is_left(self, size: int, arguments: list[str], tmp_path: Path) -> None:
        np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(2000, 30)).astype(np.float32))
        Centering().fit(tmp_path / "rows.npy").save(tmp_path / "centering")
        before = sorted(tmp_path.rglob("*"))
        ended = _command(*arguments, folder=tmp_path, preexec_fn=lambda: self._limited(size))
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr.startswith("isotrope: the disk is full: ")
        assert ended.stderr.count("\n") == 1
        after = [path for path in sorted(tmp_path.rglob("*")) if path.suffix != ".html"]
        if size < 60_000:
            assert after == before
        else:  # the run itself is whole; only its report did not fit any more
            assert Run(tmp_path / "out").findings().counts["rows"] == 2000

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
    def test_a_disk_that_is_full_indeed(self, rows: Path, tmp_path: Path) -> None:
        disk = tmp_path / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", str(disk)], capture_output=True)
        if mounted.returncode:
            pytest.skip("this system lets nothing be mounted")
        try:
            ended = _command("scan", "rows.npy", "-o", "disk/run", folder=tmp_path)
            assert ended.returncode == 2
            assert ended.stderr.startswith("isotrope: the disk is full: ")
            assert list(disk.iterdir()) == []
        finally:
            subprocess.run(["umount", str(disk)], check=True)


class TestClocks:
    def test_a_clock_that_is_set_back_changes_no_duration(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from datetime import datetime, timedelta

        times = iter([datetime(2030, 1, 2), datetime(2001, 1, 1)])

        class Clock(datetime):
            @classmethod
            def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
                return next(times)

        monkeypatch.setattr(provenance, "datetime", Clock)
        start = provenance.record_start()
        monkeypatch.setattr(time, "monotonic", lambda: start.ticks + 90.0)
        facts = provenance.describe_provenance(start, {}, 0)
        assert facts["seconds"] == 90.0
        assert datetime.fromisoformat(facts["ended"]) - datetime.fromisoformat(facts["started"]) == timedelta(
            seconds=90
        )

    def test_checkpoints_go_by_a_clock_that_only_runs_on(self, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(time, "time", lambda: pytest.fail("the wall clock was asked for a duration"))
        scan(vectors=rows, sample=0, batch_size=50)

    def test_a_folder_of_the_same_second(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        names = []
        for _ in range(30):
            names.append(name_new_folder("runs", "a"))
            names[-1].mkdir(parents=True)
        assert len(set(names)) == 30
