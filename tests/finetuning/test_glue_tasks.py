"""The tasks' files: what is read, and what is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotrope.errors import InputError
from isotrope.finetuning.tasks import TASKS, read_tasks
from testkit.paths import SHARED_DATA
from testkit.small_glue import write_task

DATA = SHARED_DATA


def test_quotes_tabs_and_line_breaks_inside_a_field(tmp_path: Path) -> None:
    folder = tmp_path / "rte"
    folder.mkdir()
    for split in ("train", "validation"):
        (folder / f"{split}.tsv").write_text('label\tsentence2\tsentence1\n1\t"a ""b""\tc"\t"two\nlines"\n0\tx\t\n')
    (found,) = read_tasks(None, tmp_path)
    assert found.train.texts == [("two\nlines", 'a "b"\tc'), ("", "x")]
    assert found.train.labels == [1.0, 0.0]
    assert found.train.checksum == found.validation["validation"].checksum
    assert found.train.take([0]).checksum != found.train.checksum


def test_all_tasks_in_the_order_of_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in reversed(TASKS):
        write_task(tmp_path, name, 6, validation=3)
    monkeypatch.setenv("ISOTROPE_DATA", str(tmp_path))
    found = {task.task.name: task for task in read_tasks(None, None)}
    assert list(found) == ["cola", "sst2", "mrpc", "qnli", "rte", "mnli", "qqp", "stsb"]
    assert list(found["mnli"].validation) == ["validation_matched", "validation_mismatched"]
    assert {task.task.classes for task in found.values()} == {1, 2, 3}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a\tb\t2", ["line 2", "'2'", "0 to 1"]),
        ("a\tb\t-1", ["line 2", "'-1'"]),
        ("a\tb\t0.5", ["line 2", "0.5"]),
        ("a\tb\tyes", ["line 2", "yes"]),
        ("a\tb", ["line 2", "no label"]),
        ('a\t"b\t1', ["tab-separated"]),
    ],
)
def test_a_broken_line_is_refused_with_its_number(tmp_path: Path, line: str, words: list[str]) -> None:
    write_task(tmp_path, "rte", 6)
    (tmp_path / "glue" / "rte" / "train.tsv").write_text(f"sentence1\tsentence2\tlabel\n{line}\n")
    with pytest.raises(InputError) as refused:
        read_tasks(["rte"], tmp_path)
    for word in words:
        assert word in str(refused.value)


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no task"):
        read_tasks(None, tmp_path)
    write_task(tmp_path, "cola", 6)
    with pytest.raises(InputError, match=r"train\.tsv"):
        read_tasks(["rte"], tmp_path)
    (tmp_path / "glue" / "cola" / "train.tsv").write_text("sentence\tlabel\n")
    with pytest.raises(InputError, match="has no row"):
        read_tasks(["cola"], tmp_path)


def test_the_real_files() -> None:
    """Known numbers: RTE 2,490 and 277 rows, 146 entailed; CoLA 8,551 and 1,043; SST-2 67,349 and 872, 444 positive."""
    if not (DATA / "glue").is_dir():
        pytest.skip(f"there is no {DATA / 'glue'}; set ISOTROPE_DATA to the folder of the data sets.")
    rte, cola, sst2 = read_tasks(["rte", "cola", "sst2"], DATA)
    assert (len(rte.train), len(rte.validation["validation"])) == (2490, 277)
    assert (len(cola.train), len(cola.validation["validation"])) == (8551, 1043)
    assert (len(sst2.train), len(sst2.validation["validation"])) == (67349, 872)
    assert rte.validation["validation"].labels.count(0) == 146
    assert sst2.validation["validation"].labels.count(1) == 444
