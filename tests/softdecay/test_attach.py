"""A SoftDecay layer inside real model classes: in its place, with the right mask, and out again without a trace."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from transformers import AutoModel, AutoModelForSequenceClassification

from isotrope import nn
from isotrope.errors import InputError, StoreError
from isotrope.softdecay.positions import Position, find_position
from testkit.networks import NORM_LAST, batch, network
from testkit.programs import run_program


def bent(hidden: torch.Tensor, mask: torch.Tensor, alpha: float = -0.5) -> torch.Tensor:
    """The shifted form for each sequence by numpy's SVD, which knows nothing of padding."""
    a, out = -alpha, torch.zeros_like(hidden)
    for i, row in enumerate(mask.bool()):
        u, values, v = np.linalg.svd(hidden[i, row].double().numpy(), full_matrices=False)
        f = np.log1p(a * values / (1 - a * a)) / a
        out[i, row] = torch.tensor((u * (f * values[0] / f[0])) @ v).to(hidden.dtype)
    return out


def seen(model: Any, module: torch.nn.Module, inputs: dict[str, Any], *, into: bool) -> list[torch.Tensor]:
    """What goes into a module, or comes out of it, each time that it is used."""
    found: list[torch.Tensor] = []

    def see(_: Any, args: Any, out: Any = None) -> None:
        value = args[0] if into else out
        found.append((value[0] if isinstance(value, tuple) else value).detach().clone())

    hook = module.register_forward_pre_hook(see) if into else module.register_forward_hook(see)
    with torch.no_grad():
        model(**inputs)
    hook.remove()
    return found


def run(model: Any, **inputs: Any) -> torch.Tensor:
    with torch.no_grad():
        return model(**inputs).last_hidden_state


@pytest.mark.parametrize("family", NORM_LAST)
def test_it_is_before_the_final_norm_of_the_last_block(family: str) -> None:
    model, inputs = network(family), batch()
    place = find_position(model)
    norm = model.get_submodule(place.module)
    assert place.before
    before = seen(model, norm, inputs, into=True)
    assert len(before) == (3 if family == "albert" else 1)  # shared weights: only the last time counts
    expected = norm(bent(before[-1], inputs["attention_mask"])).detach()
    nn.attach(model)
    real = inputs["attention_mask"].bool()
    assert_allclose(run(model, **inputs)[real], expected[real], rtol=0, atol=2e-5)


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen3", "modernbert", "mamba"])
@pytest.mark.parametrize("left", [False, True])
def test_it_is_after_the_last_block_of_others(family: str, left: bool) -> None:
    model, inputs = network(family), batch(left=left)
    place = find_position(model)
    assert not place.before
    (after,) = seen(model, model.get_submodule(place.module), inputs, into=False)
    norm = next(m for n, m in model.named_modules() if n in ("ln_f", "norm", "final_norm", "norm_f"))
    expected = norm(bent(after, inputs["attention_mask"])).detach()
    nn.attach(model)
    real = inputs["attention_mask"].bool()
    assert_allclose(run(model, **inputs)[real], expected[real], rtol=0, atol=2e-5)


@pytest.mark.parametrize("family", ["t5", "bart"])
@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_either_stack_of_an_encoder_decoder(family: str, side: str) -> None:
    model = network(family)
    stack = f"{side}.{'block' if family == 't5' else 'layers'}"
    first, second = batch(), batch((5, 2, 3), 5)
    inputs = {
        **first,
        "decoder_input_ids": second["input_ids"],
        "decoder_attention_mask": second["attention_mask"],
        "use_cache": False,
    }
    with pytest.raises(InputError, match=rf"{type(model).__name__} has several stacks of blocks; say which.*'{stack}'"):
        nn.attach(model)
    place = find_position(model, at=stack)
    (after,) = seen(model, model.get_submodule(place.module), inputs, into=False)
    nn.attach(model, at=stack)
    mask = (first if side == "encoder" else second)["attention_mask"]
    (found,) = seen(model, model.get_submodule(place.module), inputs, into=False)
    assert_allclose(found, bent(after, mask), rtol=0, atol=2e-5)


