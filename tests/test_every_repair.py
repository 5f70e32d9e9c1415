"""What holds of every registered repair: conventions, one map from any input, saving, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from safetensors.numpy import save_file
from scipy.stats import ortho_group
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import isotrope
from isotrope.errors import InputError, IsotropeError, StoreError
from isotrope.repairs import REPAIRS, AllButTheTop, Centering, Repair, SoftDecay, Whitening, load_repair
from isotrope.repairs.linear import LinearRepair
from isotrope.sources.input import Input
from isotrope.sources.vectors.source import ArraySource
from isotrope.statistics import Moments, Sample, prepare_rows
from testkit.models import save_model, texts

Values = np.ndarray

#: What suits few and narrow rows better than the defaults.
SMALL = {"clusters": {"clusters": 4, "directions": 1}, "flow": {"steps": 2, "hidden": 8, "epochs": 2}}

EVERY = [kind(**SMALL.get(kind.name, {})) for kind in REPAIRS]
LINEAR = [r for r in EVERY if isinstance(r, LinearRepair)] + [
    SoftDecay(-0.2, "clipped"),
    SoftDecay(-0.9, "shifted", reference_rows=100, tolerance=1e-3),
    SoftDecay(normalize=True),
    Whitening(3, 0.5),
    Whitening(4, form="zca"),
    Whitening(form="zca", strength=0.3),
    AllButTheTop(0),
    AllButTheTop(2),
    Centering(scaled=True),
]
every_repair = pytest.mark.parametrize("repair", EVERY, ids=lambda r: r.name)
every_linear = pytest.mark.parametrize("repair", LINEAR, ids=repr)


def rows(n: int = 150, d: int = 6) -> Values:
    """Rows with a mean, a spread of its own in each direction, and no two directions alike."""
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, d)) * np.geomspace(4, 0.2, d) @ ortho_group.rvs(d, random_state=2) + 1.5


def test_names_on_the_command_line() -> None:
    assert {"softdecay", "whitening", "all-but-the-top", "centering"} <= set(REPAIRS.names())
    with pytest.raises(InputError, match="did you mean 'whitening'"):
        REPAIRS.get("whitning")
    for name in ("SoftDecay", "Whitening", "AllButTheTop", "Centering", "Affine", "load_repair"):
        assert getattr(isotrope, name) is getattr(isotrope.repairs, name)


# scikit-learn's conventions


#: The checks use rows with as few as two columns.
NARROW = [r.set_params(n_components=1) if r.get_params().get("n_components") else r for r in map(clone, LINEAR)]
NARROW = [r for r in NARROW if r.get_params().get("n_directions") != 2]


@pytest.mark.parametrize("repair", [*(r for r in EVERY if r not in LINEAR), *NARROW], ids=repr)
def test_scikit_learns_own_checks_pass(repair: Repair) -> None:
    """All that apply; only array API input, which needs an environment variable, is passed over."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has the protocol of BaseEstimator and not the class
        found = check_estimator(repair, on_fail=None, on_skip=None)
    assert len(found) > 40
    failed = {c["check_name"]: str(c["exception"]) for c in found if c["status"] != "passed"}
    failed.pop("check_array_api_input", None)
    assert failed == {}


@every_linear
def test_clone_and_parameters(repair: Repair) -> None:
    again = clone(repair)
    assert repr(again) == repr(repair)
    assert again.get_params() == repair.get_params()
    with pytest.raises(InputError, match="has no parameter 'colour'"):
        again.set_params(colour=1)


@every_linear
def test_in_a_pipeline_with_tables_in_and_out(repair: Repair) -> None:
    table = pd.DataFrame(rows(), columns=list("abcdef"), index=np.arange(150) + 7)
    line = make_pipeline(StandardScaler(), clone(repair)).set_output(transform="pandas")
    out = line.fit_transform(table)
    assert out.index.tolist() == table.index.tolist()
    stem = type(repair).__name__.lower()
    assert list(out.columns) == [f"{stem}{i}" for i in range(out.shape[1])]
    plain = make_pipeline(StandardScaler(), clone(repair)).fit_transform(rows())
    assert_allclose(out.to_numpy(), plain, rtol=0, atol=1e-9)


@every_linear
def test_columns_that_changed_places_are_refused(repair: Repair) -> None:
    table = pd.DataFrame(rows(), columns=list("abcdef"))
    fitted = clone(repair).fit(table)
    assert fitted.feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(InputError, match="got 'b' as column 0"):
        fitted.transform(table[list("bacdef")])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fitted.transform(rows())


