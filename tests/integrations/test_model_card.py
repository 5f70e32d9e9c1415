"""The model card as the hub and a reader see it."""

from __future__ import annotations

import pytest

from isotrope.integrations.model_card import format_model_card


def test_the_header_is_one_that_the_hub_reads() -> None:
    hub = pytest.importorskip("huggingface_hub")
    header = hub.ModelCard(format_model_card("gpt2", {}, base_model="openai-community/gpt2")).data
    assert header.base_model == "openai-community/gpt2"
    assert header.pipeline_tag == "sentence-similarity"
    assert header.tags == ["sentence-transformers", "sentence-similarity", "feature-extraction"]


def test_sections_are_rendered_by_their_kind() -> None:
    sections = {
        "Text": "Some words.",
        "Reasons": ["one", "two\nlines"],
        "Facts": {"rows": 3000, "gain": 0.123456789, "none": None},
        "Table": [{"a": 1, "b": "x|y"}, {"a": 2, "c": 0.5}],
        "Empty": [],
    }
    text = format_model_card("gpt2", {"layers": "1+12"}, sections)
    assert text.startswith("---\n")
    assert "# gpt2 as an embedder\n\n- layers: 1+12\n\n## Use" in text
    rest = text[text.index("## Text") :]
    assert rest == (
        "## Text\n\nSome words.\n\n"
        "## Reasons\n\n- one\n- two lines\n\n"
        "## Facts\n\n- rows: 3000\n- gain: 0.12346\n- none: \n\n"
        "## Table\n\n| a | b | c |\n| --- | --- | --- |\n| 1 | x\\|y |  |\n| 2 |  | 0.5 |\n\n"
        "## Empty\n\n\n"
    )
