"""What figures draw, held against the rows themselves."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy import stats

from isotrope.drawing.projections import find_plane, project_uncentred
from isotrope.figures import draw
from isotrope.figures.run_data import TokenTypes
from isotrope.figures.token_scatter import select_tokens
from isotrope.readings.selected_measures import resolve_measures
from isotrope.runs.run import Run
from isotrope.scanner import scan_source
from testkit.known_run import KnownRun


def by_type(known: KnownRun, layer: int) -> dict[int, tuple[int, float, float, float]]:
    """n, Q, M and V of each type with ten occurrences or more, straight from the rows."""
    rows, token = known.source.rows[layer], known.source.known.token
    found = {}
    for t in np.unique(token):
        some = rows[token == t]
        mean = some.mean(axis=0)
        if len(some) >= 10:
            found[int(t)] = (len(some), np.mean((some**2).sum(1)), mean @ mean, np.mean(((some - mean) ** 2).sum(1)))
    return found


def points(axes: Axes) -> NDArray[np.float64]:
    return np.asarray(axes.collections[0].get_offsets())


def sequences(known: KnownRun, layer: int) -> list[NDArray[np.float64]]:
    return np.split(known.source.rows[layer], known.source.known.starts()[1:])


def test_norm_variance_shows_every_type_and_its_line(known: KnownRun) -> None:
    expected = np.array([(m, v) for _, _, m, v in by_type(known, 2).values()])
    (axes,) = draw(known.folder, "norm-variance").axes
    assert points(axes) == pytest.approx(expected)
    line = stats.linregress(*expected.T)
    x, y = axes.lines[0].get_data()
    assert y == pytest.approx(line.intercept + line.slope * np.asarray(x))
    slope, r2 = re.findall(r"[−\d.]+", axes.get_title().replace("R²", "R"))
    assert float(slope.replace("−", "-")) == pytest.approx(line.slope, rel=5e-3)
    assert float(r2) == pytest.approx(line.rvalue**2, abs=5e-3)
    assert "layer 2" in axes.get_xlabel()


def test_the_layer_asked_for_is_drawn(known: KnownRun) -> None:
    expected = np.array([(m, v) for _, _, m, v in by_type(known, 0).values()])
    for asked in (0, "0", -4, "-4"):
        (axes,) = draw(known.folder, "norm-variance", layer=asked).axes
        assert points(axes) == pytest.approx(expected)


def test_frequency_shows_every_type(known: KnownRun) -> None:
    n, *columns = np.array(list(by_type(known, 2).values())).T
    for axes, column in zip(draw(known.folder, "frequency").axes, columns, strict=True):
        assert points(axes) == pytest.approx(np.column_stack([np.log10(n), column]))


def test_frequency_layers_shows_logarithms_of_each_layer(known: KnownRun) -> None:
    grid = np.reshape(draw(known.folder, "frequency-layers").axes, (4, 4))
    for layer, row in enumerate(grid):
        n, *columns = np.array(list(by_type(known, layer).values())).T
        for axes, column in zip(row, columns, strict=False):
            assert points(axes) == pytest.approx(np.column_stack([np.log10(n), np.log10(1 + column)]))
        assert points(row[3]) == pytest.approx(np.column_stack(columns[1:]))


def test_norm_histograms_are_shares_of_types(known: KnownRun) -> None:
    panels = draw(known.folder, "norm-histograms").axes[:3]
    for place, axes in enumerate(panels, start=1):
        for layer, outline in enumerate(axes.patches):
            shares, edges, _ = outline.get_data()
            column = np.log10(1 + np.array(list(by_type(known, layer).values())).T[place])
            inside = np.clip(column, edges[0], edges[-1])  # the outermost types are the edges, but for rounding
            assert inside == pytest.approx(column)
            assert shares == pytest.approx(np.histogram(inside, edges)[0] / len(column))
            assert shares.sum() == pytest.approx(1)


def test_sequence_spectra_are_mean_cumulative_shares(known: KnownRun) -> None:
    axes = draw(known.folder, "sequence-spectra").axes[0]
    for layer, line in enumerate(axes.lines):
        x, y = (np.asarray(data) for data in line.get_data())
        normalised = [np.linalg.svd(s, compute_uv=False) for s in sequences(known, layer)]
        expected = np.mean([[(s / s[0] <= at + 1e-9).mean() for at in x] for s in normalised], axis=0)
        assert y == pytest.approx(expected, abs=2e-3)  # a value may lie on a point of the grid but for rounding


def test_spectrum_histograms_are_mean_shares(known: KnownRun) -> None:
    panels = draw(known.folder, "spectrum-histograms").axes
    for layer, axes in zip((0, 2, 3), panels, strict=True):  # the first, the middle one and the last of four
        shares, edges, _ = axes.patches[0].get_data()
        normalised = [np.linalg.svd(s, compute_uv=False) for s in sequences(known, layer)]
        expected = np.mean([np.histogram(s / s[0], edges)[0] / len(s) for s in normalised], axis=0)
        assert shares == pytest.approx(expected, abs=3e-3)
        skewness = np.mean([stats.skew(s / s[0]) for s in normalised])
        assert f"skewness {skewness:.2f}".replace("-", "−") in axes.texts[0].get_text()


def test_spectra_are_those_of_all_rows(known: KnownRun) -> None:
    for layer, line in enumerate(draw(known.folder, "spectra").axes[0].lines):
        singular = np.linalg.svd(known.source.rows[layer], compute_uv=False)
        assert np.asarray(line.get_xdata())[1:] == pytest.approx(np.sort(singular) / singular[0], rel=1e-6)
        assert np.asarray(line.get_ydata()) == pytest.approx(np.arange(7) / 6)


def test_softdecay_bends_the_singular_values_by_its_formula(known: KnownRun) -> None:
    after = draw(known.folder, "softdecay-spectra").axes[1]
    for layer, line in enumerate(after.lines):
        singular = np.sort(np.linalg.svd(known.source.rows[layer], compute_uv=False))
        bent = -np.log(1 + 0.6 * (singular - 0.6)) / -0.6  # Yan et al. 2022, Eq. 2, α = −0.6
        assert np.asarray(line.get_xdata())[1:] == pytest.approx(bent / bent[-1], rel=1e-5)


def test_lengths_are_counted(known: KnownRun) -> None:
    lengths = np.diff(np.append(known.source.known.starts(), len(known.source.known)))
    counts, edges, _ = draw(known.folder, "sequence-lengths").axes[0].patches[0].get_data()
    assert edges.tolist() == list(range(len(counts) + 1))
    assert counts.tolist() == np.bincount(lengths).tolist()


def test_token_types_are_counted(known: KnownRun) -> None:
    (axes,) = draw(known.folder, "token-counts").axes
    n = np.unique(known.source.known.token, return_counts=True)[1]
    assert sum(bar.get_height() for bar in axes.patches) == len(n)
    assert axes.patches[0].get_x() == pytest.approx(np.log10(n.min()))


def test_shares_add_up_and_equal_the_rows(known: KnownRun) -> None:
    left, right = draw(known.folder, "variance-shares").axes
    for layer, rows in known.source.rows.items():
        mean, q = rows.mean(axis=0), np.mean((rows**2).sum(axis=1))
        token = known.source.known.token
        within = sum(((rows[token == t] - rows[token == t].mean(axis=0)) ** 2).sum() for t in np.unique(token)) / len(
            rows
        )
        m_bar, b_bar, w_bar = (left.containers[i][layer] for i in range(3))
        assert m_bar.get_height() == pytest.approx(mean @ mean / q)
        assert w_bar.get_height() == pytest.approx(within / q)
        assert w_bar.get_y() + w_bar.get_height() == pytest.approx(1)
        assert b_bar.get_y() == pytest.approx(m_bar.get_height())
        variance = ((rows - mean) ** 2).sum() / len(rows)
        assert right.lines[0].get_ydata()[layer] == pytest.approx(within / variance)


def test_shares_of_the_window_leave_rare_types_out(known: KnownRun, tmp_path: Path) -> None:
    """Figs. 5 and 6 of Yamagiwa and Shimodaira 2024: over types with ten occurrences or more."""
    few = np.arange(400)  # rows in which many of the types are rare
    source = replace(
        known.source,
        rows={layer: rows[few] for layer, rows in known.source.rows.items()},
        known=known.source.known.take(few),
    )
    scan_source(source, resolve_measures("tokens", sample=0), run=Run(tmp_path / "run"))
    left, right = draw(tmp_path / "run", "variance-shares-window").axes
    token = source.known.token
    assert token is not None
    kept = np.bincount(token)[token] >= 10
    assert 100 < kept.sum() < 380
    for layer, everything in source.rows.items():
        rows, types = everything[kept], token[kept]
        within = sum(((rows[types == t] - rows[types == t].mean(axis=0)) ** 2).sum() for t in np.unique(types))
        mean, q, within = rows.mean(axis=0), np.mean((rows**2).sum(axis=1)), within / len(rows)
        variance = ((rows - mean) ** 2).sum() / len(rows)
        heights = [left.containers[i][layer].get_height() for i in range(3)]
        assert heights == pytest.approx([mean @ mean / q, (variance - within) / q, within / q])
        assert right.lines[0].get_ydata()[layer] == pytest.approx(within / variance)


def test_squared_norms_equal_the_rows(known: KnownRun) -> None:
    q, m, v, w, b, *_ = draw(known.folder, "squared-norms").axes[0].lines
    token = known.source.known.token
    for layer, rows in known.source.rows.items():
        mean = rows.mean(axis=0)
        types = [rows[token == t] for t in np.unique(token)]
        within = sum(((some - some.mean(axis=0)) ** 2).sum() for some in types) / len(rows)
        between = sum(len(some) * ((some.mean(axis=0) - mean) ** 2).sum() for some in types) / len(rows)
        assert w.get_ydata()[layer] == pytest.approx(within)
        assert b.get_ydata()[layer] == pytest.approx(between)
        assert q.get_ydata()[layer] == pytest.approx(np.mean((rows**2).sum(axis=1)))
        assert m.get_ydata()[layer] == pytest.approx(mean @ mean)
        assert v.get_ydata()[layer] == pytest.approx(((rows - mean) ** 2).sum() / len(rows))


def test_drift_is_norm_against_cosine_with_its_correlation(known: KnownRun) -> None:
    axes = draw(known.folder, "drift").axes[0]
    x, y = points(axes).T
    assert x == pytest.approx([np.linalg.norm(rows.mean(axis=0)) for rows in known.source.rows.values()])
    units = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in known.source.rows.values()]
    n = len(units[0])
    assert y == pytest.approx([((u.sum(axis=0) ** 2).sum() - n) / (n * (n - 1)) for u in units])
    title = axes.get_title(loc="left").replace("−", "-")
    assert f"ρ = {stats.spearmanr(x, y).statistic:.2f}" in title
    assert f"r = {stats.pearsonr(x, y).statistic:.2f}" in title


@pytest.mark.parametrize(
    ("name", "measures"),
    [
        ("uniformity", ["sequence_uniformity", "cls_uniformity", "mean_cosine"]),
        ("frequency-slopes", [f"log_{what}_on_frequency_slope" for what in ("squared_norm", "mean_norm", "variance")]),
    ],
)
def test_curves_and_bands_are_the_findings(name: str, measures: list[str], known: KnownRun) -> None:
    findings = Run(known.folder).findings()
    (axes,) = draw(known.folder, name).axes
    lines = [line for line in axes.lines if len(line.get_xdata()) == 4]
    for measure, line, band in zip(measures, lines, axes.collections, strict=True):
        readings = [findings.get(measure, layer) for layer in range(4)]
        assert line.get_ydata() == pytest.approx([r.value for r in readings])
        corners = {(round(x), float(y)) for x, y in band.get_paths()[0].vertices}
        for r in readings:
            assert any(x == r.layer and y == pytest.approx(r.low) for x, y in corners)
            assert any(x == r.layer and y == pytest.approx(r.high) for x, y in corners)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0", "1", "2", "3"]
    assert len(axes.get_legend().get_texts()) == 3


def test_norm_variance_layers_are_the_regressions_of_each_layer(known: KnownRun) -> None:
    variation, slope, r2 = (axes.lines[-1].get_ydata() for axes in draw(known.folder, "norm-variance-layers").axes)
    for layer in range(4):
        _, q, m, v = np.array(list(by_type(known, layer).values())).T
        line = stats.linregress(m, v)
        assert (variation[layer], slope[layer], r2[layer]) == pytest.approx(
            (q.std() / q.mean(), line.slope, line.rvalue**2)
        )


def test_correlations_are_pearsons_over_layers(known: KnownRun) -> None:
    axes = draw(known.folder, "measure-correlations").axes[0]
    matrix = np.asarray(axes.images[0].get_array())
    names = [re.sub(r"  \d+$", "", tick.get_text()) for tick in axes.get_yticklabels()]
    i, j = names.index("mean_cosine"), names.index("isoscore")
    frame = Run(known.folder).findings().to_frame()
    wide = frame[frame["variant"] == "definition"].pivot_table(index="layer", columns="measure", values="value")
    assert matrix[i, j] == pytest.approx(stats.pearsonr(wide["mean_cosine"], wide["isoscore"]).statistic)
    assert matrix == pytest.approx(matrix.T)
    assert np.diag(matrix) == pytest.approx(1)


def test_lsds_of_whitening_is_that_of_scikit_learns(known: KnownRun) -> None:
    from sklearn.decomposition import PCA

    from isotrope.measures import lsds

    (axes,) = draw(known.folder, "lsds").axes
    rows = known.source.rows[3]
    from isotrope.figures.run_data import RunData

    sampled = RunData(known.folder).sample(3).values[:2000]
    expected = lsds(sampled, PCA(whiten=True).fit(rows).transform(sampled))
    assert axes.containers[0][3].get_height() == pytest.approx(expected, rel=1e-3)


def test_projection_keeps_the_two_strongest_directions() -> None:
    rows = np.random.default_rng(1).normal(size=(200, 5)) + np.array([5.0, 0, 0, 0, 0])
    u, s, _ = np.linalg.svd(rows, full_matrices=False)
    found = project_uncentred(rows)
    assert np.abs(found) == pytest.approx(np.abs(u[:, :2] * s[:2]))
    assert (found.mean(axis=0) >= 0).all()


def test_plane_of_means_and_origin() -> None:
    means = np.diag([9.0, 4.0, 1.0, 0.0])[:3] @ np.linalg.qr(np.random.default_rng(2).normal(size=(4, 4)))[0]
    directions = find_plane(means)
    assert directions.T @ directions == pytest.approx(np.eye(2))
    centred = np.vstack([means, np.zeros(4)]) - np.vstack([means, np.zeros(4)]).mean(axis=0)
    strongest = np.linalg.eigvalsh(centred.T @ centred)[::-1][:2]
    assert ((centred @ directions) ** 2).sum(axis=0) == pytest.approx(strongest)


def test_token_clouds_are_the_sampled_occurrences(known: KnownRun) -> None:
    axes = draw(known.folder, "token-clouds").axes[0]
    token = known.source.known.token
    counts = np.unique(token, return_counts=True)[1]
    drawn = [len(cloud.get_offsets()) for cloud in axes.collections]
    assert all(size in np.minimum(counts, 100) for size in drawn)
    origin = axes.lines[-1]
    assert (origin.get_xdata()[0], origin.get_ydata()[0]) == (0, 0)


def test_tokens_are_chosen_from_all_frequencies() -> None:
    """100 types at log10 n about 1 and 25 at 5: 2 + 4 of the first, 2 + 2 of the second, none of two letters."""
    n = np.array([10] * 100 + [100_000] * 25 + [1000] * 30)
    names = [f"word{i}" for i in range(125)] + ["Ġto"] * 30
    types = TokenTypes(names, np.arange(155), n, *np.zeros((3, 155)))
    chosen = select_tokens(types, seed=0)
    assert np.bincount(np.searchsorted([100, 125], chosen, side="right"), minlength=3).tolist() == [6, 4, 0]
    assert len(set(chosen.tolist())) == 10
    assert chosen.tolist() == select_tokens(types, seed=0).tolist()
    assert chosen.tolist() != select_tokens(types, seed=1).tolist()


def test_the_number_of_tokens_follows_the_erratum() -> None:
    """A quarter of the largest |T_r|: the erratum draws 2 + ⌊4·√¼⌋ = 4 tokens, the printed formula 2 + ⌊√(4·¼)⌋ = 3.

    The parts are of the range of all types in the window: two letters at n = 10 widen it. Its upper end is in.
    """
    n = np.array([10] + [20_000] * 40 + [100_000] * 160)
    names = ["to"] + [f"word{i}" for i in range(200)]
    types = TokenTypes(names, np.arange(201), n, *np.zeros((3, 201)))
    log = np.log10(n)
    edges = np.linspace(log.min(), log.max(), 11)
    part = np.minimum(np.digitize(log, edges) - 1, 9)
    chosen = select_tokens(types, seed=0)
    sizes = {r: int((part[1:] == r).sum()) for r in range(10)}  # of three letters or more
    assert (sizes[8], sizes[9]) == (40, 160)
    for r in (8, 9):
        expected = 2 + int(4 * np.sqrt(sizes[r] / max(sizes.values())))
        assert int((part[chosen] == r).sum()) == expected
    assert (part[chosen] == 8).sum() != 2 + int(np.sqrt(4 * sizes[8] / 160))
    assert 0 not in chosen


def test_names_do_not_cover_each_other(known: KnownRun) -> None:
    for name in ("token-clouds", "norm-variance-tokens"):
        made = draw(known.folder, name)
        made.draw_without_rendering()
        boxes = [text.get_window_extent() for text in made.axes[0].texts]
        assert len(boxes) >= 10
        overlaps = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)]
        assert not overlaps


def test_tsne_keeps_clusters_together() -> None:
    pytest.importorskip("openTSNE")
    from isotrope.drawing.projections import project_tsne

    rng = np.random.default_rng(0)
    centres, label = 10 * rng.normal(size=(3, 8)), np.repeat(np.arange(3), 40)
    rows = centres[label] + rng.normal(size=(120, 8))
    found = project_tsne(rows, seed=0)
    distances = np.linalg.norm(found[:, None] - found[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = distances.argsort(axis=1)[:, :10]
    assert (label[nearest] == label[:, None]).mean() > 0.97
    assert found.tolist() == project_tsne(rows, seed=0).tolist()
