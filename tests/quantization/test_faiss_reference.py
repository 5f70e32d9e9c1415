"""What we take out of faiss is what faiss itself says."""

from __future__ import annotations

import sys

import faiss
import numpy as np
import pytest

from isotrope.errors import MissingExtra
from isotrope.quantization import Kind, quantize
from testkit.clustered import clustered

ROWS = clustered(1500, 16)


@pytest.mark.parametrize("size", [16, 32, pytest.param(256, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", ["additive", "product"])
def test_codes_and_reconstruction_are_those_of_faiss(kind: Kind, size: int) -> None:
    bits = size.bit_length() - 1
    if kind == "additive":
        direct = faiss.LocalSearchQuantizer(16, 4, bits)
        direct.random_seed = 3
    else:
        direct = faiss.ProductQuantizer(16, 4, bits)
        direct.cp.seed = 3
    direct.train(ROWS)
    packed = direct.compute_codes(ROWS)
    q = quantize(ROWS, kind, size=size, seed=3, engine="faiss")
    np.testing.assert_array_equal(q.codes, faiss.unpack_bitstrings(packed, 4, bits))
    np.testing.assert_allclose(q.reconstruct(), direct.decode(packed), atol=1e-5)
    assert q.settings["faiss"] == faiss.__version__


def test_without_faiss_the_pip_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtra, match=r"pip install 'isotrope\[quantize\]'"):
        quantize(ROWS, engine="faiss")
    assert len(quantize(ROWS, "product", size=16)) == 1500
