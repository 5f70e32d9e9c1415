"""The uniformity study of encoder-decoders and ONNX files: what it reads, and what it leaves out with a note."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.sources.models.load import load
from isotrope.studies.options import StudyOptions
from isotrope.studies.runner import Results
from isotrope.studies.uniformity.ablations import time_svd
from isotrope.studies.uniformity.sts import find_encoder_layers, make_encoder
from isotrope.studies.uniformity.study import _explain_refusal
from testkit.models import save_model
from testkit.small_studies import TEXTS

torch = pytest.importorskip("torch")


def study_of(model: Path | str, tmp_path: Path) -> StudyOptions:
    return StudyOptions(output=tmp_path / "study", models=[model], text=TEXTS, device="cpu")


@pytest.mark.parametrize("family", ["bart", "t5"])
def test_sentences_of_an_encoder_decoder_are_those_of_its_encoder(family: str, tmp_path: Path) -> None:
    folder = save_model(tmp_path / family, family)
    found = make_encoder(study_of(folder, tmp_path), family)([TEXTS[0]])[0]
    loaded = load(folder, device="cpu")
    ids = loaded.tokenizer(TEXTS[0], return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        states = loaded.model.get_encoder()(input_ids=ids, output_hidden_states=True).hidden_states
    by_hand = ((states[1] + states[-1]) / 2).mean(1)[0].numpy()
    assert np.allclose(found, by_hand, atol=1e-5)


def test_a_model_of_one_stack_has_the_layers_of_the_protocol(model: str, tmp_path: Path) -> None:
    assert find_encoder_layers(study_of(model, tmp_path), "small") is None


def test_the_forward_pass_of_an_encoder_decoder_is_timed_on_its_encoder(tmp_path: Path) -> None:
    results = time_svd(study_of(save_model(tmp_path / "t5", "t5"), tmp_path), "t5")
    assert results.tables[0].frame["of the forward pass"][0] == 1


def test_a_model_that_cannot_be_trained_is_a_note_and_not_the_end(tmp_path: Path) -> None:
    def refuse(options: StudyOptions, model: str) -> Results:
        raise InputError(f"{model} has no head.")

    options = study_of(tmp_path / "e5.onnx", tmp_path)
    for run in (refuse, time_svd):
        (claim,) = _explain_refusal(run, "Table 2")(options, "e5.onnx").claims
        assert (claim.outcome, claim.where) == ("note", "Table 2")
        assert "is an ONNX file" in claim.text
    (claim,) = _explain_refusal(refuse, "Table 2")(study_of(tmp_path / "bert", tmp_path), "bert").claims
    assert claim.text == "bert is left out here: bert has no head."
