"""Cluster-based isotropy against scikit-learn's k-means and PCA, one cluster at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.repairs import load_repair
from isotrope.repairs.clusters import ClusterIsotropy
from isotrope.sources.batch import Rows
from isotrope.sources.vectors.source import ArraySource
from isotrope.statistics import Sample, prepare_rows

sklearn = pytest.importorskip("sklearn")


def blobs(n: int, d: int, k: int, seed: int = 0, apart: float = 6.0) -> Any:
    """Rows around k centres, each blob with directions of its own."""
    rng = np.random.default_rng(seed)
    centres, of = apart * rng.normal(size=(k, d)), rng.integers(0, k, n)
    shapes = rng.normal(size=(k, d, d)) * np.geomspace(1.0, 0.1, d)[:, None] / np.sqrt(d)
    return centres[of] + np.einsum("ni,nij->nj", rng.normal(size=(n, d)), shapes[of])


def nearest(rows: Any, centroids: Any) -> Any:
    return np.linalg.norm(rows[:, None] - centroids, axis=2).argmin(axis=1)


def by_hand(rows: Any, labels: Any, directions: int) -> Any:
    """Each cluster less its mean and its first principal components."""
    from sklearn.decomposition import PCA

    out = np.empty_like(rows)
    for k in np.unique(labels):
        members = rows[labels == k]
        parts = PCA(directions, svd_solver="full").fit(members)
        offsets = members - members.mean(axis=0)
        out[labels == k] = offsets - sum(np.outer(offsets @ c, c) for c in parts.components_)
    return out


@pytest.mark.parametrize(("n", "d", "k", "directions"), [(900, 12, 5, 3), (600, 40, 4, 12), (300, 3, 27, 1)])
def test_each_cluster_loses_its_mean_and_principal_components(n: int, d: int, k: int, directions: int) -> None:
    rows = blobs(n, d, k)
    fitted = ClusterIsotropy(k, directions).fit(rows)
    labels = nearest(rows, fitted.map_.centroids)
    assert np.bincount(labels).tolist() == fitted.map_.counts.tolist()
    np.testing.assert_allclose(fitted.transform(rows), by_hand(rows, labels, directions), rtol=0, atol=1e-9)


def test_clusters_are_those_of_scikit_learn() -> None:
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score

    rows = blobs(1500, 16, 27)
    for seed in range(3):
        found = nearest(rows, ClusterIsotropy(seed=seed).fit(rows).map_.centroids)
        assert adjusted_rand_score(found, KMeans(27, n_init=10, random_state=seed).fit(rows).labels_) == 1.0


def test_clusters_are_as_tight_as_those_of_scikit_learn_where_none_stand_apart() -> None:
    from sklearn.cluster import KMeans

    rows = np.random.default_rng(1).normal(size=(2000, 16))
    ours, theirs = [], []
    for seed in range(4):
        centroids = ClusterIsotropy(20, 3, seed=seed).fit(rows).map_.centroids
        ours.append(np.square(rows - centroids[nearest(rows, centroids)]).sum())
        theirs.append(KMeans(20, n_init=1, random_state=seed).fit(rows).inertia_)
    assert np.mean(ours) < 1.01 * np.mean(theirs)


def test_new_rows_belong_to_the_nearest_centroid() -> None:
    rows, new = blobs(800, 10, 6), blobs(50, 10, 6, seed=9)
    fitted = ClusterIsotropy(6, 2).fit(rows)
    labels = nearest(rows, fitted.map_.centroids)
    for row, image in zip(new, fitted.transform(new), strict=True):
        members = rows[labels == nearest(row[None], fitted.map_.centroids)[0]]
        offsets = members - members.mean(axis=0)
        kept = np.linalg.svd(offsets)[2][2:]
        np.testing.assert_allclose(image, (row - members.mean(axis=0)) @ kept.T @ kept, rtol=0, atol=1e-9)


def test_a_row_is_repaired_alike_alone_and_among_others() -> None:
    rows = blobs(20_000, 4, 5)
    fitted = ClusterIsotropy(5, 1).fit(rows[:2000])
    np.testing.assert_array_equal(fitted.transform(rows)[-3:], fitted.transform(rows[-3:]))
    assert fitted.transform(rows[:0]).shape == (0, 4)


def test_tiny_clusters_lose_no_more_than_their_rank() -> None:
    rng = np.random.default_rng(0)
    few = 100.0 + rng.normal(size=(3, 8))
    rows = np.concatenate([rng.normal(size=(200, 8)), few])
    with pytest.warns(UserWarning, match="1 of 2 clusters have no more than 6 rows or 5 columns"):
        fitted = ClusterIsotropy(2, 5).fit(rows)
    assert not fitted.transform(few).any()  # exactly: what rounding leaves would have a direction
    new = few[:1] + np.eye(8)
    centred = few - few.mean(axis=0)
    outside = np.linalg.svd(centred)[2][2:]  # three rows about their mean have rank two
    by_hand = (new - few.mean(axis=0)) @ outside.T @ outside
    np.testing.assert_allclose(fitted.transform(new), by_hand, rtol=0, atol=1e-9)


@pytest.mark.parametrize("shape", [(200, 3), (20, 40), (40, 12)])
def test_where_nothing_can_be_left_it_says_so(shape: tuple[int, int]) -> None:
    rows = np.random.default_rng(0).normal(size=shape)
    with pytest.warns(UserWarning, match="makes their rows zero; give more rows, fewer clusters or fewer directions"):
        fitted = ClusterIsotropy().fit(rows)
    assert not fitted.transform(rows).any()
    assert np.isfinite(fitted.transform(rows + 1.0)).all()


def test_a_cluster_of_one_row_repeated_loses_only_its_mean() -> None:
    rng = np.random.default_rng(0)
    row = 50.0 + rng.normal(size=(1, 6))
    rows = np.concatenate([rng.normal(size=(100, 6)), np.repeat(row, 40, axis=0)])
    fitted = ClusterIsotropy(2, 3).fit(rows)
    np.testing.assert_allclose(fitted.transform(row + 1.0), np.ones((1, 6)), rtol=0, atol=1e-9)


def test_fewer_rows_that_differ_than_clusters_are_that_many_clusters() -> None:
    rng = np.random.default_rng(0)
    rows = np.repeat(10.0 * rng.normal(size=(4, 5)), 30, axis=0)
    fitted = ClusterIsotropy(27, 2).fit(rows)
    assert sorted(fitted.map_.counts) == [30, 30, 30, 30]
    assert not fitted.transform(rows).any()


def test_a_common_mean_far_beyond_the_spread_costs_nothing() -> None:
    rows = blobs(500, 8, 4)
    near = ClusterIsotropy(4, 2).fit(rows).transform(rows)
    far = ClusterIsotropy(4, 2).fit(rows + 2.0**20).transform(rows + 2.0**20)
    np.testing.assert_allclose(far, near, rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_float_types_and_tensors_stay_what_they_are(dtype: Any) -> None:
    torch = pytest.importorskip("torch")
    rows = blobs(300, 6, 3, apart=2.0).astype(dtype)
    fitted = ClusterIsotropy(3, 1).fit(rows)
    image = fitted.transform(rows)
    assert image.dtype == dtype
    tensor = fitted.transform(torch.from_numpy(rows))
    assert tensor.dtype == torch.from_numpy(rows).dtype
    assert ClusterIsotropy(3, 1).fit(torch.from_numpy(rows).bfloat16()).fitted_on_["rows"] == 300
    np.testing.assert_allclose(tensor.numpy(), image, rtol=1e-3 if dtype == np.float16 else 1e-6, atol=1e-6)


def test_the_sample_of_a_stream_is_as_good_as_its_rows() -> None:
    rows = blobs(400, 6, 3)
    sample = Sample.empty(6, size=150, seed=3)
    for start in range(0, 400, 100):
        sample.add(prepare_rows(rows[start : start + 100], Rows(np.arange(start, start + 100, dtype=np.uint64))))
    fitted = ClusterIsotropy(3, 1).fit(sample)
    np.testing.assert_array_equal(fitted.transform(rows), ClusterIsotropy(3, 1).fit(sample.values).transform(rows))
    assert fitted.fitted_on_["rows"] == 150


def test_files_and_sources_are_fitted_on_a_sample_of_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = blobs(400, 6, 3)
    np.save(tmp_path / "rows.npy", rows)
    whole = ClusterIsotropy(3, 1).fit(tmp_path / "rows.npy")
    assert whole.fitted_on_["rows"] == 400
    np.testing.assert_allclose(whole.transform(rows), ClusterIsotropy(3, 1).fit(rows).transform(rows), atol=1e-9)
    monkeypatch.setattr("isotrope.repairs.row_repair.SAMPLE", 150)
    some = ClusterIsotropy(3, 1).fit(ArraySource(tmp_path / "rows.npy", batch_rows=37))
    (source,) = some.fitted_on_["sources"]
    assert (some.fitted_on_["rows"], source["sampled"]) == (150, {"size": 150, "seed": 0, "rows": 400})
    rows[7, 2] = np.nan
    with pytest.raises(InputError, match="1 of the rows hold NaN or inf"):
        ClusterIsotropy(3, 1).fit(ArraySource(rows))


def test_rows_of_zeros_are_left_out() -> None:
    rows = blobs(300, 6, 3)
    fitted = ClusterIsotropy(3, 1).fit(np.concatenate([np.zeros((50, 6)), rows]))
    np.testing.assert_array_equal(fitted.transform(rows), ClusterIsotropy(3, 1).fit(rows).transform(rows))
    assert fitted.fitted_on_["zero_rows"] == 50


def test_the_same_seed_gives_the_same_map() -> None:
    rows = np.random.default_rng(5).normal(size=(500, 8))
    first, again, other = (ClusterIsotropy(9, 2, seed=s).fit(rows).transform(rows) for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    rows = blobs(300, 6, 3)
    fitted = ClusterIsotropy(3, 2, seed=4).fit(rows)
    fitted.save(tmp_path / "repair")
    loaded = load_repair(tmp_path / "repair")
    assert repr(loaded) == "ClusterIsotropy(clusters=3, directions=2, seed=4)"
    np.testing.assert_array_equal(loaded.transform(rows), fitted.transform(rows))


@pytest.mark.parametrize("estimator", [ClusterIsotropy(), ClusterIsotropy(2, 1)], ids=repr)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks_pass(estimator: ClusterIsotropy) -> None:
    from sklearn.utils.estimator_checks import check_estimator

    found = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {c["check_name"]: str(c["exception"]) for c in found if c["status"] == "failed"}
    assert len(found) > 40
    assert failed == {}


def test_it_is_an_estimator_of_scikit_learn() -> None:
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = blobs(300, 6, 3)
    copy = clone(ClusterIsotropy(3, 2, seed=4))
    assert copy.get_params() == {"clusters": 3, "directions": 2, "seed": 4}
    image = make_pipeline(StandardScaler(), copy).fit_transform(rows)
    np.testing.assert_array_equal(image, copy.transform(StandardScaler().fit_transform(rows)))


@pytest.mark.parametrize(
    ("options", "rows", "message"),
    [
        ({"clusters": 0}, np.eye(20), "got 0 clusters and 12 directions, expected at least 1 and at least 0"),
        ({"directions": -1}, np.eye(20), "got 27 clusters and -1 directions"),
        ({}, np.ones((40, 20)), "all 40 rows are the same .n_features=20., so there is nothing to repair"),
        ({}, np.ones((1, 20)), "got one row .n_samples=1., expected at least two"),
        ({}, np.full((40, 20), np.nan), "40 of 40 rows hold NaN or inf"),
        ({}, 1e200 * np.eye(40), "got numbers beyond 1e.140, whose squares are no numbers"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_one_sentence(options: Any, rows: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ClusterIsotropy(**options).fit(rows)


def test_there_is_no_inverse() -> None:
    fitted = ClusterIsotropy(2, 1).fit(blobs(100, 4, 2))
    with pytest.raises(InputError, match="has no inverse: the directions that it takes out cannot be brought back"):
        fitted.inverse_transform(np.ones((1, 4)))
