"""What a command reads: vectors, or a model over text, images or sounds, and how."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.errors import InputError
from isotrope.options import find_changes, option
from isotrope.sources.input_checks import check_endpoint, check_media, check_vectors

if TYPE_CHECKING:
    from isotrope.sources.corpora.corpus import Corpus
    from isotrope.sources.models.load import Loaded
    from isotrope.sources.row_names import RowNames
    from isotrope.sources.source import Source
    from isotrope.sources.text.source import TextSource
    from isotrope.sources.text.token_weights import TokenWeights

_MODEL = "Model"
_TEXT = "Text"
_WHAT = "What to measure"
_RUN = "Run"


@dataclass(frozen=True, kw_only=True)
class Input:
    """Where rows come from and how they are read; the fields are explained with `isotrope.scan`.

    Args:
        token_weights: Weights of tokens for the pooling `mean`, or a file of them.
        in_order: Whether rows come in the order of the texts.
        seed: Selects the share of the texts.
        run_folder: The run folder that `keep_vectors` is in, if it is in one.
    """

    model: Any = option(None, "Hub id, folder, GGUF or ONNX file.", panel=_MODEL, shown="embedded all-MiniLM-L6-v2")
    endpoint: str | None = option(
        None, "URL of an OpenAI-compatible server that runs --model; the key is in $ISOTROPE_API_KEY.", panel=_MODEL
    )
    concurrency: int = option(4, "Requests to an endpoint at a time.", panel=_MODEL)
    keep_vectors: str | Path | None = option(
        None, "Folder for what an endpoint answered, which is not sent again.", panel=_MODEL, type=Path
    )
    revision: str | None = option(None, "Revision of a hub model.", panel=_MODEL)
    gguf_file: str | None = option(None, "GGUF file in the folder.", panel=_MODEL)
    hooks: str | None = option(
        None, 'Modules whose outputs are the layers, e.g. "blocks.*".', panel=_MODEL, flags=("--hook",)
    )
    device: str = option("auto", "auto, cpu, cuda, cuda:1, mps.", panel=_MODEL)
    trust_remote_code: bool = option(False, "Let a model run its own code.", panel=_MODEL)
    text: Any = option(None, "Text, images or sounds: file, folder, dataset id; - for stdin.", panel=_TEXT)
    column: str | None = option(None, "Column or array to read, where there are several.", panel=_TEXT)
    split: str | None = option(None, "Split of a dataset.", panel=_TEXT)
    unit: str = option("line", "What is one text in a plain file: line or paragraph.", panel=_TEXT)
    group_by: str | None = option(None, "Measure each value of this column apart too.", panel=_TEXT)
    share: float = option(1.0, "Random share of the texts, by a hash of each.", panel=_TEXT)
    max_words: int = option(0, "Leave out texts of more words; 0 for none.", panel=_TEXT)
    merge_types: bool = option(False, "Count ##ing or Ġing and ing as one token type.", panel=_TEXT)
    special_tokens: str = option("keep", "keep or drop tokens that the tokenizer adds.", panel=_TEXT)
    max_length: int | None = option(
        None, "Tokens at which texts are cut.", panel=_TEXT, type=int, shown="512 or the model's"
    )
    vectors: Any = option(
        None, "File or folder of npy, npz, safetensors, parquet, arrow, HDF5, faiss; or a store.", panel=_WHAT
    )
    id_column: Any = option(
        None, "Ids of rows: a column, or FILE or FILE:COLUMN with one for each row.", panel=_WHAT, type=str
    )
    text_column: Any = option(None, "Texts of vectors: a column, or FILE or FILE:COLUMN.", panel=_WHAT, type=str)
    pooling: str | None = option(
        None,
        "One row per text: mean, cls, last, max, weightedmean, first+last, sbert-wk, mean:1+-1.",
        panel=_WHAT,
        shown="rows are tokens",
    )
    maps: str = option("places", "Rows of a convolution's map: its places, or whole maps.", panel=_WHAT)
    layers: Any = option("all", "all, or e.g. 0,6,-1 or L.before_norm.", panel=_WHAT)
    precision: str | None = option(
        None,
        "fast (float32 products) or exact (float64).",
        panel=_WHAT,
        shown="exact for vectors, fast for models",
    )
    batch_size: int | None = option(
        None, "Texts, images, sounds or rows at a time.", panel=_RUN, type=int, shown="32 texts, 8 images"
    )
    bad_files: str = option("stop", "stop at a file of vectors that cannot be read, or skip it.", panel=_RUN)
    token_weights: TokenWeights | str | Path | None = None
    in_order: bool = False
    seed: int = 0
    run_folder: Path | None = None

    def __post_init__(self) -> None:
        check_endpoint(self)

    def open(self) -> Source:
        """Open the source of rows; what the model reads is opened before the model, which takes longer."""
        if self.precision not in (None, "fast", "exact"):
            raise InputError(f"there is no precision {self.precision!r}; say fast or exact.")
        if self.vectors is not None:
            return self._open_vectors()
        if self.bad_files != "stop":
            raise InputError("only files of vectors can be left out; leave bad-files out.")
        modality = self.modality()
        return self._open_texts() if modality == "text" else self._open_media(modality)

    @property
    def has_items(self) -> bool:
        """Whether each row is a whole text or vector, and not a token."""
        from isotrope.sources.text.sentence_model import ENCODED

        return self.gives_vectors or self.pooling is not None or self.layers == ENCODED

    @property
    def gives_vectors(self) -> bool:
        """Whether each row is a vector that search would use: vectors as they are, or those of an endpoint."""
        return self.vectors is not None or self.endpoint is not None

    def for_queries(self, queries: Any) -> Input:
        """Queries that search the rows, read in the same way: vectors, or texts by the same model and pooling."""
        if self.vectors is not None:
            return replace(self, vectors=queries, group_by=None, id_column=None, text_column=None)
        if not self.has_items:
            raise InputError("queries need one row for each text, not one for each token; add --pooling mean.")
        return replace(self, text=queries, group_by=None, id_column=None)

    def modality(self) -> str:
        """What the model reads: what its class says, or where it reads several things what is given."""
        if self.endpoint is not None:
            return "text"
        from isotrope.sources.models.load import can_read

        can = can_read(
            self.model,
            revision=self.revision,
            gguf_file=self.gguf_file,
            trust_remote_code=self.trust_remote_code,
        )
        if len(can) == 1:
            return can[0]
        from isotrope.sources.media.corpus import choose_modality

        return choose_modality(can, self.text, column=self.column, split=self.split, group_by=self.group_by)

    def _open_vectors(self) -> Source:
        from isotrope.sources.vectors.source import ArraySource

        check_vectors(self)
        source = ArraySource(
            self.vectors,
            column=self.column,
            group_by=self.group_by,
            batch_rows=self.batch_size,
            exact=self.precision != "fast",
            bad_files=self.bad_files,
        )
        if self.id_column is not None or self.text_column is not None:
            from isotrope.sources.vectors.name_columns import open_vector_names

            source.row_names = open_vector_names(source, self.id_column, self.text_column)
        return source

    def open_corpus(self, group_by: str | None = None) -> Corpus:
        """Open the texts, without those that are left out; group_by: a column of groups in place of the own one."""
        from isotrope.sources.corpora.corpus import open_corpus
        from isotrope.sources.corpora.selection import TextSelection, select_texts

        if self.endpoint is not None and self.text is None:
            raise InputError("got an endpoint without texts to send; name them with --text.")
        selection = TextSelection(share=self.share, seed=self.seed, max_words=self.max_words)
        corpus = open_corpus(
            self.text, column=self.column, split=self.split, group_by=group_by or self.group_by, unit=self.unit
        )
        return select_texts(corpus, selection)

    def _open_texts(self) -> Source:
        if self.maps != "places":
            raise InputError("text has no maps; leave maps out.")
        try:
            corpus = self.open_corpus()
        except InputError as error:
            from isotrope.sources.media.corpus import kind_of
            from isotrope.sources.models.modality import WORDS

            if (found := kind_of(self.text)) is None:
                raise
            what, model = WORDS[found], "embedded model" if self.model is None else f"model {self.model}"
            raise InputError(f"the {model} reads text and got {what}; name a model of {what}.") from error
        names = self._open_text_names(corpus)
        source = self.rows_over(corpus, self.load())
        source.row_names = names
        return source

    def _open_text_names(self, corpus: Corpus) -> RowNames | None:
        """The ids of texts, and the texts where each is one row; None where neither is of use."""
        from isotrope.sources.row_names import make_corpus_names

        if self.text_column is not None:
            raise InputError("texts that a model reads are known already; leave text-column out.")
        if self.id_column is not None:
            return make_corpus_names(self.open_corpus(group_by=self.id_column), has_ids=True)
        return make_corpus_names(corpus, has_ids=False) if self.has_items and not corpus.stream else None

    def _open_media(self, modality: str) -> Source:
        from isotrope.sources.media.corpus import open_media
        from isotrope.sources.media.source import MediaSource

        check_media(self, modality)
        media = open_media(self.text, modality, column=self.column, split=self.split, group_by=self.group_by)
        return MediaSource(
            self.load(modality),
            media,
            layers=self.layers,
            pooling=self.pooling,
            maps=self.maps,
            special_tokens=self.special_tokens,
            batch_size=self.batch_size or 8,
            in_order=self.in_order,
        )

    def load(self, modality: str = "text") -> Loaded:
        """Load the model for what it reads; for the space "encoded" it is one of sentence-transformers.

        With an endpoint, it is what makes the requests: nothing is sent before rows are read.
        """
        from isotrope.sources.models.load import Loaded, load
        from isotrope.sources.text.sentence_model import ENCODED, load_pipeline

        if self.endpoint is not None:
            from isotrope.sources.endpoint.source import open_endpoint

            kept = self.keep_vectors, self.run_folder
            return Loaded(open_endpoint(self.endpoint, self.model, self.concurrency, *kept), None, self.model)
        if self.layers == ENCODED:
            return load_pipeline(
                self.model,
                revision=self.revision,
                device=self.device,
                exact=self.precision == "exact",
                trust_remote_code=self.trust_remote_code,
                max_length=self.max_length,
            )
        return load(
            self.model,
            revision=self.revision,
            gguf_file=self.gguf_file,
            device=self.device,
            exact=self.precision == "exact",
            trust_remote_code=self.trust_remote_code,
            modality=modality,
            hooks=self.hooks,
        )

    def rows_over(self, corpus: Corpus, loaded: Loaded) -> Source:
        """The rows of a corpus by a model that is loaded already: hidden states, or what it encodes texts to itself."""
        from isotrope.sources.text.sentence_model import ENCODED, EncodedSource

        if self.endpoint is not None:
            from isotrope.sources.endpoint.source import BATCH_SIZE, EndpointSource

            size = self.batch_size or BATCH_SIZE
            return EndpointSource(loaded.model, corpus, batch_size=size, exact=self.precision == "exact")
        if self.layers != ENCODED:
            return self.over(corpus, loaded)
        for name in find_changes(self, ("pooling", "token_weights", "hooks", "merge_types")):
            raise InputError(f"the space {ENCODED!r} is what the model makes itself; leave {name} out.")
        return EncodedSource(loaded, corpus, batch_size=self.batch_size or 32)

    def over(self, corpus: Corpus, loaded: Loaded) -> TextSource:
        """The rows of a corpus by a model that is loaded already."""
        from isotrope.sources.text.source import TextSource
        from isotrope.sources.text.token_weights import TokenWeights

        weights = self.token_weights
        return TextSource(
            loaded,
            corpus,
            layers=self.layers,
            pooling=self.pooling,
            token_weights=TokenWeights.load(weights) if isinstance(weights, (str, Path)) else weights,
            special_tokens=self.special_tokens,
            batch_size=self.batch_size or 32,
            max_length=self.max_length,
            in_order=self.in_order,
            merge_types=self.merge_types,
        )

    def has_own_encoding(self) -> bool:
        """Whether the model makes one row for each text itself: behind an endpoint, or with sentence-transformers."""
        from isotrope.sources.text.sentence_model import has_pipeline

        return self.endpoint is not None or has_pipeline(self.model, self.revision)
