"""Hidden states of text models against each text run alone, without padding."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.models.load import Loaded, load
from isotrope.sources.text.source import TextSource
from testkit.models import FAMILIES, ONE_STACK, TWO_STACKS, save_model, texts

torch = pytest.importorskip("torch")

Folders = Callable[[str], Path]

TEXTS = texts(23)


@pytest.fixture(scope="session")
def loaded(small_model: Folders) -> Callable[..., Loaded]:
    """Small models, each loaded once for each precision."""
    found: dict[Any, Loaded] = {}

    def get(family: str, exact: bool = False) -> Loaded:
        if (family, exact) not in found:
            found[family, exact] = load(small_model(family), exact=exact)
        return found[family, exact]

    return get


def source(loaded: Loaded, corpus: Any = None, **options: Any) -> TextSource:
    return TextSource(loaded, open_corpus(TEXTS if corpus is None else corpus), **{"batch_size": 5} | options)


def alone(loaded: Loaded, text: str) -> tuple[list[int], list[Any]]:
    """Token ids of one text, and all its hidden states, (t, d) each, from the model as its users call it."""
    ids = loaded.tokenizer(text)["input_ids"]
    inputs = {"input_ids": torch.tensor([ids])}
    if loaded.encoder_decoder:
        start = loaded.model.config.decoder_start_token_id
        inputs["decoder_input_ids"] = torch.tensor([[start, *ids[:-1]]])
    with torch.no_grad():
        out = loaded.model(**inputs, output_hidden_states=True)
    if loaded.encoder_decoder:
        states = [*out.encoder_hidden_states, *out.decoder_hidden_states]
    else:
        states = list(out.hidden_states)
    return ids, [state[0].numpy() for state in states]


def rows_of(batches: Any) -> dict[int, dict[Any, Any]]:
    """By sequence: its rows of each layer, and what is known of them under ("known", first layer of the batch)."""
    found: dict[int, dict[Any, Any]] = {}
    for batch in batches:
        first = next(iter(batch.layers))
        for start, stop in zip(batch.rows.starts(), [*batch.rows.starts()[1:], len(batch.rows)], strict=True):
            keep = slice(int(start), int(stop))
            here = found.setdefault(int(batch.rows.sequence[start]), {})
            assert len(set(batch.rows.sequence[keep].tolist())) == 1
            for layer, rows in batch.layers.items():
                assert len(rows) == len(batch.rows)
                here[layer] = rows[keep].numpy()
            here["known", first] = batch.rows.take(keep)
    return found


@pytest.mark.parametrize(("exact", "tolerance"), [(False, 1e-5), (True, 1e-10)])
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_are_those_of_each_text_alone(loaded: Any, family: str, exact: bool, tolerance: float) -> None:
    model = loaded(family, exact)
    found = rows_of(source(model).batches())
    assert sorted(found) == list(range(len(TEXTS)))
    for number, text in enumerate(TEXTS):
        ids, states = alone(model, text)
        assert [layer for layer in found[number] if isinstance(layer, int)] == list(range(len(states)))
        for layer, state in enumerate(states):
            assert found[number][layer].dtype == (np.float64 if exact else np.float32)
            scale = np.abs(state).max()
            np.testing.assert_allclose(found[number][layer], state, rtol=0, atol=tolerance * scale)
        known = found[number]["known", 0]
        assert known.token.tolist() == ids
        assert known.position.tolist() == list(range(len(ids)))
        assert known.group is None


@pytest.mark.parametrize("family", FAMILIES)
def test_special_tokens_are_those_that_the_tokenizer_added(loaded: Any, family: str) -> None:
    model = loaded(family)
    template = FAMILIES[family].template.split()
    before, after = template.index("$A"), len(template) - template.index("$A") - 1
    for here in rows_of(source(model).batches()).values():
        special = here["known", 0].special
        inner = len(special) - before - after
        assert special.tolist() == [True] * before + [False] * inner + [True] * after


@pytest.mark.parametrize("family", ["bert", "llama", "t5"])
def test_dropping_special_tokens_leaves_the_other_rows_as_they_are(loaded: Any, family: str) -> None:
    kept = rows_of(source(loaded(family)).batches())
    left = rows_of(source(loaded(family), special_tokens="drop").batches())
    assert sorted(kept) == sorted(left)
    for number, here in left.items():
        parts = [key for key in here if isinstance(key, tuple)]
        for part in parts:
            keep = ~kept[number][part].special
            assert here[part].position.tolist() == kept[number][part].position[keep].tolist()
            assert here[part].token.tolist() == kept[number][part].token[keep].tolist()
            np.testing.assert_array_equal(here[part[1]], kept[number][part[1]][keep])


@pytest.mark.parametrize("family", TWO_STACKS)
def test_encoder_and_decoder_come_apart_and_the_decoder_reads_one_place_to_the_right(loaded: Any, family: str) -> None:
    model = loaded(family)
    text_source = source(model)
    encoders, decoders = {"t5": (3, 4), "bart": (4, 3)}[family]
    names = [f"encoder.{i}" for i in range(encoders)] + [f"decoder.{i}" for i in range(decoders)]
    assert list(text_source.layer_names.values()) == names
    batches = list(text_source.batches())
    assert [list(b.layers) for b in batches[:2]] == [list(range(encoders)), list(range(encoders, 7))]
    assert sum(b.counts.get("texts", 0) for b in batches) == len(TEXTS)
    for number, here in rows_of(batches).items():
        ids, _ = alone(model, TEXTS[number])
        decoder = here["known", encoders]
        assert decoder.token.tolist() == [model.model.config.decoder_start_token_id, *ids[:-1]]
        assert decoder.special.tolist() == [True, *here["known", 0].special.tolist()[:-1]]


def test_plain_numbers_and_names_are_the_same_layers(loaded: Any) -> None:
    by_name = source(loaded("bart"), layers="encoder.1,decoder.2")
    by_number = source(loaded("bart"), layers=[1, -1])
    assert by_name.layers == by_number.layers == [1, 6]
    for one, other in zip(by_name.batches(), by_number.batches(), strict=True):
        assert all(torch.equal(one.layers[layer], other.layers[layer]) for layer in one.layers)


@pytest.mark.parametrize(
    ("family", "norm"),
    [("gpt2", lambda m: m.ln_f), ("llama", lambda m: m.norm), ("t5", lambda m: m.decoder.final_layer_norm)],
)
def test_the_state_before_the_final_norm_is_what_goes_into_it(loaded: Any, family: str, norm: Any) -> None:
    model = loaded(family)
    text_source = source(model, layers="L.before_norm,-1")
    before, after = text_source.layers
    assert before == f"{after}.before_norm"
    for batch in text_source.batches():
        again = norm(model.model)(batch.layers[before])
        torch.testing.assert_close(again, batch.layers[after], atol=1e-5, rtol=1e-5)
        assert not torch.allclose(batch.layers[before], batch.layers[after], atol=1e-2)
    assert not norm(model.model)._forward_pre_hooks
    assert not norm(model.model)._forward_hooks


@pytest.mark.parametrize("family", ["bert", "albert", "distilbert", "roberta", "bart"])
def test_models_whose_last_block_ends_in_its_norm_refuse_before_norm(loaded: Any, family: str) -> None:
    with pytest.raises(InputError, match=r"has no norm after its last block, .* leave \.before_norm out\.$"):
        source(loaded(family), layers="L.before_norm")


def test_only_the_layers_asked_for_are_in_the_batches(loaded: Any) -> None:
    text_source = source(loaded("bert"), layers="-1, 0")
    assert text_source.layers == [3, 0]
    assert all(list(batch.layers) == [3, 0] for batch in text_source.batches())
    only_decoder = source(loaded("t5"), layers="decoder.0")
    assert [list(batch.layers) for batch in only_decoder.batches()] == [[3]] * 5
    assert sum(batch.counts["texts"] for batch in only_decoder.batches()) == len(TEXTS)


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5"])
def test_the_batch_size_does_not_change_values(loaded: Any, family: str) -> None:
    one, all_at_once = (rows_of(source(loaded(family), batch_size=size).batches()) for size in (1, 100))
    for number, here in one.items():
        for layer, rows in here.items():
            if isinstance(layer, int):
                np.testing.assert_allclose(rows, all_at_once[number][layer], atol=1e-5 * np.abs(rows).max())


@pytest.mark.parametrize("family", ["bert", "t5"])
def test_starting_later_is_skipping(loaded: Any, family: str) -> None:
    text_source = source(loaded(family))
    everything = list(text_source.batches())
    for start in range(len(everything) + 2):
        later = list(text_source.batches(start))
        assert len(later) == max(0, len(everything) - start)
        for one, other in zip(later, everything[start:], strict=True):
            assert one.counts == other.counts
            assert list(one.layers) == list(other.layers)
            np.testing.assert_array_equal(one.rows.sequence, other.rows.sequence)
            assert all(torch.equal(one.layers[layer], other.layers[layer]) for layer in one.layers)


def test_skipped_batches_are_not_run(loaded: Any) -> None:
    text_source = source(loaded("bert"))
    runs: list[int] = []
    hook = loaded("bert").model.register_forward_pre_hook(lambda *_: runs.append(1))
    assert len(list(text_source.batches(3))) == 2
    hook.remove()
    assert len(runs) == 2


def test_texts_of_like_length_share_a_batch_always_in_the_same_order(loaded: Any) -> None:
    text_source = source(loaded("bert"), [*TEXTS, *TEXTS])  # texts of equal length are told apart by their place
    lengths = [np.diff([*batch.rows.starts(), len(batch.rows)]).tolist() for batch in text_source.batches()]
    flat = [length for batch in lengths for length in batch]
    assert flat == sorted(flat, reverse=True)
    orders = [[batch.rows.sequence.tolist() for batch in text_source.batches()] for _ in range(2)]
    assert orders[0] == orders[1]


def test_sorting_stays_within_a_window(loaded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isotrope.sources.text.source._BATCHES_SORTED_TOGETHER", 2)
    numbers = [sorted(set(b.rows.sequence.tolist())) for b in source(loaded("bert")).batches()]
    assert sorted(numbers[0] + numbers[1]) == list(range(10))
    assert sorted(numbers[2] + numbers[3]) == list(range(10, 20))


def test_no_earlier_batch_is_alive_while_the_next_is_run(loaded: Any) -> None:
    text_source = source(loaded("llama"), layers="0,2,L.before_norm")
    earlier: list[Any] = []
    alive: list[int] = []

    def look(*_: Any) -> None:
        alive.append(sum(ref() is not None for ref in earlier))

    hook = loaded("llama").model.register_forward_pre_hook(look)
    batches = text_source.batches()
    gc.disable()  # references must go by themselves, not when the collector comes by
    try:
        while (batch := next(batches, None)) is not None:
            earlier += [weakref.ref(rows) for rows in batch.layers.values()]
            earlier += [weakref.ref(rows._base) for rows in batch.layers.values() if rows._base is not None]
            del batch
    finally:
        gc.enable()
        hook.remove()
    assert len(earlier) >= 15
    assert alive == [0] * 5


def test_long_texts_are_cut_and_counted(loaded: Any) -> None:
    model = loaded("bert")
    counts = [len(model.tokenizer(text)["input_ids"]) for text in TEXTS]
    batches = list(source(model, max_length=8).batches())
    total = {name: sum(b.counts[name] for b in batches) for name in batches[0].counts}
    assert total == {
        "texts": len(TEXTS),
        "truncated_texts": sum(c > 8 for c in counts),
        "truncated_tokens": sum(max(0, c - 8) for c in counts),
    }
    assert total["truncated_texts"] > 3
    for number, here in rows_of(batches).items():
        whole = model.tokenizer(TEXTS[number])["input_ids"]
        cut = whole if len(whole) <= 8 else [*whole[:7], whole[-1]]
        assert here["known", 0].token.tolist() == cut


def test_texts_are_cut_at_what_the_model_takes(loaded: Any) -> None:
    long = [" ".join(["cat"] * 200)]
    for family in ("bert", "roberta", "gpt2", "llama", "bart"):
        (batch, *_) = source(loaded(family), long).batches()
        assert len(batch.rows) == 64
        assert batch.counts["truncated_texts"] == 1
    assert source(loaded("t5"), long).max_length == 512
    with pytest.raises(InputError, match=r"max_length is 65; .* takes from 3 to 64 tokens"):
        source(loaded("roberta"), max_length=65)
    with pytest.raises(InputError, match=r"max_length is 2; .* takes from 3 to 64 tokens"):
        source(loaded("bert"), max_length=2)


def test_a_model_without_a_padding_token_is_padded_under_its_mask(loaded: Any) -> None:
    model = loaded("gpt2")
    assert model.tokenizer.pad_token_id is None
    assert model.pad == 0


def test_texts_without_tokens_are_counted_and_left_out(loaded: Any) -> None:
    model = loaded("gpt2")
    assert model.tokenizer("漢字")["input_ids"] == []
    batches = list(source(model, ["漢字", *TEXTS[:7], "字"]).batches())
    assert sorted(rows_of(batches)) == list(range(1, 8))
    assert sum(b.counts["texts"] for b in batches) == 9
    assert sum(b.counts.get("texts_without_tokens", 0) for b in batches) == 2
    with pytest.raises(InputError, match=r"no text has a token for the tokenizer of .*; give a text"):
        source(model, ["漢字", "字"])


def test_texts_of_nothing_but_special_tokens_give_no_rows_when_these_are_dropped(
    small_model: Folders, tmp_path: Path
) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": t, "kind": "x"}) + "\n" for t in ("漢字", "字")))
    folder = save_model(tmp_path / "model", "bert")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["normalizer"] = {"type": "Replace", "pattern": {"Regex": "[^a-z ]"}, "content": ""}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    model = load(folder)
    for pooling in (None, "mean", "cls", "last", "max"):
        corpus = open_corpus(path, group_by="kind")
        (batch,) = TextSource(model, corpus, pooling=pooling, special_tokens="drop").batches()
        assert len(batch.rows) == 0
        assert batch.layers[0].shape == (0, 16)
        assert batch.counts["texts"] == 2


def test_groups_belong_to_the_rows_of_their_text(loaded: Any, tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    groups = [f"group {i % 3}" for i in range(len(TEXTS))]
    lines = (json.dumps({"text": t, "kind": g}) for t, g in zip(TEXTS, groups, strict=True))
    path.write_text("\n".join(lines))
    for pooling in (None, "mean"):
        corpus = open_corpus(path, group_by="kind")
        for batch in TextSource(loaded("bert"), corpus, batch_size=5, pooling=pooling).batches():
            assert batch.rows.group is not None
            assert batch.rows.group.tolist() == [groups[s] for s in batch.rows.sequence.tolist()]


def test_what_a_source_says_of_itself(loaded: Any, small_model: Folders) -> None:
    text_source = source(loaded("bert"), layers="0,-1")
    assert (text_source.unit, text_source.total, text_source.width) == ("texts", len(TEXTS), 16)
    told = json.loads(json.dumps(text_source.describe()))
    assert told["model"] == str(small_model("bert"))
    assert (told["class"], told["dtype"], told["layers"]) == ("BertModel", "float32", [0, 3])
    assert [file["path"] for file in told["files"]] == ["model.safetensors"]
    names = text_source.token_names(np.array([2, 4, 3]))
    assert names == ["[CLS]", "the", "[SEP]"]
    assert source(loaded("bert"), pooling="mean").token_names(np.array([2])) is None


@pytest.mark.parametrize("family", ONE_STACK)
def test_layers_out_of_range_are_refused_with_the_range(loaded: Any, family: str) -> None:
    with pytest.raises(InputError, match=r"there is no layer '4': the model has layers 0 to 3 \(or -4 to -1\)\.$"):
        source(loaded(family), layers="4")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"special_tokens": "some"}, "special tokens can be kept or dropped, got 'some'"),
        ({"batch_size": 0}, "the batch size is 0, expected at least 1"),
        ({"layers": "1+2"}, r"the mix of layers 1\+2 needs a pooling, such as --pooling mean"),
        ({"pooling": "middle"}, "there is no pooling 'middle'; known: mean, cls, last, max, weightedmean, first"),
        ({"pooling": "first+last", "layers": "2"}, r"the pooling first\+last names its layers itself"),
        ({"pooling": "mean", "layers": "encoder.1+decoder.1"}, "joins encoder and decoder layers, whose rows differ"),
        ({"pooling": "first+last"}, "joins encoder and decoder layers, whose rows differ"),
    ],
)
def test_bad_options_are_refused_in_one_sentence(loaded: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        source(loaded("t5"), **options)


def test_layers_of_different_widths_are_refused_unless_one_width_is_asked_for(loaded: Any) -> None:
    from transformers import OPTConfig, OPTModel

    config = OPTConfig(
        vocab_size=30,
        hidden_size=16,
        word_embed_proj_dim=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        ffn_dim=16,
        max_position_embeddings=64,
        do_layer_norm_before=False,
    )
    opt = Loaded(OPTModel(config).eval(), loaded("bert").tokenizer, "opt", None, "cpu", [])
    with pytest.raises(InputError, match=r"the layers of opt have different widths \(8, 16\); ask for layers of one"):
        source(opt)
    assert source(opt, layers="0,1").width == 16


def test_a_tokenizer_of_another_model_is_told_from_its_ids(loaded: Any) -> None:
    from dataclasses import replace

    other = replace(loaded("bert"), tokenizer=loaded("gpt2").tokenizer)
    with pytest.raises(InputError, match=r"does not know all token ids up to .* check that the tokenizer is its own"):
        list(source(other, texts(40)).batches())