def test_without_scikit_learn_and_without_torch(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None; sys.modules['torch'] = None\n"
        "import numpy as np, isotrope\n"
        "from isotrope.repairs import REPAIRS, load_repair\n"
        "x = np.random.default_rng(0).normal(size=(50, 4)) * [4, 3, 2, 1] + 1\n"
        "for name in ('softdecay', 'whitening', 'all-but-the-top', 'centering'):\n"
        "    r = REPAIRS.get(name)().fit(x)\n"
        f"    r.save({str(tmp_path)!r} + '/' + name)\n"
        f"    assert (load_repair({str(tmp_path)!r} + '/' + name).transform(x) == r.transform(x)).all()\n"
        "try: isotrope.Whitening().transform(x)\n"
        "except isotrope.IsotropeError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("this Whitening is not fitted yet"), done.stderr


# One map, whatever it is fitted on


def _file(write: Callable[[Path, Values], Any], name: str) -> Callable[[Values, Path], Any]:
    def made(x: Values, folder: Path) -> Path:
        write(folder / name, x)
        return folder / name

    return made


def _write_hdf5(path: Path, x: Values) -> None:
    with h5py.File(path, "w") as file:
        file["x"] = x


INPUTS: dict[str, Callable[[Values, Path], Any]] = {
    "list": lambda x, _: x.tolist(),
    "torch": lambda x, _: torch.from_numpy(x),
    "columns first": lambda x, _: np.asfortranarray(x),
    "npy": _file(np.save, "x.npy"),
    "npy named by a string": lambda x, folder: str(_file(np.save, "x.npy")(x, folder)),
    "safetensors": _file(lambda p, x: save_file({"x": x}, p), "x.safetensors"),
    "npz": _file(lambda p, x: np.savez(p, x=x), "x.npz"),
    "parquet": _file(lambda p, x: pd.DataFrame({"x": list(x)}).to_parquet(p), "x.parquet"),
    "arrow": _file(lambda p, x: pd.DataFrame({"x": list(x)}).to_feather(p), "x.arrow"),
    "HDF5": _file(_write_hdf5, "x.h5"),
    "folder": lambda x, folder: _file(np.save, "x.npy")(x, folder).parent,
    "several files": lambda x, folder: [_file(np.save, f"{i}.npy")(p, folder) for i, p in enumerate((x[:40], x[40:]))],
    "source": lambda x, _: ArraySource(x, batch_rows=13),
}


@every_linear
@pytest.mark.parametrize("kind", INPUTS)
def test_any_input_gives_the_same_map(repair: Repair, kind: str, tmp_path: Path) -> None:
    fitted = clone(repair).fit(INPUTS[kind](rows(), tmp_path))
    assert_allclose(fitted.transform(rows()), clone(repair).fit(rows()).transform(rows()), rtol=0, atol=1e-9)


@pytest.mark.parametrize("repair", [r for r in EVERY if r not in LINEAR], ids=repr)
@pytest.mark.parametrize("kind", INPUTS)
def test_repairs_of_rows_take_any_input(repair: Repair, kind: str, tmp_path: Path) -> None:
    given = INPUTS[kind](rows(), tmp_path)
    fitted = clone(repair).fit(given)
    expected = rows()
    if fitted.fitted_on_["sources"]:  # of files and sources a sample is taken, here of all rows, in its own order
        names = [given] if isinstance(given, (str, Path)) else given
        source = given if isinstance(given, ArraySource) else ArraySource(names)
        sample = Sample.empty(6, 1000, repair.seed)
        for batch in source.batches():
            sample.add(prepare_rows(next(iter(batch.layers.values())), batch.rows))
        expected = sample.values
    assert len(expected) == 150
    assert_allclose(fitted.transform(rows()), clone(repair).fit(expected).transform(rows()), rtol=0, atol=1e-6)


@every_repair
def test_pooled_and_token_rows_of_a_model(repair: Repair, tmp_path: Path) -> None:
    model = str(save_model(tmp_path / "gpt2", "gpt2"))  # no layer norm at its blocks' ends: full rank
    for pooling in (None, "mean"):
        source = Input(model=model, text=texts(80), layers=[2], pooling=pooling, in_order=True).open()
        given = np.concatenate([np.asarray(batch.layers[2]) for batch in source.batches()])
        fitted = clone(repair).fit(source)
        assert fitted.fitted_on_["rows"] == len(given)
        assert fitted.fitted_on_["sources"][0]["model"] == model
        if isinstance(repair, LinearRepair):
            expected = clone(repair).fit(given).transform(given)
            assert_allclose(fitted.transform(given), expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


@every_linear
def test_moments_and_streams_in_any_order_give_the_same_map(repair: LinearRepair) -> None:
    x = rows()
    expected = clone(repair).fit(x).transform(x)
    order = np.random.default_rng(0).permutation(len(x))
    assert_allclose(clone(repair).fit(x[order]).transform(x), expected, rtol=0, atol=1e-9)
    for cuts in ([1, 2, 3], [70], [149]):
        stream = clone(repair)
        for part in reversed(np.split(x, cuts)):
            stream.partial_fit(part)
        assert_allclose(stream.transform(x), expected, rtol=0, atol=1e-9)
    if not repair.get_params().get("normalize"):
        a, b, c = (Moments.of(prepare_rows(part)) for part in (x[:9], x[9:80], x[80:]))
        for moments in ((a + b) + c, c + (b + a)):
            assert_allclose(clone(repair).fit(moments).transform(x), expected, rtol=0, atol=1e-9)
            assert_allclose(clone(repair).fit_moments(moments).transform(x), expected, rtol=0, atol=1e-9)


@every_linear
def test_the_map_turns_with_the_rows(repair: LinearRepair) -> None:
    x, turn = rows(), ortho_group.rvs(6, random_state=5)
    before = clone(repair).fit_transform(x)
    after = clone(repair).fit_transform(x @ turn)
    if isinstance(repair, Whitening) and repair.form == "pca":  # its columns are the directions, of either sign
        assert_allclose(after * np.sign((after * before).sum(axis=0)), before, rtol=0, atol=1e-9)
    else:
        assert_allclose(after, before @ turn, rtol=0, atol=1e-9)


@every_linear
def test_moments_so_far_are_not_the_callers(repair: LinearRepair) -> None:
    if repair.get_params().get("normalize"):
        return
    moments = Moments.of(prepare_rows(rows()))
    before = moments.arrays()
    clone(repair).fit(moments).partial_fit(rows())
    clone(repair).partial_fit(moments).partial_fit(rows())
    for name, array in moments.arrays().items():
        assert_array_equal(array, before[name])


@every_linear
def test_what_the_map_does_follows_from_the_moments(repair: LinearRepair) -> None:
    if repair.get_params().get("normalize") or repair.get_params().get("scaled"):
        return
    fitted = clone(repair).fit(rows())
    pushed, direct = fitted.affine_.push(fitted.moments_), Moments.of(prepare_rows(fitted.transform(rows())))
    assert_allclose(pushed.scatter, direct.scatter, rtol=0, atol=1e-8)
    assert_allclose(pushed.mean, direct.mean, rtol=0, atol=1e-9)
    assert len(fitted.gains_) == len(fitted.spectrum_) == 6 or fitted.get_params().get("tolerance")
    assert (np.diff(fitted.spectrum_) < 0).all()


@every_repair
def test_rows_are_left_alone_and_keep_their_type(repair: Repair) -> None:
    x = rows().astype(np.float32)
    before = x.copy()
    fitted = clone(repair).fit(x)
    out = fitted.transform(x)
    assert out.dtype == np.float32
    assert_array_equal(x, before)
    assert_allclose(out, fitted.transform(x.astype(np.float64)), rtol=0, atol=1e-4)
    tensor = fitted.transform(torch.from_numpy(x))
    assert tensor.dtype == torch.float32
    assert_allclose(tensor.numpy(), out, rtol=0, atol=1e-4)
    one = fitted.transform(x[3:4])
    assert_allclose(one, out[3:4], rtol=0, atol=1e-4)


INVERTIBLE = [r for r in LINEAR if not (isinstance(r, AllButTheTop) and r.n_directions != 0)]
INVERTIBLE = [r for r in INVERTIBLE if not r.get_params().get("n_components") and not r.get_params().get("normalize")]


@pytest.mark.parametrize("repair", INVERTIBLE, ids=repr)
def test_what_is_invertible_comes_back(repair: Repair) -> None:
    fitted = clone(repair).fit(rows())
    new = rows(40)
    assert_allclose(fitted.inverse_transform(fitted.transform(new)), new, rtol=0, atol=1e-6)


@pytest.mark.parametrize("repair", [r for r in LINEAR if r not in INVERTIBLE], ids=repr)
def test_what_was_lost_does_not_come_back(repair: Repair) -> None:
    fitted = clone(repair).fit(rows())
    with pytest.raises(InputError, match=r"cannot (come|be brought) back"):
        fitted.inverse_transform(fitted.transform(rows()))


# Saving


@every_linear
def test_saved_and_loaded_it_is_the_same_estimator(repair: LinearRepair, tmp_path: Path) -> None:
    fitted = clone(repair).fit(rows())
    fitted.save(tmp_path / "saved")
    again = load_repair(tmp_path / "saved")
    assert type(again) is type(fitted)
    assert again.get_params() == fitted.get_params()
    assert_array_equal(again.transform(rows(40)), fitted.transform(rows(40)))
    assert_array_equal(again.gains_, fitted.gains_)
    assert again.fitted_on_ == fitted.fitted_on_
    more = [r.partial_fit(rows(40)).transform(rows(40)) for r in (again, fitted)]
    assert_array_equal(*more)
    assert sorted(p.name for p in (tmp_path / "saved").iterdir()) == ["config.json", "repair.safetensors"]
    assert [p.name for p in tmp_path.iterdir()] == ["saved"]


@every_repair
def test_what_it_was_fitted_on_is_written_down(repair: Repair, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", rows())
    clone(repair).fit(tmp_path / "x.npy").save(tmp_path / "saved")
    config = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert (config["format"], config["repair"], config["width"]) == (1, repair.name, 6)
    assert config["fitted_on"]["rows"] == 150
    assert config["fitted_on"]["sources"][0]["files"][0]["path"] == str(tmp_path / "x.npy")
    assert config["isotrope"] == isotrope.__version__
    assert config["saved"].endswith("+00:00")


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@every_repair
def test_nothing_is_written_over_unless_asked(repair: Repair, tmp_path: Path) -> None:
    fitted = clone(repair).fit(rows())
    fitted.save(tmp_path / "saved")
    before = _contents(tmp_path / "saved")
    other = clone(repair).fit(rows(40))
    with pytest.raises(StoreError, match="already holds a repair"):
        other.save(tmp_path / "saved")
    assert _contents(tmp_path / "saved") == before
    other.save(tmp_path / "saved", overwrite=True)
    assert_array_equal(load_repair(tmp_path / "saved").transform(rows()), other.transform(rows()))
    (tmp_path / "saved" / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match="holds other files"):
        other.save(tmp_path / "saved", overwrite=True)
    assert (tmp_path / "saved" / "notes.txt").read_text() == "mine"


def test_a_save_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = Whitening().fit(rows())
    fitted.save(tmp_path / "saved")
    before = _contents(tmp_path / "saved")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("isotrope.repairs.persistence.write_text", full)
    for name in ("saved", "new"):
        with pytest.raises(StoreError, match="the disk is full"):
            fitted.save(tmp_path / name, overwrite=True)
    assert _contents(tmp_path / "saved") == before
    assert [p.name for p in tmp_path.iterdir()] == ["saved"]


def _edit_config(change: Callable[[dict], Any]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        change(config)
        (folder / "config.json").write_text(json.dumps(config))

    return edit


def _cut(name: str, share: float) -> Callable[[Path], None]:
    def cut(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: int(len(data) * share)])

    return cut


def _flip(folder: Path) -> None:
    data = bytearray((folder / "repair.safetensors").read_bytes())
    data[-5] ^= 1
    (folder / "repair.safetensors").write_bytes(data)


DAMAGE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "arrays cut short": (_cut("repair.safetensors", 0.7), "cut short or edited"),
    "arrays empty": (_cut("repair.safetensors", 0.0), "cut short or edited"),
    "arrays gone": (lambda f: (f / "repair.safetensors").unlink(), "cut short or edited"),
    "one bit of a number": (_flip, "cut short or edited"),
    "config cut short": (_cut("config.json", 0.5), "cut short or edited"),
    "config empty": (_cut("config.json", 0.0), "cut short or edited"),
    "config a list": (lambda f: (f / "config.json").write_text("[]"), "cut short or edited"),
    "parameters edited": (_edit_config(lambda c: c["parameters"].update(extra=1)), "cut short or edited"),
    "width edited": (_edit_config(lambda c: c.update(width=7)), "cut short or edited"),
    "checksum gone": (_edit_config(lambda c: c.pop("checksum")), "cut short or edited"),
    "config gone": (lambda f: (f / "config.json").unlink(), "there is no saved repair"),
    "newer format": (_edit_config(lambda c: c.update(format=99)), "has format 99, this isotrope reads up to 1"),
}


@every_repair
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_saved_repair_that_changed_is_refused(repair: Repair, damage: str, tmp_path: Path) -> None:
    clone(repair).fit(rows()).save(tmp_path / "saved")
    change, says = DAMAGE[damage]
    change(tmp_path / "saved")
    with pytest.raises(StoreError, match=says):
        load_repair(tmp_path / "saved")


def test_loading_for_other_rows_is_refused_or_warned_of(tmp_path: Path) -> None:
    moments = Moments.of(prepare_rows(rows()))
    Whitening().fit_moments(moments, [{"kind": "model", "model": "this"}]).save(tmp_path / "saved")
    with pytest.raises(InputError, match="for rows of width 6, got rows of width 5"):
        load_repair(tmp_path / "saved", width=5)
    with pytest.warns(UserWarning, match="fitted on rows of this, not of that"):
        load_repair(tmp_path / "saved", width=6, model="that")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_repair(tmp_path / "saved", width=6, model="this")
    with pytest.raises(StoreError, match="there is no saved repair"):
        load_repair(tmp_path / "nothing")


# What is refused


@every_repair
def test_an_unfitted_repair_says_so_and_writes_nothing(repair: Repair, tmp_path: Path) -> None:
    new = clone(repair)
    calls = (
        new.transform,
        new.inverse_transform,
        lambda _: new.save(tmp_path / "x"),
        lambda _: new.get_feature_names_out(),
    )
    for call in calls:
        with pytest.raises(IsotropeError, match="is not fitted yet; call fit"):
            call(rows())
    assert not hasattr(new, "n_features_in_")
    assert list(tmp_path.iterdir()) == []


def _nan() -> Values:
    x = rows()
    x[5, 1], x[9, 0] = np.nan, np.inf
    return x


BAD: dict[str, tuple[Any, str]] = {
    "NaN and infinity": (_nan(), "2 of 150 rows hold NaN or inf"),
    "one row": (rows()[:1], "got one row"),
    "no rows": (np.empty((0, 4)), "got no row"),
    "constant": (np.full((50, 4), 3.3), "rows are the same"),
    "constant float32": (np.full((50, 4), 0.1, np.float32), "rows are the same"),
    "one dimension": (np.ones(5), "expected rows of shape"),
    "three dimensions": (np.ones((5, 4, 3)), "expected rows of shape"),
    "no columns": (np.ones((5, 0)), "0 feature"),
    "words": (np.array([["a", "b"]]), "expected numbers"),
    "no such file": ("nowhere.npy", "there is no file"),
}


@every_linear
@pytest.mark.parametrize("kind", BAD)
def test_bad_rows_are_refused_and_change_nothing(repair: LinearRepair, kind: str) -> None:
    bad, says = BAD[kind]
    with pytest.raises(InputError, match=says):
        clone(repair).fit(bad)
    fitted = clone(repair).fit(rows())
    before = fitted.transform(rows())
    with pytest.raises(InputError, match=says):
        fitted.fit(bad)
    assert_array_equal(fitted.transform(rows()), before)
    assert fitted.moments_.n == 150


@every_linear
def test_a_stream_refuses_what_does_not_belong(repair: LinearRepair) -> None:
    stream = clone(repair).partial_fit(rows())
    before = stream.transform(rows())
    for bad, says in ((_nan(), "2 of 150 rows"), (rows(20, 5), "X has 5 features, but")):
        with pytest.raises(InputError, match=says):
            stream.partial_fit(bad)
        assert_array_equal(stream.transform(rows()), before)
    single = clone(repair).partial_fit(rows()[:1])
    with pytest.raises(InputError, match="got one row"):
        single.transform(rows())
    assert single.partial_fit(rows()[1:]).transform(rows()).shape == before.shape


@every_repair
def test_rows_of_another_width_or_without_numbers_are_not_transformed(repair: Repair) -> None:
    fitted = clone(repair).fit(rows())
    with pytest.raises(InputError, match=r"X has 5 features, but .* is expecting 6"):
        fitted.transform(rows(20, 5))
    for bad in (_nan(), torch.from_numpy(_nan())):
        with pytest.raises(InputError, match="2 of 150 rows hold NaN or inf"):
            fitted.transform(bad)


def test_a_source_of_several_layers_is_no_single_space() -> None:
    class Two(ArraySource):
        def __init__(self) -> None:
            super().__init__(rows())
            self.layers = [0, 1]

    with pytest.raises(InputError, match="has 2 layers, expected one"):
        Centering().fit(Two())


@every_linear
def test_rows_of_zeros_have_no_direction_and_are_left_out(repair: LinearRepair) -> None:
    with_zeros = clone(repair).fit(np.vstack([np.zeros((20, 6)), rows()]))
    assert_allclose(with_zeros.transform(rows()), clone(repair).fit(rows()).transform(rows()), rtol=0, atol=1e-9)
    assert with_zeros.fitted_on_["zero_rows"] == 20
