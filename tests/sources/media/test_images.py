"""Images: every architecture's layers, rows and widths counted by hand, rows against the library's own states."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.sources.input import Input
from isotrope.sources.models.load import Loaded, load
from isotrope.statistics import Collection, Wanted
from testkit.media_models import IMAGES, SIZE, random_model, save_image_model, write_image_processor
from testkit.models import package_file

Image = pytest.importorskip("PIL.Image")

COUNT = 3


def picture(seed: int, size: tuple[int, int] = (40, 50)) -> Any:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 255, (*size, 3), dtype=np.uint8))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    for i in range(COUNT):
        (folder / f"class{i % 2}").mkdir(exist_ok=True)
        picture(i).save(folder / f"class{i % 2}" / f"{i}.png")
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in made:
            made[name] = save_image_model(tmp_path_factory.mktemp(name), name)
        return made[name]

    return make


def by_hand(folder: Path, paths: list[Path]) -> list[np.ndarray]:
    """Hidden states (b, t, d) of the class itself, places of maps picked one by one; the last after the final norm."""
    import torch
    from transformers import AutoImageProcessor, AutoModel

    network = AutoModel.from_pretrained(folder).eval()
    processor = AutoImageProcessor.from_pretrained(folder, use_fast=False)
    pixels = processor(images=[Image.open(p) for p in paths], return_tensors="pt")["pixel_values"]
    assert pixels.shape[-2:] == (SIZE, SIZE)
    with torch.inference_mode():
        out = network(pixel_values=pixels, output_hidden_states=True)
    states, last = list(out.hidden_states), out.last_hidden_state
    states = [*states[:-1], last] if last.shape == states[-1].shape else [*states, last]
    found = []
    for state in states:
        if state.ndim == 4:
            _, _, height, width = state.shape
            state = torch.stack([state[:, :, y, x] for y in range(height) for x in range(width)], dim=1)
        found.append(state.numpy())
    return found


def rows_of(source: Any) -> dict[Any, tuple[np.ndarray, Any]]:
    """Rows of each layer in the order of the images, and what is known of them."""
    layers: dict[Any, list[Any]] = {}
    for batch in source.batches():
        for label, rows in batch.layers.items():
            layers.setdefault(label, []).append((rows.numpy(), batch.rows))
    found = {}
    for label, parts in layers.items():
        rows = np.concatenate([part for part, _ in parts])
        sequence = np.concatenate([known.sequence for _, known in parts])
        order = np.argsort(sequence, kind="stable")
        token = None if parts[0][1].token is None else np.concatenate([known.token for _, known in parts])[order]
        found[label] = (rows[order], token)
    return found


@pytest.mark.parametrize("name", IMAGES)
def test_layers_rows_and_widths_are_those_counted_by_hand(
    name: str, model: Callable[[str], Path], pictures: Path
) -> None:
    source = Input(model=str(model(name)), text=str(pictures), batch_size=2).open()
    expected = IMAGES[name][2]
    assert len(source.layers) == len(expected)
    assert source.width == max(width for _, width in expected)
    states = by_hand(model(name), sorted(pictures.rglob("*.png"), key=lambda p: p.relative_to(pictures).as_posix()))
    for label, (rows, token) in rows_of(source).items():
        count, width = expected[label]
        assert rows.shape == (COUNT * count, width)
        assert token is not None
        assert len(set(token.tolist())) == count  # each place is a type, the same in all images
        np.testing.assert_allclose(rows, states[label].reshape(-1, width), rtol=1e-4, atol=1e-4)


def test_places_and_special_tokens(model: Callable[[str], Path], pictures: Path) -> None:
    source = Input(model=str(model("vit")), text=str(pictures)).open()
    (batch,) = source.batches()
    names = source.token_names(batch.rows.token[:17])
    assert names == ["special 0", *(f"{y},{x}" for y in range(4) for x in range(4))]
    assert batch.rows.special.reshape(COUNT, 17).sum(axis=0).tolist() == [COUNT] + [0] * 16
    dropped = Input(model=str(model("vit")), text=str(pictures), special_tokens="drop").open()
    (without,) = dropped.batches()
    np.testing.assert_array_equal(
        without.layers[0].numpy(), batch.layers[0].numpy().reshape(COUNT, 17, 16)[:, 1:].reshape(-1, 16)
    )


@pytest.mark.parametrize("name", ["vit", "deit", "swin"])
def test_the_state_before_the_final_norm(name: str, model: Callable[[str], Path], pictures: Path) -> None:
    import torch
    from transformers import AutoModel

    source = Input(model=str(model(name)), text=str(pictures), layers="-1,L.before_norm").open()
    (batch,) = source.batches()
    norm = AutoModel.from_pretrained(model(name)).layernorm
    with torch.inference_mode():
        np.testing.assert_allclose(
            norm(batch.layers["2.before_norm"]).numpy(), batch.layers[2].numpy(), rtol=1e-4, atol=1e-5
        )


def test_pooling_gives_a_row_for_each_image(model: Callable[[str], Path], pictures: Path) -> None:
    tokens = rows_of(Input(model=str(model("resnet")), text=str(pictures)).open())
    pooled = rows_of(Input(model=str(model("resnet")), text=str(pictures), pooling="mean").open())
    np.testing.assert_allclose(pooled[2][0], tokens[2][0].reshape(COUNT, 16, 16).mean(axis=1), rtol=1e-4, atol=1e-5)


def test_starting_later_is_skipping_and_groups_are_folders(model: Callable[[str], Path], pictures: Path) -> None:
    source = Input(model=str(model("resnet")), text=str(pictures), batch_size=2, group_by="folder").open()
    everything = list(source.batches())
    assert len(everything) == 2 * source.parts
    for start in (1, source.parts, source.parts + 1):
        for mine, theirs in zip(source.batches(start), everything[start:], strict=True):
            assert list(mine.layers) == list(theirs.layers)
            np.testing.assert_array_equal(mine.rows.sequence, theirs.rows.sequence)
    assert {str(g) for batch in everything for g in batch.rows.group} == {"class0", "class1"}


def test_broken_images_are_counted_and_left_out(model: Callable[[str], Path], tmp_path: Path) -> None:
    for i in range(2):
        picture(i).save(tmp_path / f"{i}.png")
    (tmp_path / "a.jpg").write_text("no image")
    whole = io.BytesIO()
    picture(3, (200, 200)).save(whole, "PNG")
    (tmp_path / "z.png").write_bytes(whole.getvalue()[:2000])
    collection = Collection(Wanted())
    for batch in Input(model=str(model("vit")), text=str(tmp_path)).open().batches():
        collection.update(batch)
    assert dict(collection.counts) == {"images": 4, "broken_images": 2}
    assert collection.layer(0).moments.n == 2 * 17
    only = tmp_path / "only"
    only.mkdir()
    (only / "a.jpg").write_text("no image")
    with pytest.raises(InputError, match="none of the images in only can be used"):
        Input(model=str(model("vit")), text=str(only)).open()


@pytest.mark.parametrize("nested", [True, False])
def test_parquet_with_bytes(model: Callable[[str], Path], pictures: Path, tmp_path: Path, nested: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = sorted(pictures.rglob("*.png"), key=lambda p: p.relative_to(pictures).as_posix())
    held = [{"bytes": p.read_bytes(), "path": p.name} if nested else p.read_bytes() for p in paths]
    pq.write_table(pa.table({"picture": held, "label": list("abc")}), tmp_path / "p.parquet")
    table = Input(model=str(model("vit")), text=str(tmp_path / "p.parquet"), group_by="label").open()
    assert table.total == COUNT
    (batch,) = table.batches()
    (files,) = Input(model=str(model("vit")), text=str(pictures)).open().batches()
    np.testing.assert_array_equal(batch.layers[2].numpy(), files.layers[2].numpy())
    assert set(batch.rows.group.tolist()) == set("abc")


def test_a_dataset_saved_in_memory_or_streaming(model: Callable[[str], Path], pictures: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    paths = sorted(pictures.rglob("*.png"), key=lambda p: p.relative_to(pictures).as_posix())
    made = datasets.Dataset.from_dict({"image": [str(p) for p in paths]}).cast_column("image", datasets.Image())
    made.save_to_disk(tmp_path / "set")
    (files,) = Input(model=str(model("vit")), text=str(pictures)).open().batches()
    for given in (str(tmp_path / "set"), made, made.to_iterable_dataset()):
        (batch,) = Input(model=str(model("vit")), text=given).open().batches()
        np.testing.assert_array_equal(batch.layers[2].numpy(), files.layers[2].numpy())


def test_a_model_with_two_towers_reads_what_it_is_given(pictures: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    import transformers

    datasets = pytest.importorskip("datasets")

    from testkit.models import FAMILIES, _tokenizer

    tokenizer = _tokenizer(FAMILIES["bert"])
    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    config = transformers.CLIPConfig(
        text_config={**small, "vocab_size": len(tokenizer), "max_position_embeddings": 32, "eos_token_id": 3},
        vision_config={**small, "image_size": SIZE, "patch_size": 8},
    )
    clip = random_model(config)
    clip.save_pretrained(tmp_path)
    write_image_processor(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    seen = Input(model=str(tmp_path), text=str(pictures)).open()
    (batch,) = seen.batches()
    assert seen.describe()["modality"] == "image"
    assert batch.layers[0].shape == (COUNT * 17, 16)
    read = Input(model=str(tmp_path), text=["the cat sat", "on a mat"]).open()
    (batch,) = read.batches()
    assert read.describe()["modality"] == "text"
    assert batch.layers[0].shape == (5 + 5, 16)
    paths = [str(path) for path in pictures.rglob("*.png")]
    table = pa.table({"picture": [Path(path).read_bytes() for path in paths], "said": ["a cat"] * COUNT})
    pq.write_table(table, tmp_path / "p.parquet")
    held = datasets.Dataset.from_dict({"image": paths}).cast_column("image", datasets.Image())
    cases = [
        ([picture(0)], None, "image"),
        (paths, None, "image"),
        (tmp_path / "p.parquet", None, "image"),
        (tmp_path / "p.parquet", "said", "text"),
        (held, None, "image"),
        (None, None, "text"),
    ]
    for given, column, kind in cases:
        assert Input(model=str(tmp_path), text=given, column=column).modality() == kind


def test_the_part_of_llava_that_sees_is_a_clip_of_its_own(pictures: Path, tmp_path: Path) -> None:
    import transformers

    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    config = transformers.LlavaConfig(
        vision_config={"model_type": "clip_vision_model", **small, "image_size": SIZE, "patch_size": 8},
        text_config={"model_type": "llama", **small, "vocab_size": 50},
    )
    whole = random_model(config)
    whole.save_pretrained(tmp_path / "llava")
    whole.vision_tower.save_pretrained(tmp_path / "clip")
    write_image_processor(tmp_path / "llava")
    write_image_processor(tmp_path / "clip")
    mine, alone = (rows_of(Input(model=str(tmp_path / n), text=str(pictures)).open()) for n in ("llava", "clip"))
    assert list(mine) == [0, 1, 2]
    for label, (rows, _) in mine.items():
        np.testing.assert_array_equal(rows, alone[label][0])


def test_a_model_trained_with_patches_left_out_gets_all_of_them_in_order(pictures: Path, tmp_path: Path) -> None:
    """ViTMAE with the weights of a ViT is that ViT."""
    import transformers

    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    mae = random_model(transformers.ViTMAEConfig(**small, image_size=SIZE, patch_size=8))
    vit = transformers.ViTModel(transformers.ViTConfig(**small, image_size=SIZE, patch_size=8), add_pooling_layer=False)
    missing, unknown = vit.load_state_dict(mae.state_dict(), strict=False)
    assert (missing, unknown) == ([], [])
    for name, network in {"mae": mae, "vit": vit}.items():
        network.save_pretrained(tmp_path / name)
        write_image_processor(tmp_path / name)
    found, wanted = (rows_of(Input(model=str(tmp_path / n), text=str(pictures)).open()) for n in ("mae", "vit"))
    for label in range(3):
        assert found[label][0].shape == (COUNT * 17, 16)
        np.testing.assert_allclose(found[label][0], wanted[label][0], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(found[label][1], wanted[label][1])


def test_a_class_that_nobody_named_works_by_its_hook_or_says_which(pictures: Path) -> None:
    import torch

    net = torch.nn.Sequential()
    net.add_module("stem", torch.nn.Conv2d(3, 4, 4, stride=4))
    net.add_module("blocks", torch.nn.Sequential(torch.nn.Conv2d(4, 6, 2, stride=2), torch.nn.ReLU()))

    def prepare(image: Any) -> Any:
        return torch.from_numpy(np.array(image.resize((16, 16)))).permute(2, 0, 1).float() / 255

    loaded = Loaded(net.eval(), None, "mine", modality="image", processor=prepare)
    with pytest.raises(InputError, match=r"mine \(Sequential\) gives no hidden states; .* --hook, such as blocks\.\*"):
        Input(model=loaded, text=str(pictures)).open()
    with pytest.raises(InputError, match=r"no module of the model is named 'layers\.\*'; name the modules"):
        Input(model=loaded, text=str(pictures), hooks="layers.*").open()
    source = Input(model=loaded, text=str(pictures), hooks="stem,blocks.*").open()
    assert source.layer_names == {0: "stem", 1: "blocks.0", 2: "blocks.1"}
    found = rows_of(source)
    assert [found[i][0].shape for i in range(3)] == [(COUNT * 16, 4), (COUNT * 4, 6), (COUNT * 4, 6)]
    np.testing.assert_array_equal(found[2][0], np.maximum(found[1][0], 0))


@pytest.mark.long
def test_van_which_transformers_dropped_comes_with_its_own_code(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The class that transformers had until version 5, from a wheel of version 4, as a model with code of its own."""
    import torch
    from safetensors.torch import save_file
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    files = [package_file("transformers==4.49.0", name) for name in ("configuration_van.py", "modeling_van.py")]
    code = "\n".join(file.read_text("utf-8") for file in files).replace("from ....", "from transformers.")
    (tmp_path / "van.py").write_text(code.replace("from .configuration_van import VanConfig\n", ""))
    auto = {"AutoConfig": "van.VanConfig", "AutoModel": "van.VanModel"}
    sizes = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1], "mlp_ratios": [2, 2, 2, 2]}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "van", "auto_map": auto, **sizes}))
    write_image_processor(tmp_path)
    kind = get_class_from_dynamic_module(auto["AutoModel"], str(tmp_path))
    torch.manual_seed(0)
    network = kind(kind.config_class(**sizes)).eval()
    save_file(network.state_dict(), tmp_path / "model.safetensors", metadata={"format": "pt"})
    source = Input(model=str(tmp_path), text=str(pictures), trust_remote_code=True).open()
    # four stages, at a fourth of the image and then half of the one before
    expected = [(64, 8), (16, 16), (4, 24), (1, 32)]
    found = rows_of(source)
    assert [found[i][0].shape for i in range(4)] == [(COUNT * rows, width) for rows, width in expected]
    assert len(source.layers) == 4
    paths = sorted(pictures.rglob("*.png"), key=lambda p: p.relative_to(pictures).as_posix())
    pixels = source.loaded.processor(images=[Image.open(p) for p in paths], return_tensors="pt")["pixel_values"]
    with torch.inference_mode():
        states = network(pixel_values=pixels, output_hidden_states=True).hidden_states
    for label, (rows, _) in found.items():
        state = states[label]
        _, width, high, wide = state.shape
        wanted = torch.stack([state[:, :, y, x] for y in range(high) for x in range(wide)], dim=1).reshape(-1, width)
        np.testing.assert_allclose(rows, wanted.numpy(), rtol=1e-4, atol=1e-4)


