"""Small random networks of the published structure of CharacterBERT and MANTa, and CharacterBERT's tokenizer.

Neither is in a package, so that their weights cannot be tried; these have the modules that the papers describe.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import BertConfig, BertModel, PreTrainedConfig, PreTrainedModel, T5Config
from transformers.modeling_outputs import Seq2SeqModelOutput
from transformers.models.t5.modeling_t5 import T5Stack

#: Characters of a word with the marks of its beginning and end, ids of padding and of the marks, and all ids.
WORD, PADDING, BEGINNING, END, IDS = 12, 260, 258, 259, 263


class CharacterTokenizer:
    """Words as ids of their UTF-8 bytes between two marks, as ELMo and CharacterBERT spell them, 1 added to each."""

    pad_token_id, model_max_length = 0, 64

    def __call__(self, texts: list[str], **_: Any) -> dict[str, Any]:
        words = [["[CLS]", *text.split(), "[SEP]"] for text in texts]
        special = [[1, *[0] * (len(line) - 2), 1] for line in words]
        return {"input_ids": [[self.spell(word) for word in line] for line in words], "special_tokens_mask": special}

    @staticmethod
    def spell(word: str) -> list[int]:
        marks = {"[CLS]": [256], "[SEP]": [257]}
        held = [BEGINNING, *marks.get(word, list(word.encode()[: WORD - 2])), END]
        return [each + 1 for each in [*held, *[PADDING] * (WORD - len(held))]]


class CharacterCnn(torch.nn.Module):
    """Characters of a word to one row: convolutions of several widths, maxima, two highway layers and a projection."""

    def __init__(self, width: int, filters: tuple[tuple[int, int], ...] = ((1, 4), (2, 4), (3, 8))) -> None:
        super().__init__()
        self.characters = torch.nn.Embedding(IDS, 6)
        self.convolutions = torch.nn.ModuleList(torch.nn.Conv1d(6, count, size) for size, count in filters)
        total = sum(count for _, count in filters)
        self.highways = torch.nn.ModuleList(torch.nn.Linear(total, 2 * total) for _ in range(2))
        self.projection = torch.nn.Linear(total, width)

    def forward(self, ids: Any) -> Any:
        """(b, t, characters) to (b, t, d)."""
        rows = self.characters(ids.flatten(0, 1)).transpose(1, 2)
        rows = torch.cat([torch.relu(each(rows).amax(-1)) for each in self.convolutions], dim=1)
        for highway in self.highways:
            new, gate = highway(rows).chunk(2, dim=-1)
            gate = torch.sigmoid(gate)
            rows = gate * rows + (1 - gate) * torch.relu(new)
        return self.projection(rows).reshape(*ids.shape[:2], -1)


class CharacterBert(BertModel):  # type: ignore[misc]
    """BERT whose word embeddings are those of a network of characters (El Boukkouri et al. 2020)."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.words = CharacterCnn(config.hidden_size)

    def forward(self, input_ids: Any, attention_mask: Any = None, **options: Any) -> Any:
        rows = self.words(input_ids)
        return super().forward(inputs_embeds=rows, attention_mask=attention_mask, **options)


def make_character_bert() -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    model = CharacterBert(BertConfig(**sizes, max_position_embeddings=64))
    model.config.model_type = "character_bert"
    return model.eval()


class MantaConfig(PreTrainedConfig):  # type: ignore[misc]
    model_type = "manta"


class Manta(PreTrainedModel):  # type: ignore[misc]
    """Bytes, soft segmentation by predicted frontiers, pooled blocks, then T5 (Godey et al. 2022)."""

    config_class = MantaConfig

    def __init__(self, config: Any, width: int = 16, vocabulary: int = 260) -> None:
        super().__init__(config)
        self.bytes = torch.nn.Embedding(vocabulary, width)
        self.frontier_layer = torch.nn.TransformerEncoderLayer(width, 2, 24, dropout=0.0, batch_first=True)
        self.frontier = torch.nn.Linear(width, 1)
        self.convolution = torch.nn.Conv1d(width, width, 3, padding=1, groups=width)
        t5 = {"d_model": width, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2, "vocab_size": vocabulary}
        self.encoder = T5Stack(T5Config(**t5, use_cache=False, is_encoder_decoder=False))
        self.decoder = T5Stack(T5Config(**t5, use_cache=False, is_decoder=True, is_encoder_decoder=False))
        self.encoder.set_input_embeddings(self.bytes)
        self.decoder.set_input_embeddings(self.bytes)
        self.post_init()

    def find_frontiers(self, rows: Any, window: int = 3) -> Any:
        """The probability that a block ends at each byte, from bytes within a window, (b, t)."""
        places = torch.arange(rows.shape[1])
        hidden = (places[:, None] - places).abs() > window
        return torch.sigmoid(self.frontier(self.frontier_layer(rows, src_mask=hidden)))[..., 0]

    def assign_blocks(self, frontiers: Any) -> Any:
        """The probability that each byte is in each block, (b, t, blocks): a normal law of the frontiers before it."""
        before = frontiers.cumsum(1) - frontiers
        variance = (frontiers * (1 - frontiers)).cumsum(1) + 1e-2
        blocks = torch.arange(int(before.max()) + 1)
        return torch.softmax(-((blocks - before[..., None]) ** 2) / (2 * variance[..., None]), dim=-1)

    def pool_blocks(self, input_ids: Any) -> Any:
        """One row for each block, (b, blocks, d): the maximum of its bytes, each weighted by its probability."""
        rows = self.bytes(input_ids)
        share = self.assign_blocks(self.find_frontiers(rows))
        local = self.convolution(rows.transpose(1, 2)).transpose(1, 2)
        return (local[:, :, None, :] * share[..., None]).amax(dim=1)

    def forward(self, input_ids: Any, attention_mask: Any = None, decoder_input_ids: Any = None, **_: Any) -> Any:
        encoded = self.encoder(inputs_embeds=self.pool_blocks(input_ids), output_hidden_states=True)
        decoded = self.decoder(
            input_ids=decoder_input_ids, encoder_hidden_states=encoded.last_hidden_state, output_hidden_states=True
        )
        return Seq2SeqModelOutput(
            last_hidden_state=decoded.last_hidden_state,
            encoder_hidden_states=encoded.hidden_states,
            decoder_hidden_states=decoded.hidden_states,
        )


def make_manta() -> Any:
    torch.manual_seed(0)
    model = Manta(MantaConfig(is_encoder_decoder=True, decoder_start_token_id=0, pad_token_id=0))
    with torch.no_grad():
        model.frontier.weight += torch.randn_like(model.frontier.weight)
    return model.eval()
