"""No file runs code: how weights are loaded is stated at every call, and nothing is unpickled."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import isotrope
from isotrope.errors import InputError

SOURCE = Path(isotrope.__file__).parent

#: The only file that may name pickle: it refuses what is more than a point of Qdrant's local mode.
READER_OF_POINTS = SOURCE / "sources/vectors/stores/qdrant_folder.py"

#: Modules that load objects and with them code.
UNSAFE = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


def _nodes() -> Iterator[tuple[Path, ast.AST]]:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            yield path, node


def _calls() -> Iterator[tuple[Path, ast.Call, str]]:
    for path, node in _nodes():
        if isinstance(node, ast.Call):
            yield path, node, ast.unparse(node.func)


def _states_weights_only(call: ast.Call) -> bool:
    return any("weights_only" in ast.unparse(word) and "True" in ast.unparse(word) for word in call.keywords)


def test_weights_only_is_stated_wherever_weights_are_loaded() -> None:
    seen = 0
    for path, call, name in _calls():
        loads = name in ("torch.load", "torch.jit.load") or name.endswith("load_state_dict_from_url")
        pretrained = name.endswith(".from_pretrained") and ("Model" in name or name == "auto.from_pretrained")
        sentences = name == "SentenceTransformer" and bool(call.args)
        if loads or pretrained or sentences:
            seen += 1
            assert _states_weights_only(call), f"{path.name}:{call.lineno} does not say weights_only=True"
    assert seen >= 3


def test_nothing_is_unpickled() -> None:
    for path, node in _nodes():
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            assert name.partition(".")[0] not in UNSAFE or path == READER_OF_POINTS, f"{path} imports {name}"
    for path, call, name in _calls():
        assert not name.startswith(("pickle.load", "pickle.loads")), f"{path.name}:{call.lineno}"
        assert not any(word.arg == "allow_pickle" and ast.unparse(word.value) != "False" for word in call.keywords), (
            path
        )
        if name == "np.load":
            assert any(word.arg == "allow_pickle" for word in call.keywords), f"{path.name}:{call.lineno}"


class _Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return Path.touch, (self.path,)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small model of one class, with its weights as safetensors."""
    pytest.importorskip("transformers")
    from testkit.models import save_model

    return save_model(tmp_path / "model", "bert")


def test_weights_that_are_a_pickle_run_no_code(folder: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from isotrope.sources.models.load import load

    for path in folder.glob("*.safetensors"):
        path.unlink()
    torch.save({"embeddings.word_embeddings.weight": _Evil(tmp_path / "ran")}, folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="cannot be loaded"):
        load(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'einops'", name="einops"),
        ImportError("cannot import name 'thing' from 'library'"),
        ImportError("This modeling file requires the following packages that were not found: mamba_ssm"),
    ],
)
def test_an_import_that_fails_is_told_as_what_it_is(
    error: ImportError, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transformers

    from isotrope.sources.models.load import load

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(transformers.AutoModel, "from_pretrained", fail)
    with pytest.raises(InputError) as refused:
        load(folder)
    assert str(error) in str(refused.value)
    assert "timm" not in str(refused.value)
    assert str(refused.value).count("\n") == 0


class TestConfigs:
    """A config that claims millions of layers is refused before they are built, which would take all memory."""

    @pytest.mark.parametrize("count", [101, 1_001, 10**7, 10**30])
    def test_layers(self, count: int, folder: Path) -> None:
        from isotrope.sources.models.load import load

        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": count}))
        with pytest.raises(InputError, match=f"num_hidden_layers {count:,}, expected at most"):
            load(folder)

    def test_the_command_says_it_in_one_sentence(self, folder: Path) -> None:
        import subprocess
        import sys

        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 10**7}))
        command = [sys.executable, "-m", "isotrope", "scan", "--model", str(folder)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr.count("\n") == 1
        assert "num_hidden_layers 10,000,000" in ended.stderr

    @pytest.mark.parametrize(
        "config",
        [
            {"text_config": {"n_layer": 5_000}},
            {"depths": [2, 5_000]},
            {"encoder_layers": 5_000},
            {"num_local_experts": 50_000},
            {"vision_config": {"num_blocks": 5_000}},
        ],
    )
    def test_names_of_layers(self, config: dict[str, Any]) -> None:
        from isotrope.sources.models.model_files import check_config

        with pytest.raises(InputError, match=r"0?,000, expected at most 10?,000"):
            check_config("a", config)

    def test_other_numbers_may_be_large(self) -> None:
        from isotrope.sources.models.model_files import check_config

        config = {
            "vocab_size": 250_000,
            "block_size": 8192,
            "n_layer": 1_000,
            "max_position_embeddings": 10**6,
            "layer_norm_eps": 1e-12,
            "num_hidden_layers": None,
            "depths": [2, 18],
            "num_experts": 2_048,
        }
        check_config("a", config)
        check_config("a", config | {"n_layer": 90}, tensors=20)
        check_config("a", "no object")

    @pytest.mark.parametrize("kind", [4, 10])
    def test_gguf(self, kind: int, tmp_path: Path) -> None:
        gguf = pytest.importorskip("gguf")
        import numpy as np

        from isotrope.sources.models.gguf import check_gguf

        for count, refused in ((3, False), (10**7, True)):
            writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
            add = writer.add_uint32 if kind == 4 else writer.add_uint64
            add("llama.block_count", count)
            writer.add_tensor("rows", np.zeros((4, 4), np.float32))
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()
            if refused:
                with pytest.raises(InputError, match="announces 10000000 blocks"):
                    check_gguf(tmp_path / "a.gguf")
            else:
                check_gguf(tmp_path / "a.gguf")

    def test_a_sentence_model(self, folder: Path, tmp_path: Path) -> None:
        pytest.importorskip("sentence_transformers")
        from isotrope.sources.input import Input

        shutil.copytree(folder, tmp_path / "whole/0_Transformer")
        place = tmp_path / "whole/0_Transformer/config.json"
        place.write_text(json.dumps(json.loads(place.read_text()) | {"num_hidden_layers": 10**7}))
        (tmp_path / "whole/modules.json").write_text("[]")
        with pytest.raises(InputError, match="num_hidden_layers 10,000,000"):
            Input(model=str(tmp_path / "whole"), layers="encoded").load()