def test_images_and_speech_too() -> None:
    image, speech = network("vit"), network("wav2vec2")
    pixels = {"pixel_values": torch.randn(2, 3, 32, 32)}
    samples = {"input_values": torch.randn(2, 4000), "attention_mask": torch.ones(2, 4000, dtype=torch.long)}
    samples["attention_mask"][1, 2000:] = 0
    for model, inputs in ((image, pixels), (speech, samples)):
        module = model.get_submodule(find_position(model).module)
        (after,) = seen(model, module, inputs, into=False)
        mask = torch.ones(after.shape[:2])
        if model is speech:
            mask = model._get_feature_vector_attention_mask(after.shape[1], inputs["attention_mask"])
            assert 0 < mask[1].sum() < mask.shape[1]
        nn.attach(model)
        (found,) = seen(model, module, inputs, into=False)
        assert_allclose(found, bent(after, mask), rtol=0, atol=2e-5)


@pytest.mark.parametrize("family", ["bert", "albert", "llama"])
def test_any_other_block(family: str) -> None:
    model, inputs = network(family), batch()
    place = find_position(model, block=1)
    assert place == find_position(model, block=-2)
    module = model.get_submodule(place.module)
    expected = bent(seen(model, module, inputs, into=place.before)[place.use or 0], inputs["attention_mask"])
    if place.before:
        expected = module(expected).detach()
    nn.attach(model, block=1)
    with torch.no_grad():
        states = model(**inputs, output_hidden_states=True).hidden_states
    real = inputs["attention_mask"].bool()
    assert_allclose(states[2][real], expected[real], rtol=0, atol=2e-5)  # layer 0 is the embedding
    with pytest.raises(InputError, match=r"there is no block 3: .* has 3, 0 to 2, or −1 for the last"):
        find_position(model, block=3)


def test_albert_with_several_groups_and_layers_within_them() -> None:
    model = network("albert", num_hidden_layers=4, num_hidden_groups=2, inner_group_num=2)
    assert find_position(model) == Position(
        "encoder.albert_layer_groups.1.albert_layers.1.full_layer_layer_norm", before=True, owner="", use=1
    )
    assert find_position(model, block=2).use == 0
    assert find_position(model, block=1).module.startswith("encoder.albert_layer_groups.0.albert_layers.1.")


def test_a_named_place() -> None:
    model, inputs = network("bert"), batch()
    nn.attach(model, at="encoder.layer.1.attention.output.LayerNorm")
    before = run(model, **inputs)
    nn.detach(model)
    nn.attach(model, at="encoder.layer.1.attention")
    assert not torch.equal(run(model, **inputs), before)
    nn.detach(model)
    with pytest.raises(InputError, match=r"BertModel has no module 'encoder.layers'; .* are 'encoder.layer'"):
        nn.attach(model, at="encoder.layers")


@pytest.mark.parametrize("family", [*NORM_LAST, "gpt2", "llama", "mamba"])
def test_detached_it_leaves_no_trace(family: str) -> None:
    model, inputs = network(family), batch()
    names, settings, expected = list(model.state_dict()), model.config.to_dict(), run(model, **inputs)
    layer = nn.attach(model, -0.3)
    assert nn.detach(model) is layer
    assert list(model.state_dict()) == names
    assert model.config.to_dict() == settings
    assert torch.equal(run(model, **inputs), expected)
    assert not any(m._forward_hooks or m._forward_pre_hooks or "forward" in vars(m) for m in model.modules())
    with pytest.raises(InputError, match=r"has no SoftDecay layer; attach one first"):
        nn.detach(model)


def test_twice_is_refused() -> None:
    model = network("bert")
    nn.attach(model)
    with pytest.raises(InputError, match=r"BertModel has a SoftDecay layer already; detach it first"):
        nn.attach(model)


