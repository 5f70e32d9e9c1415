"""How much of its statistics a run keeps, and that every command that reads runs works with it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isotrope import load_repair, scan
from isotrope.cli.main import app
from isotrope.errors import InputError, StoreError
from isotrope.figures import FIGURES
from isotrope.measures import get
from isotrope.plan import plan
from isotrope.readings.selected_measures import resolve_measures
from isotrope.repairs import saved_moments, saved_summary
from isotrope.report import write_report
from isotrope.runs.run import Run
from isotrope.sources.input import Input
from isotrope.statistics import TokenTables
from isotrope.storage.files import add_checksum, sha256


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One scan of a small model, kept in each way."""
    pytest.importorskip("transformers")
    from testkit.models import save_model, texts

    folder = tmp_path_factory.mktemp("runs")
    save_model(folder / "bert", "bert")
    (folder / "texts.txt").write_text("\n".join(texts(150)))
    for keep in ("none", "summary", "all"):
        scan(model=folder / "bert", text=folder / "texts.txt", sample=600, keep=keep, output=folder / keep)
    return folder


def _said(*arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert not app(list(arguments), standalone_mode=False)
    return capsys.readouterr().out


class TestFolders:
    def test_all_is_the_largest(self, runs: Path) -> None:
        none, summary, everything = (_size(runs / keep / "statistics") for keep in ("none", "summary", "all"))
        assert none < 10_000 < summary < 0.7 * everything
        assert [path.name for path in (runs / "none/statistics").iterdir()] == ["index.json"]

    @pytest.mark.parametrize("keep", ["none", "summary"])
    def test_what_was_found_does_not_depend_on_it(self, keep: str, runs: Path) -> None:
        one, other = (json.loads((runs / name / "findings.json").read_text()) for name in (keep, "all"))
        assert one["readings"] == other["readings"]
        assert (runs / keep / "report.html").exists()
        assert Run(runs / keep).findings().tables.keys() == Run(runs / "all").findings().tables.keys()

    @pytest.mark.parametrize("keep", ["none", "summary", "all"])
    def test_a_finished_run_is_resumed(self, keep: str, runs: Path) -> None:
        given: dict[str, Any] = {"model": runs / "bert", "text": runs / "texts.txt", "sample": 600}
        found = scan(**given, keep=keep, output=runs / keep, resume=True)
        assert found.counts == Run(runs / "all").findings().counts

    def test_a_word_that_says_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="got keep 'most', expected none, summary or all"):
            scan(vectors=np.eye(3), keep="most", output=tmp_path / "run")
        assert not (tmp_path / "run").exists()


class TestNumbers:
    """From a compact run: moments and tables of token types to rounding, sampled rows to three digits."""

    def test_moments_and_tokens(self, runs: Path) -> None:
        for layer in range(4):
            compact, exact = (saved_summary(runs / keep, layer) for keep in ("summary", "all"))
            for name, array in exact.moments.arrays().items():
                assert_allclose(compact.moments.arrays()[name], array, rtol=1e-13, err_msg=name)
            assert isinstance(compact.tokens, TokenTables)
            assert exact.tokens is not None
            for name in ("within_variance", "self_similarity", "within_share"):
                for variant in ("definition", *get(name).variants):
                    values = [get(name).value(s.tokens, variant=variant) for s in (compact, exact)]
                    assert_allclose(*values, rtol=1e-12, err_msg=f"{name}, {variant}")

    def test_measures_of_sampled_rows(self, runs: Path) -> None:
        compact, exact = (saved_summary(runs / keep, 3).sample for keep in ("summary", "all"))
        assert compact is not None
        assert exact is not None
        assert_array_equal(compact.rows.sequence, exact.rows.sequence)
        for name in ("mean_cosine", "isoscore", "effective_rank", "intrinsic_dimension_twonn"):
            one, other = (get(name)(sample.values.astype(np.float64)) for sample in (compact, exact))
            assert_allclose(one, other, rtol=2e-3, err_msg=name)

    @pytest.mark.parametrize("repair", ["whitening", "softdecay", "all-but-the-top"])
    def test_linear_repairs_are_the_same(self, repair: str, runs: Path, tmp_path: Path) -> None:
        for keep in ("summary", "all"):
            options = ["--with", repair, "-o", str(tmp_path / keep)]
            assert not app(["repair", "fit", str(runs / keep), *options], standalone_mode=False)
        one, other = (load_repair(tmp_path / keep).transform(np.eye(16)) for keep in ("summary", "all"))
        assert_allclose(one, other, rtol=1e-9, atol=1e-9)


