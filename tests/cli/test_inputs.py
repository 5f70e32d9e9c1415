"""What a command's INPUT is, on its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotrope.cli.inputs import Place, sort_out


@pytest.mark.parametrize("name", ["model.onnx", "model.gguf", "folder/config.json", "folder/modules.json"])
def test_models_by_their_files(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("{}")
    given = str(file if file.parent == tmp_path else file.parent)
    assert sort_out(given, model=None, text=None, corpus=None, vectors=None) == Place(model=given)