@pytest.mark.parametrize("family", [*NORM_LAST, "llama"])
def test_padding_changes_neither_output_nor_gradient(family: str) -> None:
    results = []
    for longest in (7, 11):
        model = network(family, "AutoModelForSequenceClassification", num_labels=2, pad_token_id=0).double()
        inputs = batch((7, 4, 2), longest)
        layer = nn.attach(model)
        logits = model(**inputs).logits
        logits.square().sum().backward()
        results.append([logits.detach(), layer.raw_alpha.grad, *(p.grad for p in model.parameters())])
    for one, other in zip(*results, strict=True):
        if other is not None:
            assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def test_without_a_mask_every_row_counts() -> None:
    model, inputs = network("bert"), batch((7, 7), 7)
    nn.attach(model)
    assert_allclose(run(model, **inputs), run(model, input_ids=inputs["input_ids"]), rtol=0, atol=1e-6)
    with torch.no_grad():
        positional = model(inputs["input_ids"], inputs["attention_mask"]).last_hidden_state
    assert_allclose(run(model, **inputs), positional, rtol=0, atol=1e-6)


@pytest.mark.parametrize("family", [*NORM_LAST, "gpt2", "llama", "modernbert"])
def test_a_sequence_that_is_all_padding_stays_finite(family: str) -> None:
    model, inputs = network(family), batch((7, 0, 3), 7)
    layer = nn.attach(model)
    out = model(**inputs).last_hidden_state
    assert torch.isfinite(out).all()
    out[inputs["attention_mask"].bool()].square().sum().backward()
    assert torch.isfinite(layer.raw_alpha.grad).all()  # type: ignore[arg-type]
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("family", [*NORM_LAST, "gpt2", "llama", "modernbert"])
def test_sequences_of_one_token_stay_as_they_are(family: str) -> None:
    model, inputs = network(family), batch((1, 1), 1)
    expected = run(model, **inputs)
    layer = nn.attach(model)
    out = model(**inputs).last_hidden_state
    assert_allclose(out.detach(), expected, rtol=0, atol=1e-6)
    out.square().sum().backward()
    assert float(layer.raw_alpha.grad) == pytest.approx(0, abs=1e-12)  # type: ignore[arg-type]


def test_places_that_hold_no_rows_of_tokens_are_refused() -> None:
    model = network("xlnet")
    nn.attach(model)
    with pytest.raises(InputError, match=r"XLNetModel at this place have shape \(7, 3, 16\), expected \(3, 7\) and"):
        model(**batch())


@pytest.mark.parametrize("family", ["bert", "roberta", "electra"])
def test_blocks_that_see_a_part_of_the_tokens_at_a_time_are_refused(family: str) -> None:
    model = network(family, chunk_size_feed_forward=4)
    nn.attach(model)
    with pytest.raises(InputError, match=r"have shape \(2, 4, 16\), expected \(2, 8\) .* chunk_size_feed_forward to 0"):
        model(**batch((8, 4), 8))


def test_fewer_rows_than_the_mask_has_are_refused() -> None:
    """Whisper halves what it hears: its mask says nothing of the rows that are left."""
    model = network("whisper")
    nn.attach(model, at="encoder.layers")
    heard = {"input_features": torch.randn(2, 8, 20), "decoder_input_ids": torch.ones(2, 3, dtype=torch.long)}
    assert torch.isfinite(run(model, **heard)).all()
    with pytest.raises(InputError, match=r"attention mask has shape \(2, 20\), expected \(2, 10\)"):
        model.encoder(heard["input_features"], attention_mask=torch.ones(2, 20))


@pytest.mark.parametrize("left", [False, True])
def test_with_a_cache_the_mask_of_the_tokens_that_are_run_counts(left: bool) -> None:
    model, inputs = network("llama"), batch((7, 6, 5), 7, left=left)
    place = find_position(model)
    ids, mask = inputs["input_ids"], inputs["attention_mask"]

    def last(model: Any) -> list[torch.Tensor]:
        known = model(input_ids=ids[:, :4], attention_mask=mask[:, :4], use_cache=True).past_key_values
        rest = {"input_ids": ids[:, 4:], "attention_mask": mask, "past_key_values": known}
        return seen(model, model.get_submodule(place.module), rest, into=False)

    (after,) = last(model)
    nn.attach(model)
    (found,) = last(model)
    assert_allclose(found, bent(after, mask[:, 4:]), rtol=0, atol=2e-5)


