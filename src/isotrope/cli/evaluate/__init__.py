"""isotrope evaluate: whether a repair, or a way of training, helps on real tasks, one file each."""

from isotrope.cli.group import make_group

COMMANDS = {
    "sts": "Correlate cosines of sentence pairs with what people said, and say whether repairs help.",
    "retrieval": "Search documents by cosine for the answers to queries, and say whether repairs help.",
    "index": "Compare compressed and approximate indexes of vectors with exact search, and recommend the cheapest.",
    "glue": (
        "Fine-tune on tasks of GLUE plainly and by other methods, and say whether they differ beyond seeds' chance."
    ),
}

evaluate = make_group("evaluate", COMMANDS, package=__name__)
