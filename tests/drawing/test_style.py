"""Colours that people with any colour vision tell apart, and text that is only text."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

from isotrope.drawing.layers import layer_colours
from isotrope.drawing.style import COLOURS, format_number, format_token

#: What is left of linear RGB for people who lack one kind of cone (Machado, Oliveira and Fernandes 2009, severity 1).
VISIONS = {
    "full": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(colour: object, vision: object) -> NDArray[np.float64]:
    """CIE L*a*b* of a colour as someone with that vision sees it."""
    srgb = np.array(to_rgb(colour))  # type: ignore[arg-type]
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.asarray(vision) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen
    ratio = xyz / [0.95047, 1.0, 1.08883]
    f = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISIONS)
def test_colours_differ_for_everyone(vision: str) -> None:
    """Three by twenty and five by eight times the least difference that is seen (ΔE of 2.3, Mahy et al. 1994)."""
    for few, apart in ((COLOURS[:3], 20 * 2.3), (COLOURS[:5], 8 * 2.3)):
        for a, b in combinations(few, 2):
            assert np.linalg.norm(lab(a, VISIONS[vision]) - lab(b, VISIONS[vision])) > apart, (a, b)


@pytest.mark.parametrize("vision", VISIONS)
def test_colours_of_layers_grow_lighter_for_everyone(vision: str) -> None:
    lightness = [lab(colour, VISIONS[vision])[0] for colour in layer_colours(31)]
    assert (np.diff(lightness) > 0).all()
    assert lightness[-1] < 90  # seen on white


def test_text() -> None:
    assert format_token("##ing") == "ing"
    assert format_token("Ġthe") == "the"
    assert format_token("▁the") == "the"
    assert format_token("##") == "##"
    assert format_token("Ġ") == "Ġ"
    assert format_token("") == ""
    assert format_token("a\n\x00\u202e b") == "a····b"
    assert len(format_token("x" * 10_000)) == 24
    assert format_token("$x$ <b>") == "$x$·<b>"


def test_numbers() -> None:
    assert (format_number(-0.034), format_number(-0.001), format_number(1.005, 1)) == ("−0.03", "0.00", "1.0")