def test_an_image_model_refuses_to_read_text(model: Callable[[str], Path]) -> None:
    with pytest.raises(InputError, match=r"reads images and got text; give it images"):
        load(model("vit"))


@pytest.mark.parametrize("name", ["resnet", "convnext", "efficientnet"])
def test_whole_maps_are_one_row_for_each_image(name: str, model: Callable[[str], Path], pictures: Path) -> None:
    """All numbers of a map in a row; the mean cosine is that of the maps themselves, whatever the order."""
    paths = sorted(pictures.rglob("*.png"))
    places = rows_of(Input(model=str(model(name)), text=[str(p) for p in paths], in_order=True).open())
    whole = rows_of(Input(model=str(model(name)), text=[str(p) for p in paths], in_order=True, maps="whole").open())
    assert whole.keys() == places.keys()
    for layer, (count, width) in enumerate(IMAGES[name][2]):
        assert whole[layer][0].shape == (COUNT, count * width)
        by_image = places[layer][0].reshape(COUNT, count * width)
        np.testing.assert_allclose(np.sort(whole[layer][0]), np.sort(by_image), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(whole[layer][0] @ whole[layer][0].T, by_image @ by_image.T, rtol=1e-4)


def test_whole_maps_leave_sequences_as_they_are(model: Callable[[str], Path], pictures: Path) -> None:
    shapes = [
        {layer: found[0].shape for layer, found in rows_of(source).items()}
        for source in (
            Input(model=str(model("vit")), text=str(pictures), maps=maps).open() for maps in ("places", "whole")
        )
    ]
    assert shapes[0] == shapes[1]


def test_what_whole_maps_are_refused_for(model: Callable[[str], Path], pictures: Path, tmp_path: Path) -> None:
    network = load(model("resnet"), device="cpu", modality="image").model

    def prepare(image: Any) -> Any:
        import torch

        return torch.from_numpy(np.asarray(image, dtype=np.float32).transpose(2, 0, 1)[None] / 255)

    loaded = Loaded(network, None, "mine", modality="image", processor=prepare)
    for i, size in enumerate(((32, 32), (40, 32))):
        picture(i, size).save(tmp_path / f"{i}.png")
    reading: dict[str, Any] = {"model": loaded, "text": str(tmp_path), "hooks": "encoder.stages.*"}
    list(Input(**reading).open().batches())
    with pytest.raises(InputError, match=r"whole maps can be compared for images of one size only"):
        list(Input(**reading, maps="whole").open().batches())
    with pytest.raises(InputError, match=r"the rows of maps of a model of images are places or whole, not 'parts'"):
        Input(model=str(model("resnet")), text=str(pictures), maps="parts").open()
    with pytest.raises(InputError, match=r"text has no maps; leave maps out"):
        Input(text=["one text"], maps="whole").open()
    with pytest.raises(InputError, match=r"vectors have no use for maps"):
        Input(vectors=np.ones((3, 2)), maps="whole").open()


def test_maps_that_are_too_wide(model: Callable[[str], Path], pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isotrope.sources.media.source._WIDEST", 100)
    with pytest.raises(InputError, match=r"have up to 512 numbers, and rows have at most 100; name layers"):
        Input(model=str(model("resnet")), text=str(pictures), maps="whole").open()