class TestCommands:
    @pytest.mark.parametrize("name", [record.name for record in FIGURES])
    def test_figures(
        self,
        name: str,
        runs: Path,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Whatever can be drawn of all statistics can be drawn of the compact ones."""
        pytest.importorskip("matplotlib")
        monkeypatch.setattr("isotrope.figures.sampled_rows._TSNE_ROWS", 150)
        made = {}
        for keep in ("all", "summary"):
            try:
                _said("figure", str(runs / keep), name, "-o", str(tmp_path / f"{keep}.svg"), capsys=capsys)
                made[keep] = "drawn"
            except (InputError, StoreError) as error:
                made[keep] = str(error).replace(str(runs / keep), "RUN")
        assert made["all"] == made["summary"]

    def test_reports_and_comparisons(self, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        for keep in ("none", "summary", "all"):
            _said("report", str(runs / keep), "-o", str(tmp_path / f"{keep}.html"), capsys=capsys)
            _said("compare", str(runs / keep), str(runs / "all"), "--html", str(tmp_path / "c.html"), capsys=capsys)

    def test_rows_are_fitted_on_and_shown(self, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        options = ["--with", "clusters", "--clusters", "3", "-o", str(tmp_path / "fitted")]
        _said("repair", "fit", str(runs / "summary"), *options, capsys=capsys)
        shown = {}
        for keep in ("summary", "all"):
            said = _said(
                "repair", "show", str(tmp_path / "fitted"), str(runs / keep), "--measures", "mean_cosine,isoscore",
                "--json", capsys=capsys,
            )  # fmt: skip
            found = json.loads(said)
            lines = found.get("effects", found)["measures"] if "measures" not in found else found["measures"]
            shown[keep] = [value for line in lines for value in (line["before"], line["after"])]
        assert_allclose(shown["summary"], shown["all"], rtol=5e-3, atol=1e-4)

    @pytest.mark.parametrize(
        "arguments",
        [("repair", "fit", "RUN", "--with", "whitening", "-o", "OUT"), ("figure", "RUN", "pca", "-o", "OUT.svg")],
    )
    def test_what_needs_statistics_that_are_gone(self, arguments: tuple[str, ...], runs: Path, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib")
        given = [str(runs / "none") if a == "RUN" else a.replace("OUT", str(tmp_path / "out")) for a in arguments]
        with pytest.raises(StoreError, match=r"made with --keep none; scan again with --keep summary\."):
            app(given, standalone_mode=False)
        assert list(tmp_path.iterdir()) == []

    def test_the_estimate_is_about_right(self, runs: Path) -> None:
        source = Input(model=str(runs / "bert"), text=str(runs / "texts.txt")).open()
        options = resolve_measures(None, sample=600)
        for keep in ("none", "summary", "all"):
            estimate = plan(source, options.measures, options.wanted, keep=keep).disk
            assert 0.6 < estimate / _size(runs / keep) < 1.7, keep


def _with_arrays(run: Path, **changed: np.ndarray) -> None:
    """Exchange arrays of a run's statistics, with checksums that fit."""
    from safetensors.numpy import load_file, save_file

    path = run / "statistics/layer_0.safetensors"
    save_file(load_file(path) | {f"moments.{name}": array for name, array in changed.items()}, path)
    index = json.loads((run / "statistics/index.json").read_text())
    del index["checksum"]
    index["sha256"]["statistics/layer_0.safetensors"] = sha256(path)
    (run / "statistics/index.json").write_text(add_checksum(index))


@pytest.mark.parametrize(
    "dtype",
    [np.int8, pytest.param(np.float32, marks=pytest.mark.long), pytest.param(np.uint64, marks=pytest.mark.long)],
)
def test_a_crafted_run_folder_is_refused_in_one_sentence(dtype: Any, tmp_path: Path) -> None:
    """In another process: numbers of one byte where LAPACK expects eight would corrupt this one's memory."""
    rows = np.random.default_rng(0).normal(size=(200, 64))
    run = tmp_path / "run"
    scan(vectors=rows, measures="mean_cosine", sample=50, keep="all", output=run)
    _with_arrays(run, scatter=np.ones((64, 64), dtype))
    for path in ("report.html", "tables/coordinates.parquet"):
        (run / path).unlink()
    index = json.loads((run / "statistics/index.json").read_text())
    del index["checksum"], index["sha256"]["tables/coordinates.parquet"]
    (run / "statistics/index.json").write_text(add_checksum(index))
    done = subprocess.run(
        [sys.executable, "-m", "isotrope", "report", "run"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "the saved array 'scatter' is" in done.stderr
    assert "expected float64 of shape (64, 64)" in done.stderr
    assert done.stderr.count("\n") == 1
    with pytest.raises(StoreError, match=r"layer_0\.safetensors' cannot be used"):
        saved_moments(run)
    with pytest.raises(StoreError, match="scatter"):
        write_report(run)


def test_a_format_of_the_future(tmp_path: Path) -> None:
    scan(vectors=np.random.default_rng(0).normal(size=(50, 3)), measures="mean_cosine", output=tmp_path / "run")
    path = tmp_path / "run/statistics/index.json"
    index = json.loads(path.read_text())
    del index["checksum"]
    path.write_text(add_checksum(index | {"format": 3}))
    with pytest.raises(StoreError, match="has format 3, this isotrope reads up to 2; update isotrope"):
        saved_moments(tmp_path / "run")
