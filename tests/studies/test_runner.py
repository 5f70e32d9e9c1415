"""The experiments of a study are run and saved one by one, and a stopped study is resumed."""

from __future__ import annotations

import base64
import json
import math
import re
from pathlib import Path

import pandas as pd
import pytest

from isotrope.errors import InputError, StoreError
from isotrope.studies.figures import make_figure, run_figures
from isotrope.studies.options import StudyOptions
from isotrope.studies.result import Claim, Study, Table
from isotrope.studies.runner import Experiments, Results, run_study

FRAME = pd.DataFrame({"layer": [0, 1], "value": [0.25, math.nan]})


def experiment(made: list[str], name: str, *, fails: bool = False) -> Experiments:
    def make() -> Results:
        made.append(name)
        if fails:
            raise RuntimeError("stopped")
        return Results(
            [Table("numbers", f"Numbers of {name}", FRAME)], [Claim("contradicts", f"{name} is not so.", "Fig. 1")]
        )

    return {name: make}


def run(experiments: Experiments, folder: Path, *, resume: bool = False, seed: int = 0) -> Study:
    return run_study("example", "A paper", experiments, StudyOptions(output=folder, seed=seed, resume=resume))


def test_every_table_is_there_as_csv_json_and_page(tmp_path: Path) -> None:
    study = run(experiment([], "one") | experiment([], "org/two"), tmp_path / "s")
    assert pd.read_csv(tmp_path / "s/parts/one/numbers.csv").equals(FRAME)
    assert json.loads((tmp_path / "s/parts/two/numbers.json").read_text()) == [
        {"layer": 0, "value": 0.25},
        {"layer": 1, "value": None},
    ]
    page = (tmp_path / "s/study.html").read_text()
    assert "Numbers of org/two" in page
    assert '<td class="number">0</td><td class="number">0.25</td>' in page
    heading = "Results that contradict the paper"
    assert re.search(rf"{heading}.*One is not so\..*Fig\. 1; <a href=\"#\w+-0\">one</a>", page, re.DOTALL)
    assert 'href="parts/two/numbers.csv"' in page
    whole = json.loads((tmp_path / "s/study.json").read_text())
    assert [claim["part"] for claim in whole["claims"]] == ["one", "org/two"]
    assert whole["tables"]["one"]["numbers"][0] == {"layer": 0, "value": 0.25}
    assert study.table("one", "numbers").equals(FRAME)


def test_a_stopped_study_goes_on_with_what_is_not_done(tmp_path: Path) -> None:
    made: list[str] = []
    with pytest.raises(RuntimeError, match="stopped"):
        run(experiment(made, "one") | experiment(made, "two", fails=True), tmp_path / "s")
    assert not (tmp_path / "s/parts/two").exists()
    resumed = run(experiment(made, "one") | experiment(made, "two"), tmp_path / "s", resume=True)
    assert made == ["one", "two", "two"]
    in_one_go = run(experiment([], "one") | experiment([], "two"), tmp_path / "t")
    assert resumed.to_dict()["tables"] == in_one_go.to_dict()["tables"]
    assert resumed.to_dict()["claims"] == in_one_go.to_dict()["claims"]


def test_another_study_in_the_folder_is_refused(tmp_path: Path) -> None:
    run(experiment([], "one"), tmp_path / "s")
    with pytest.raises(StoreError, match="already holds a study"):
        run(experiment([], "one"), tmp_path / "s")
    with pytest.raises(StoreError, match="begun with other seed"):
        run(experiment([], "one"), tmp_path / "s", resume=True, seed=1)


def test_a_damaged_part_says_what_to_do(tmp_path: Path) -> None:
    run(experiment([], "one"), tmp_path / "s")
    (tmp_path / "s/parts/one/part.json").write_text("{")
    with pytest.raises(StoreError, match="damaged"):
        run(experiment([], "one"), tmp_path / "s", resume=True)


def test_figures_stand_beside_the_tables_and_in_the_page(tmp_path: Path) -> None:
    """One is drawn, as letters that can be found; one cannot be, and says why; both are kept when it goes on."""

    def impossible(_: object) -> None:
        raise InputError("there is nothing to draw.")

    def make() -> Results:
        drawn = make_figure("line", "A line.", lambda figure: figure.subplots().plot([0, 1], label="x"))
        return Results((), (), [drawn, make_figure("none", "Nothing.", impossible)])

    study = run({"org/one": make}, tmp_path / "s")
    place = tmp_path / "s/parts/one"
    assert (place / "line.svg").read_text().startswith("<?xml")
    assert (place / "line.pdf").read_bytes().startswith(b"%PDF")
    assert not (place / "none.svg").exists()
    page = (tmp_path / "s/study.html").read_text()
    (picture,) = re.findall(r'alt="A line\." src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert base64.b64decode(picture) == (place / "line.svg").read_bytes()
    assert "The figure none was not drawn: there is nothing to draw." in page
    again = run({"org/one": make}, tmp_path / "s", resume=True)
    assert again.to_dict()["figures"] == study.to_dict()["figures"]
    assert [figure["reason"] for figure in study.to_dict()["figures"]["org/one"]] == [None, "there is nothing to draw."]


def test_figures_of_a_run_have_its_captions(tmp_path: Path) -> None:
    (picture,) = run_figures(tmp_path, ["drift"])
    assert picture.title.startswith("Mean cosine against the norm of the mean")


def test_a_long_table_is_cut_in_the_page_and_whole_in_its_file(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": range(100)})
    run({"one": lambda: Results([Table("numbers", "Many", frame)])}, tmp_path / "s")
    page = (tmp_path / "s/study.html").read_text()
    assert "The first 10 of 100 rows" in page
    assert page.count('<td class="number">') == 10
    assert len(pd.read_csv(tmp_path / "s/parts/one/numbers.csv")) == 100


def test_what_a_model_is_called_is_text_in_the_page(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>"
    made = Results([Table("numbers", name, pd.DataFrame({name: [name]}))], [Claim("note", name)])
    run({name: lambda: made}, tmp_path / "s")
    page = (tmp_path / "s/study.html").read_text()
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 5


def test_claims_know_the_class_of_their_model(model: str, tmp_path: Path) -> None:
    claims = [
        Claim("note", "of the model.", model="small"),
        Claim("note", "of a class already.", model="small", model_class="character"),
        Claim("note", "of another model.", model="other"),
    ]
    options = StudyOptions(output=tmp_path / "s", models=[model], device="cpu")
    study = run_study("made", "A paper", {"one": lambda: Results((), claims)}, options)
    assert [claim.model_class for claim in study.claims] == ["subword", "character", ""]
