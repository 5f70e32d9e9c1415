"""What a report works out from a run's statistics, against the rows themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isotrope.measures import get
from isotrope.repairs import SoftDecay, Whitening
from isotrope.report.projections import Directions, project_on_planes
from isotrope.report.tables import TABLES, add_tables, compute_coordinates, compute_uniformities
from isotrope.runs.run import Run
from isotrope.runs.saved_statistics import SavedStatistics
from isotrope.sources.batch import Rows
from isotrope.statistics import Moments, prepare_rows

ROWS = np.random.default_rng(2).normal(size=(400, 30)) * np.arange(1, 31) ** -0.5 + 0.4


def _plane(rows: np.ndarray) -> np.ndarray:
    """The first two principal component scores, by the decomposition of the centred rows."""
    centred = rows - rows.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    return u[:, :2] * s[:2]


@pytest.mark.parametrize("width", [30, 3, 1])
def test_planes_are_those_of_widest_spread(width: int) -> None:
    rows = ROWS[:, :width]
    found = Directions.of(Moments.of(prepare_rows(rows)))
    drawn = project_on_planes(found, rows)
    repaired = SoftDecay().fit(rows).transform(rows)
    for way, image in (("none", rows), ("softdecay", repaired)):
        expected = _plane(image)
        assert np.abs(drawn[way][:, : expected.shape[1]]) == pytest.approx(np.abs(expected), abs=1e-4)
    whitened = Whitening().fit(rows).transform(rows)[:, :2]
    assert np.abs(drawn["whitening"][:, : whitened.shape[1]]) == pytest.approx(np.abs(whitened), abs=1e-4)


def test_uniformity_of_sequences_is_the_mean_over_pairs() -> None:
    known = Rows(np.repeat(np.arange(3, dtype=np.uint64), [5, 1, 4]), position=np.arange(10))
    found = compute_uniformities(ROWS[:10], known)
    units = ROWS[:10] / np.linalg.norm(ROWS[:10], axis=1, keepdims=True)
    for part, value in zip((units[:5], units[6:]), found["uniformity"], strict=True):
        cosines = part @ part.T
        assert value == pytest.approx(cosines[np.triu_indices(len(part), 1)].mean())
    assert found["length"].tolist() == [5, 4]


def test_their_mean_is_the_measure(tokens: Path) -> None:
    findings = Run(tokens).findings()
    table = pd.read_parquet(tokens / "tables" / "sequences.parquet").query("layer == '2'")
    value = findings.get("sequence_uniformity", 2).value
    assert table["uniformity"].mean() == pytest.approx(
        value, abs=0.01
    )  # one sequence, which a cut might shorten, is left out


def test_shares_of_coordinates() -> None:
    found = compute_coordinates(Moments.of(prepare_rows(ROWS)))
    assert found["norm_share"] == pytest.approx((ROWS**2).sum(axis=0) / (ROWS**2).sum())
    common = (ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)).mean(axis=0) ** 2
    assert found["cosine_share"] == pytest.approx(common / common.sum())
    assert found["cosine_share"].max() == pytest.approx(get("outlier_dimension_share")(ROWS))


def test_groups_are_added_up(tmp_path: Path) -> None:
    import isotrope

    frame = pd.DataFrame({"v": list(ROWS), "kind": np.where(np.arange(400) < 150, "a", "b")})
    frame.to_parquet(tmp_path / "rows.parquet")
    isotrope.scan(vectors=tmp_path / "rows.parquet", column="v", group_by="kind", output=tmp_path / "run")
    kept = SavedStatistics.of_run(Run(tmp_path / "run")).load_sample(0, rows=100)
    assert kept.moments.mean == pytest.approx(ROWS.mean(axis=0))
    assert kept.sample is not None
    assert kept.sample.n == 100


@pytest.mark.parametrize("keep", ["summary", "all"])
def test_statistics_in_memory_and_in_the_folder_give_the_same_tables(keep: str, tmp_path: Path) -> None:
    """A scan computes them from memory, a later report from the run folder; groups are added up in both."""
    import isotrope

    frame = pd.DataFrame({"v": list(ROWS), "kind": np.where(np.arange(400) < 150, "a", "b")})
    frame.to_parquet(tmp_path / "rows.parquet")
    options = {"vectors": tmp_path / "rows.parquet", "column": "v", "group_by": "kind", "keep": keep}
    scanned = isotrope.scan(**options, output=tmp_path / "run")
    run = Run(tmp_path / "run")
    found = run.findings()
    del found.tables["coordinates"]
    add_tables(run, found, lambda *_: None)
    assert {"coordinates", "maps", "sample", "tried"} <= scanned.tables.keys()
    for name in scanned.tables.keys() & set(TABLES):
        pd.testing.assert_frame_equal(found.tables[name], scanned.tables[name], rtol=1e-12)


def test_tsne_keeps_directions_apart_however_repaired(clustered: Path) -> None:
    maps = pd.read_parquet(clustered / "tables" / "maps.parquet").query("map == 'tsne'")
    assert set(maps["repair"]) == {"none", "softdecay", "whitening"}
    sequence = pd.read_parquet(clustered / "tables" / "sample.parquet")["sequence"].to_numpy()
    for way, points in maps.groupby("repair"):
        at = points.sort_values("row")[["x", "y"]].to_numpy()
        distances = np.linalg.norm(at[:, None] - at[None], axis=2) + np.where(np.eye(len(at)), np.inf, 0.0)
        nearest = distances.argsort(axis=1)[:, :5]
        assert (sequence[nearest] % 3 == sequence[:, None] % 3).mean() > 0.97, way
