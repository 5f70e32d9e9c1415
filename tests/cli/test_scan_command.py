"""isotrope scan on vectors: what it prints, writes and returns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from isotrope.scanner import scan
from testkit.command import Command, one_sentence

KEYS = {"layer", "measure", "value", "low", "high", "n", "null", "variant", "seed", "reason", "note", "group"}


def _value(document: dict, measure: str, group: str | None = None) -> float | None:
    found = [r for r in document["readings"] if (r["measure"], r["group"]) == (measure, group)]
    return found[0]["value"]


def test_json_is_one_document(isotrope: Command, healthy: Path, tmp_path: Path) -> None:
    result = isotrope("scan", healthy, "--json")
    assert (result.code, result.err) == (0, "")
    document = result.json
    assert document["format"] == 1
    assert document["layers"] == [0]
    for reading in document["readings"]:
        assert reading.keys() == KEYS
        assert (reading["value"] is None) == (reading["reason"] is not None)
    assert document["provenance"]["versions"]["numpy"] == np.__version__
    assert document["source"]["files"][0]["sha256"]
    assert list(tmp_path.iterdir()) == [healthy]  # nothing is written unless asked for


def test_run_folder(isotrope: Command, healthy: Path) -> None:
    result = isotrope("scan", healthy, "-o", "run", "--measures", "isoscore,mean_cosine")
    assert result.code == 0
    assert "Results: run/" in result.out
    for name in ("findings.json", "readings.csv", "readings.parquet", "statistics/layer_0.safetensors", "tables"):
        assert (Path("run") / name).exists()
    frame = pd.read_csv("run/readings.csv")
    columns = ["model", "revision", "layer", "measure", "value", "low", "high", "n", "null", "variant", "seed"]
    assert list(frame.columns[: len(columns)]) == columns
    assert frame["measure"].tolist() == ["isoscore", "mean_cosine"]
    parquet = pd.read_parquet("run/readings.parquet")
    np.testing.assert_allclose(parquet["value"], frame["value"])
    assert not list(Path("run").rglob(".*"))
    provenance = json.loads(Path("run/findings.json").read_text())["provenance"]
    assert provenance["command"] == f"isotrope scan {healthy} -o run --measures isoscore,mean_cosine"
    assert provenance["started"] <= provenance["ended"]
    assert provenance["seconds"] >= 0


def test_without_o_a_fresh_folder(isotrope: Command, healthy: Path) -> None:
    assert isotrope("scan", healthy).code == 0
    assert len(list(Path("isotrope-runs").glob("healthy.npy-*/findings.json"))) == 1


def test_verdict_chart_and_headline(isotrope: Command, collapsed: Path) -> None:
    out = isotrope("scan", collapsed, "-o", "run").out
    assert "vectors  400 rows, width 8" in out
    assert "● Collapsed: in the vectors nearly all rows point the same way (mean cosine 0.99" in out
    assert "Sure: no 95 % interval reaches below 0.75." in out
    assert "█" * 20 in out
    assert "isotropic" in out
    assert [line.split()[0] for line in out.splitlines() if " 0.99" in line and "█" in line] == ["vectors"]


def test_vectors_are_not_asked_for_what_they_cannot_have(isotrope: Command, healthy: Path) -> None:
    out = isotrope("scan", healthy, "-o", "run").out
    assert "without a value" not in out
    assert "layer" not in out
    document = json.loads(Path("run/findings.json").read_text("utf-8"))
    assert not [r for r in document["readings"] if r["value"] is None]
    assert not {"self_similarity", "sequence_uniformity", "drift_correlation"} & {
        r["measure"] for r in document["readings"]
    }
    everything = isotrope("scan", healthy, "--measures", "all", "--sample", "200", "--json").json
    assert not [r["measure"] for r in everything["readings"] if r["reason"] and "these rows" in r["reason"]]
    named = isotrope("scan", healthy, "--measures", "moments,self_similarity", "--json").json
    (asked,) = [r for r in named["readings"] if r["measure"] == "self_similarity"]
    assert asked["value"] is None
    assert "no token types" in asked["reason"]


def test_a_row_that_decides_is_named(isotrope: Command, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(3000, 32))
    rows[77] *= 100
    np.save("long.npy", rows)
    result = isotrope("scan", "long.npy", "--json")
    assert "One row decides this: row 77 is " in result.json["verdict"]["statements"][1]["text"]
    assert [row["id"] for row in result.json["rows"]["extreme"]] == [77]


def test_fewer_rows_than_dimensions(isotrope: Command, rng: np.random.Generator) -> None:
    np.save("few.npy", rng.normal(size=(50, 80)))
    result = isotrope("scan", "few.npy", "-o", "run")
    assert result.code == 0
    assert "50 rows for 80 dimensions are too few to call it healthy" in result.out
    (line,) = [line for line in result.out.splitlines() if "only 50 rows for 80 dimensions" in line]
    for suffering in ("isoscore", "effective_rank", "effective_rank_eigenvalues"):
        assert suffering in line


def test_bad_rows_are_counted(isotrope: Command, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(300, 6))
    clean = rows[10:].copy()
    rows[:3], rows[3:7, 2], rows[7:10, 1] = 0.0, np.nan, -np.inf
    np.save("bad.npy", rows)
    np.save("clean.npy", clean)
    result = isotrope("scan", "bad.npy", "-o", "run")
    assert "Left out: 3 zero rows and 7 rows with NaN or infinity." in result.out
    document = isotrope("scan", "bad.npy", "--json").json
    expected = {"rows": 300, "zero_rows": 3, "nonfinite_rows": 7, "examined_rows": 290}
    assert document["counts"].items() >= expected.items()
    assert any("Left out" in s["text"] for s in document["verdict"]["statements"])
    assert document["readings"][0]["n"] == 290
    np.testing.assert_allclose(
        _value(document, "isoscore"), _value(isotrope("scan", "clean.npy", "--json").json, "isoscore"), rtol=1e-12
    )


def test_counts_are_there_when_nothing_is_wrong(isotrope: Command, healthy: Path) -> None:
    counts = isotrope("scan", healthy, "--json").json["counts"]
    never_found = counts.pop("never_found_rows")
    assert 0 <= never_found < 400
    none = ("zero", "nonfinite", "duplicate", "near_duplicate", "hub", "outlier")
    assert counts == {"rows": 400, "examined_rows": 400} | {f"{kind}_rows": 0 for kind in none}


@pytest.mark.parametrize("dtype", ["float16", "int8", "int64", "uint8", "float32"])
def test_other_types_of_numbers(dtype: str, isotrope: Command, rng: np.random.Generator) -> None:
    rows = np.round(rng.normal(size=(200, 5)) * 3).clip(0 if dtype[0] in "ub" else -9, 9).astype(dtype)
    rows[:, 0] = 1
    np.save("a.npy", rows)
    np.save("b.npy", rows.astype(np.float64))
    a, b = (isotrope("scan", name, "--measures", "mean_cosine,isoscore", "--json").json for name in ("a.npy", "b.npy"))
    assert _value(a, "isoscore") == pytest.approx(_value(b, "isoscore"), rel=1e-12)
    assert _value(a, "mean_cosine") == pytest.approx(_value(b, "mean_cosine"), rel=1e-12)


def test_bfloat16(isotrope: Command, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file as save_tensors

    rows = torch.from_numpy(rng.normal(size=(100, 4))).to(torch.bfloat16)
    save_tensors({"x": rows}, "a.safetensors")
    np.save("b.npy", rows.double().numpy())
    a, b = (isotrope("scan", name, "--json").json for name in ("a.safetensors", "b.npy"))
    assert _value(a, "isoscore") == pytest.approx(_value(b, "isoscore"), rel=1e-12)


def test_two_arrays_in_one_file(isotrope: Command, rng: np.random.Generator) -> None:
    save_file({"x": rng.normal(size=(50, 3)), "y": rng.normal(size=(50, 4)) + 9}, "two.safetensors")
    assert "--column" in one_sentence(isotrope("scan", "two.safetensors"))
    assert isotrope("scan", "two.safetensors", "--column", "y", "--json").json["source"]["width"] == 4


class TestGates:
    def test_passes(self, isotrope: Command, healthy: Path) -> None:
        result = isotrope("scan", healthy, "--json", "--fail-on", "layer[-1].mean_cosine > 0.5")
        assert result.code == 0
        assert result.err.startswith("gate passed: mean_cosine is ")
        assert result.json["readings"]

    def test_fails(self, isotrope: Command, collapsed: Path) -> None:
        result = isotrope("scan", collapsed, "-o", "run", "--fail-on", "mean_cosine.low > 0.5")
        assert result.code == 1
        assert result.err.startswith("gate tripped: mean_cosine.low is 0.99")
        assert Path("run/findings.json").exists()

    def test_several(self, isotrope: Command, collapsed: Path) -> None:
        gates = ["--fail-on", "isoscore < 0.1", "--fail-on", "any.mean_cosine > 0.5", "--fail-on", "all.eee > 1"]
        result = isotrope("scan", collapsed, "--json", *gates)
        assert result.code == 1
        assert [line.split(" is ")[0] for line in result.err.splitlines()] == [
            "gate passed: isoscore",
            "gate tripped: mean_cosine",
            "gate passed: eee",
        ]

    def test_brings_its_measure(self, isotrope: Command, healthy: Path) -> None:
        gate = ["--fail-on", "explained_variance_3 > 0.99"]
        document = isotrope("scan", healthy, "--json", "--measures", "isoscore", *gate).json
        assert [r["measure"] for r in document["readings"]] == ["isoscore", "explained_variance_3"]

    def test_undefined(self, isotrope: Command, healthy: Path) -> None:
        result = isotrope("scan", healthy, "-o", "run", "--fail-on", "self_similarity > 0.5")
        assert result.code == 2
        assert "cannot be decided" in result.err
        assert "no token types" in result.err
        result = isotrope("scan", healthy, "-o", "run2", "--sample", "0", "--fail-on", "mean_cosine.low > 0.5")
        assert result.code == 2
        assert "no interval" in result.err


class TestGroups:
    @pytest.fixture
    def table(self, tmp_path: Path, rng: np.random.Generator) -> pd.DataFrame:
        rows = rng.normal(size=(600, 6)) + np.repeat([0.0, 1.0, 4.0], 200)[:, None]
        order = rng.permutation(600)
        frame = pd.DataFrame({"x": list(rows[order]), "kind": np.repeat(["[low]", "mid", "high"], 200)[order]})
        frame.to_parquet(tmp_path / "table.parquet")
        return frame

    def test_equal_separate_scans(self, isotrope: Command, table: pd.DataFrame) -> None:
        options = ["--json", "--sample", "0"]
        grouped = isotrope("scan", "table.parquet", "--column", "x", "--group-by", "kind", *options).json
        np.save("all.npy", np.array(table["x"].tolist()))
        whole = isotrope("scan", "all.npy", *options).json
        self._same(grouped, None, whole)
        for kind, part in table.groupby("kind"):
            np.save("part.npy", np.array(part["x"].tolist()))
            self._same(grouped, str(kind), isotrope("scan", "part.npy", *options).json)

    def _same(self, grouped: dict, group: str | None, single: dict) -> None:
        mine = [r for r in grouped["readings"] if r["group"] == group]
        assert [r["measure"] for r in mine] == [r["measure"] for r in single["readings"]]
        for a, b in zip(mine, single["readings"], strict=True):
            assert a["n"] == b["n"]
            for end in ("value", "null"):
                assert (a[end] is None) == (b[end] is None)
                if a[end] is not None:
                    assert a[end] == pytest.approx(b[end], rel=1e-9, abs=1e-9), a["measure"]

    def test_intervals_of_the_whole_do_not_depend_on_groups(self, isotrope: Command, table: pd.DataFrame) -> None:
        grouped = isotrope("scan", "table.parquet", "--column", "x", "--group-by", "kind", "--json").json
        plain = isotrope("scan", "table.parquet", "--column", "x", "--json").json
        whole = [r for r in grouped["readings"] if r["group"] is None]
        for a, b in zip(whole, plain["readings"], strict=True):
            assert a["measure"] == b["measure"]
            if a["low"] is not None:
                assert a["low"] == pytest.approx(b["low"], rel=1e-9, abs=1e-9)

    def test_shown(self, isotrope: Command, table: pd.DataFrame) -> None:
        out = isotrope("scan", "table.parquet", "--column", "x", "--group-by", "kind", "-o", "run").out
        lines = [line.split() for line in out.splitlines() if line.startswith(("[low]", "mid", "high"))]
        assert {line[0]: line[1] for line in lines} == {"[low]": "200", "mid": "200", "high": "200"}
        assert set(pd.read_csv("run/readings.csv")["group"].dropna()) == {"[low]", "mid", "high"}


class TestDryRun:
    def test_writes_nothing(self, isotrope: Command, healthy: Path, tmp_path: Path) -> None:
        result = isotrope("scan", healthy, "--dry-run", "-o", "run")
        assert (result.code, result.err) == (0, "")
        for word in ("rows", "400", "time", "memory", "disk", "Nothing was written"):
            assert word in result.out
        assert list(tmp_path.iterdir()) == [healthy]

    def test_json(self, isotrope: Command, rng: np.random.Generator) -> None:
        np.save("big.npy", rng.normal(size=(30_000, 32)))
        plan = isotrope("scan", "big.npy", "--dry-run", "--json", "--batch-size", "1000").json
        assert (plan["rows"], plan["layers"], plan["width"]) == (30_000, 1, 32)
        assert 0 < plan["seconds"] < 120
        assert 1e8 < plan["memory"] < 1e9
        assert isotrope("scan", "big.npy", "-o", "run").code == 0
        written = sum(path.stat().st_size for path in Path("run").rglob("*") if path.is_file())
        assert written / 3 < plan["disk"] < 5 * written

    def test_a_run_with_a_report_takes_longer(self, isotrope: Command, rng: np.random.Generator) -> None:
        np.save("wide.npy", rng.normal(size=(50, 1_024)))
        alone, reported = (
            isotrope("scan", "wide.npy", "--measures", "mean_cosine", "--dry-run", "--json", *more).json["seconds"]
            for more in ([], ["-o", "run"])
        )
        assert reported - alone > 0.5 * alone

    def test_an_existing_run_is_refused_at_once(self, isotrope: Command, healthy: Path) -> None:
        isotrope("scan", healthy, "-o", "run")
        assert "already holds a run" in one_sentence(isotrope("scan", healthy, "--dry-run", "-o", "run"))


class TestRunFolders:
    def test_existing(self, isotrope: Command, healthy: Path, collapsed: Path) -> None:
        isotrope("scan", healthy, "-o", "run")
        before = {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()}
        sentence = one_sentence(isotrope("scan", collapsed, "-o", "run"))
        assert "already holds a run" in sentence
        assert "--resume" in sentence
        assert {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()} == before

    def test_resume_of_a_finished_run_shows_it(self, isotrope: Command, healthy: Path) -> None:
        first = isotrope("scan", healthy, "-o", "run").out
        written = Path("run/findings.json").read_bytes()
        again = isotrope("scan", healthy, "-o", "run", "--resume")
        assert (again.code, again.out) == (0, first)
        assert Path("run/findings.json").read_bytes() == written

    @pytest.mark.parametrize("option", [["--seed", "1"], ["--sample", "50"], ["--measures", "isoscore"]])
    def test_resume_with_other_options(self, option: list[str], isotrope: Command, healthy: Path) -> None:
        isotrope("scan", healthy, "-o", "run")
        sentence = one_sentence(isotrope("scan", healthy, "-o", "run", "--resume", *option))
        assert f"begun with other {option[0].strip('-')}" in sentence

    def test_resume_with_another_input(self, isotrope: Command, healthy: Path, collapsed: Path) -> None:
        isotrope("scan", healthy, "-o", "run")
        assert "begun with other files" in one_sentence(isotrope("scan", collapsed, "-o", "run", "--resume"))

    def test_newer_format(self, isotrope: Command, healthy: Path) -> None:
        isotrope("scan", healthy, "-o", "run")
        path = Path("run/findings.json")
        path.write_text(path.read_text().replace('"format": 1', '"format": 2', 1))
        sentence = one_sentence(isotrope("scan", healthy, "-o", "run", "--resume"))
        assert "format 2" in sentence
        assert "pip install -U isotrope" in sentence


def test_secrets_are_not_written_down(healthy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = ["--revision", "hf_abcdefghijklmnop", "--split", "https://me:pass@host/x?token=abc"]
    monkeypatch.setattr(sys, "argv", ["train.py", *secrets])
    scan(vectors=healthy, output=tmp_path / "run")
    written = b"".join(path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert b"https://***@host/x?token=***" in written
    for secret in (b"hf_abcdefghijklmnop", b"pass@", b"token=abc"):
        assert secret not in written


def test_piped_output_is_plain(healthy: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "isotrope", "scan", healthy.name, "-o", "run"],
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, "TERM": "xterm-256color"},
    )
    assert done.returncode == 0
    assert done.stderr == b""
    assert b"\x1b" not in done.stdout
    assert b"\r" not in done.stdout
    assert "● Healthy" in done.stdout.decode()


def test_a_terminal_that_knows_only_ascii(healthy: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "isotrope", "scan", healthy.name, "-o", "run"],
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"? Healthy" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_sees_progress_and_colours(healthy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pty

    seen: list[bytes] = []

    def read(handle: int) -> bytes:
        seen.append(os.read(handle, 65536))
        return seen[-1]

    monkeypatch.chdir(tmp_path)
    status = pty.spawn([sys.executable, "-m", "isotrope", "scan", healthy.name, "-o", "run"], read)
    assert os.waitstatus_to_exitcode(status) == 0
    assert "opening" in b"".join(seen).decode()
    assert b"\x1b[32m" in b"".join(seen)