def test_masks_of_other_shapes_are_refused() -> None:
    model, inputs = network("bert"), batch()
    nn.attach(model)
    with pytest.raises(InputError, match=r"mask has shape \(3, 1, 7, 7\), expected \(3, 7\), 1 for tokens"):
        model(inputs["input_ids"], attention_mask=torch.ones(3, 1, 7, 7))


def test_what_is_no_model_with_blocks_is_refused() -> None:
    with pytest.raises(InputError, match=r"Linear has no stack of blocks that could be recognised; name the module"):
        nn.attach(torch.nn.Linear(3, 3))
    with pytest.raises(InputError, match=r"expected a torch model, .* got str"):
        nn.attach("bert-base-uncased")
    with pytest.raises(InputError, match="alpha is -2, expected −1 < alpha < 0 for the form 'shifted'"):
        nn.attach(network("bert"), alpha=-2)


def test_a_model_of_ones_own() -> None:
    """Nothing of transformers is needed where the place is named."""
    first, norm = torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)
    x = torch.randn(2, 5, 4)
    expected = norm(bent(first(x).detach(), torch.ones(2, 5))).detach()
    model = torch.nn.Sequential(first, norm)
    nn.attach(model, at="1")
    assert_allclose(model(x).detach(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", [*NORM_LAST, "llama"])
@pytest.mark.parametrize("head", [False, True])
def test_saved_with_the_model_and_restored(family: str, head: bool, tmp_path: Path) -> None:
    auto = AutoModelForSequenceClassification if head else AutoModel
    model = network(family, auto.__name__, pad_token_id=0)
    layer = nn.attach(model, -0.7, block=1)
    with torch.no_grad():
        layer.raw_alpha += 0.123  # as if trained
    model.save_pretrained(tmp_path, max_shard_size="10KB" if head else "5GB")
    again = auto.from_pretrained(tmp_path)
    restored = nn.restore(again)
    assert restored.alpha == layer.alpha != pytest.approx(-0.7)
    inputs = batch((7, 7), 7)
    with torch.no_grad():
        assert torch.equal(again(**inputs)[0], model(**inputs)[0])
    base = AutoModel.from_pretrained(tmp_path)  # the head left away
    assert nn.restore(base).alpha == layer.alpha


def test_restored_by_a_program_that_knows_nothing_but_the_folder(tmp_path: Path) -> None:
    model, inputs = network("bert", "AutoModelForSequenceClassification", num_labels=2), batch()
    layer = nn.attach(model, -0.7, block=1)
    with torch.no_grad():
        layer.raw_alpha -= 0.4  # as if trained
        torch.save({"inputs": inputs, "logits": model(**inputs).logits}, tmp_path / "said.pt")
    model.save_pretrained(tmp_path / "saved")
    program = (
        "import torch; from transformers import AutoModelForSequenceClassification as Auto;"
        "from isotrope import nn;"
        "model = Auto.from_pretrained('saved'); layer = nn.restore(model);"
        "said = torch.load('said.pt'); found = model(**said['inputs']).logits;"
        "print(layer.alpha, float((found - said['logits']).abs().max()))"
    )
    done = run_program(program, tmp_path)
    assert done.code == 0, done.err
    alpha, apart = map(float, done.out.split())
    assert alpha == layer.alpha != pytest.approx(-0.7)
    assert apart < 1e-6


def test_a_named_stack_is_restored_too(tmp_path: Path) -> None:
    model = network("t5")
    layer = nn.attach(model, -0.4, "clipped", trainable=False, at="encoder.block", block=0)
    model.save_pretrained(tmp_path)
    again = AutoModel.from_pretrained(tmp_path)
    restored = nn.restore(again, tmp_path)
    assert (restored.alpha, restored.form) == (layer.alpha, "clipped")
    assert not restored.raw_alpha.requires_grad
    assert again.encoder.block[0].softdecay is restored


def test_of_a_model_on_the_hub_any_revision_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache with two revisions, the newer one of which is main."""
    old, new, cache = "a" * 40, "b" * 40, tmp_path / "models--someone--bert"
    for revision, alpha in ((old, -0.3), (new, -0.8)):
        model = network("bert")
        nn.attach(model, alpha)
        model.save_pretrained(cache / "snapshots" / revision)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text(new)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for revision, alpha in ((old, -0.3), ("main", -0.8)):
        model = AutoModel.from_pretrained("someone/bert", revision=revision)
        assert nn.restore(model, revision=revision).alpha == pytest.approx(alpha, rel=1e-6)


def test_what_cannot_be_restored(tmp_path: Path) -> None:
    model = network("bert")
    with pytest.raises(InputError, match="was saved without a SoftDecay layer; use attach"):
        nn.restore(model)
    nn.attach(model)
    model.save_pretrained(tmp_path)
    again = AutoModel.from_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(StoreError, match=r"there is no model.safetensors in .*; give the folder"):
        nn.restore(again)
    network("bert").save_pretrained(tmp_path)
    with pytest.raises(StoreError, match=r"hold no SoftDecay layer; save the model with the layer attached"):
        nn.restore(again)


def test_a_copy_runs_on_its_own() -> None:
    model, inputs = network("albert"), batch()
    layer = nn.attach(model)
    expected = run(model, **inputs)
    other = copy.deepcopy(model)
    with torch.no_grad():
        layer.raw_alpha += 1.0
    assert torch.equal(run(other, **inputs), expected)
    assert not torch.equal(run(model, **inputs), expected)
    assert nn.detach(other).alpha == -0.5


def losses(model: Any) -> torch.Tensor:
    """Two forward passes with other masks before one backward pass, as siamese training has it."""
    first, second = batch((7, 4, 2), 7), batch((2, 6, 7), 7)
    return model(**first).last_hidden_state[:, 0].square().sum() + model(**second).last_hidden_state[:, 0].sum()


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "electra", "deberta", "deberta-v2", "llama"])
def test_gradient_checkpointing_changes_nothing(family: str, reentrant: bool) -> None:
    dropout = {"distilbert": ("dropout", "attention_dropout")}.get(
        family, ("hidden_dropout_prob", "attention_probs_dropout_prob")
    )
    gradients = []
    for checkpointing in (False, True):
        model = network(family, **dict.fromkeys(dropout, 0.0)).train()
        nn.attach(model, block=1)
        if checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": reentrant})
            model.enable_input_require_grads()
        losses(model).backward()
        gradients.append({n: p.grad for n, p in model.named_parameters() if p.grad is not None})
        assert sum(getattr(m, "gradient_checkpointing", False) is True for m in model.modules()) >= 3 * checkpointing
    assert gradients[0].keys() == gradients[1].keys()
    for name, one in gradients[0].items():
        assert_allclose(one, gradients[1][name], rtol=1e-4, atol=1e-5 * float(one.abs().max()), err_msg=name)


def test_a_checkpoint_of_another_kind_is_refused_and_not_wrong() -> None:
    from torch.utils.checkpoint import checkpoint

    model = network("bert").train()
    nn.attach(model)
    block = model.encoder.layer[-1]
    inside = block.forward
    block.forward = lambda *args, **kwargs: checkpoint(inside, *args, use_reentrant=False, **kwargs)
    out = model(**batch()).last_hidden_state
    with pytest.raises(InputError, match=r"LayerNorm, which has a SoftDecay layer, was run outside the forward pass"):
        out.sum().backward()


def test_data_parallel_copies_are_refused() -> None:
    model = network("bert")
    nn.attach(model)
    model._is_replica = True  # as torch.nn.DataParallel marks them
    with pytest.raises(InputError, match=r"SoftDecay does not run in torch.nn.DataParallel.*torchrun"):
        model(**batch())


def test_distributed_training_finds_the_layer(tmp_path: Path) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'rendezvous'}", rank=0, world_size=1)
    try:
        model = torch.nn.parallel.DistributedDataParallel(network("bert").train(), find_unused_parameters=True)
        layer = nn.attach(network("bert"))
        inner = nn.attach(model)
        wrapped = torch.nn.parallel.DistributedDataParallel(model.module, find_unused_parameters=True)
        wrapped(**batch()).last_hidden_state.square().sum().backward()
        assert inner.raw_alpha.grad is not None
        assert layer.raw_alpha.grad is None
        assert nn.detach(wrapped) is inner
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.long
def test_the_whole_model_compiles() -> None:
    model, inputs = network("bert"), batch()
    layer = nn.attach(model)
    model(**inputs).last_hidden_state.square().sum().backward()
    expected, slope = run(model, **inputs), layer.raw_alpha.grad
    layer.raw_alpha.grad = None
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    out = compiled(**inputs).last_hidden_state
    out.square().sum().backward()
    assert_allclose(out.detach(), expected, rtol=0, atol=1e-5)
    assert_allclose(layer.raw_alpha.grad, slope, rtol=1e-4)
    other = batch((3, 7, 5), 7)
    with torch.no_grad():
        assert_allclose(compiled(**other).last_hidden_state, run(model, **other), rtol=0, atol=1e-5)
    assert nn.detach(compiled) is layer
    with torch.no_grad():
        assert_allclose(compiled(**inputs).last_hidden_state, run(network("bert"), **inputs), rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_models_in_half_precision_and_autocast(dtype: torch.dtype) -> None:
    model, inputs = network("bert"), batch()
    nn.attach(model)
    expected = run(model, **inputs)
    real = inputs["attention_mask"].bool()
    with torch.autocast("cpu", dtype=dtype):
        assert float((run(model, **inputs) - expected)[real].abs().max()) < 0.1
    model.to(dtype)
    out = model(**inputs).last_hidden_state
    assert out.dtype == dtype
    assert float((out.detach() - expected)[real].abs().max()) < 0.2
    out.float().square().sum().backward()


def test_next_tokens_are_warned_of_and_still_generated() -> None:
    model = network("gpt2", "AutoModelForCausalLM")
    with pytest.warns(UserWarning, match=r"GPT2LMHeadModel predicts next tokens, and SoftDecay mixes all tokens"):
        nn.attach(model)
    out = model.generate(**batch(left=True), max_new_tokens=3, do_sample=False, pad_token_id=0)
    assert out.shape == (3, 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.attach(network("gpt2"))


def test_alpha_gets_a_rate_of_its_own() -> None:
    model = network("bert")
    layer = nn.attach(model)
    model.embeddings.requires_grad_(False)
    groups = nn.parameter_groups(model, lr=1e-5, softdecay_lr=1e-2, weight_decay=0.1)
    assert [(g["lr"], g["weight_decay"]) for g in groups] == [(1e-5, 0.1), (1e-5, 0.0), (1e-2, 0.0)]
    assert [id(p) for p in groups[2]["params"]] == [id(layer.raw_alpha)]
    assert all(p.ndim > 1 for p in groups[0]["params"])
    assert sum(len(g["params"]) for g in groups) == sum(p.requires_grad for p in model.parameters())
    fixed = network("bert")
    nn.attach(fixed, trainable=False)
    assert len(nn.parameter_groups(fixed)) == 2


@pytest.mark.parametrize(
    ("form", "alpha"), [("shifted", -0.5), ("shifted", -0.2), ("shifted", -0.999), ("paper", -0.8), ("clipped", -1.7)]
)
def test_alpha_stays_inside_its_domain_however_far_it_is_pushed(form: str, alpha: float) -> None:
    layer = nn.SoftDecay(alpha, form)
    assert layer.alpha == pytest.approx(alpha, rel=1e-6)
    assert not nn.SoftDecay(alpha, form, trainable=False).raw_alpha.requires_grad
    x = torch.tensor(np.diag([9e7, 8e7, 5e7]))
    for push in (-1e6, -50.0, 50.0, 1e6):
        if form != "shifted" and push > 0:
            continue  # there α has no other end
        with torch.no_grad():
            layer.raw_alpha.fill_(push)
        assert -1 < layer.alpha < 0
        out = layer(x.requires_grad_())
        assert torch.isfinite(out).all()
        grads: Callable[..., Any] = torch.autograd.grad
        assert all(torch.isfinite(g).all() for g in grads(out.sum(), [x, layer.raw_alpha]))
