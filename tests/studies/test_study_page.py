"""The page of a study: claims with both numbers first, printed columns beside ours, long tables as files."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pandas as pd

from isotrope.studies.options import StudyOptions
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results, run_study

SCORES = pd.DataFrame({"spearman": [60.0], "low": [58.0], "repair": ["whitening"], "printed": [68.19]})
POINTS = pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]})


def run(folder: Path) -> str:
    claims = [
        Claim("note", "nothing is compared."),
        Claim(
            "undecided",
            "the gain is small.",
            "Table 2",
            0.3,
            1.2,
            evidence="p 0.4",
            model="bert-tiny",
            model_class="subword",
        ),
        Claim("contradicts", "the gain is a loss.", "Table 1", -8.19, 9.14, evidence="95 % interval −9 to −7"),
    ]
    tables = [Table("scores", "Scores on STS", SCORES), Table("points", "Points of t-SNE", POINTS, shown=False)]
    options = StudyOptions(output=folder)
    run_study("uniformity", "Yan et al. 2022", {"sts": lambda: Results(tables, claims)}, options)
    return (folder / "study.html").read_text()


def test_claims_are_first_with_both_numbers_and_the_evidence(tmp_path: Path) -> None:
    page = run(tmp_path / "s")
    assert page.index("The gain is a loss.") < page.index("The gain is small.") < page.index("Nothing is compared.")
    assert page.index("Nothing is compared.") < page.index("Scores on STS")
    row = re.search(r"<tr>\s*<td>The gain is small\.(.*?)</tr>", page, re.DOTALL)
    assert row is not None
    cells = [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in row[1].split("</td>")]
    assert cells[:5] == ["bert-tiny, subword", "0.3", "1.2", "p 0.4", "Table 2; sts"]
    assert "1 contradiction, 1 not decided, 1 note." in page


def test_printed_numbers_stand_beside_ours(tmp_path: Path) -> None:
    page = run(tmp_path / "s")
    heads = re.findall(r"<th scope=\"col\"[^>]*>([^<]+)</th>", page[page.index("Scores on STS") :])
    assert heads[:4] == ["repair", "spearman", "printed", "low"]


def test_a_table_of_points_is_a_file_alone(tmp_path: Path) -> None:
    page = run(tmp_path / "s")
    assert "Points of t-SNE: <a" in page
    assert '<th scope="col" class="number">x</th>' not in page
    assert (tmp_path / "s/parts/sts/points.csv").read_text().splitlines()[0] == '"x","y"'
    again = run_study("uniformity", "", {"sts": Results}, StudyOptions(output=tmp_path / "s", resume=True))
    assert [table.shown for table in again.parts[0].tables] == [True, False]


def test_long_lists_of_agreements_are_folded_and_contradictions_never(tmp_path: Path) -> None:
    claims = [Claim(outcome, f"{outcome} {i}.") for outcome in ("agrees", "contradicts") for i in range(20)]
    options = StudyOptions(output=tmp_path / "s")
    run_study("uniformity", "Yan et al. 2022", {"sts": lambda: Results((), claims)}, options)
    page = (tmp_path / "s/study.html").read_text()
    folded = re.search(r"<details><summary>Show all 20</summary>(.*?)</details>", page, re.DOTALL)
    assert folded is not None
    assert "Agrees 7." in folded[1]
    assert "Contradicts" not in folded[1]
    assert page.count("Show all") == 1


def test_intervals_stand_behind_their_values_and_empty_columns_are_left_out(tmp_path: Path) -> None:
    frame = pd.DataFrame({"layer": [0, 1], "cv": [0.3, 0.5], "cv_low": [0.2, None], "cv_high": [0.4, None]})
    for slope, ends in (("b_slope", "b_slope"), ("q_slope", "q")):
        frame = frame.assign(**{slope: [1, 2], f"{ends}_low": [0, 1], f"{ends}_high": [2, 3]})
    tables = [Table("layers", "Layers", frame.assign(printed=math.nan))]
    run_study("norm-variance", "A paper", {"layers": lambda: Results(tables)}, StudyOptions(output=tmp_path / "s"))
    page = (tmp_path / "s/study.html").read_text()
    page = page[page.index("Layers</h3>") :]
    assert re.findall(r"<th scope=\"col\"[^>]*>([^<]+)</th>", page) == ["layer", "cv", "b slope", "q slope"]
    first, second = ["1 (0 to 2)"] * 2, ["2 (1 to 3)"] * 2
    cells = ["0", "0.3 (0.2 to 0.4)", *first, "1", "0.5", *second]
    assert re.findall(r"<td class=\"number\">([^<]+)</td>", page) == cells
    assert (tmp_path / "s/parts/layers/layers.csv").read_text().startswith('"layer","cv","cv_low","cv_high"')
