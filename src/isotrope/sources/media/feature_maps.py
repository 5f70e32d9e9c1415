"""Hidden states of any shape as rows: sequences, and maps of a convolution whose places become rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError

#: More rows than this before the patches are something else than class, distillation and register tokens.
_MOST_SPECIAL = 16

#: Ids of token types: a patch is row * _ROW + column, tokens that are no patch come after all of those.
_ROW, _SPECIAL = 1 << 20, 1 << 40


class Flat(NamedTuple):
    """A state as rows (b, t, d), and the height and width of the map it was, None for a sequence."""

    rows: Any
    grid: tuple[int, int] | None = None


#: The readings of "convolution maps are flattened": the rows are the places of a map, or the whole maps.
MAPS = ("places", "whole")


def flatten(state: Any, image: tuple[int, int] | None = None, maps: str = "places") -> Flat:
    """Rows of a state: (b, t, d) as it is, (b, d) as one row, a map (b, d, h, w) or (b, h, w, d) place by place.

    Args:
        state: A hidden state.
        image: Height and width of what the model was given, whose proportions tell a map with its channels last.
        maps: "places", or "whole" for a map as one row of all its numbers.

    Examples:
        >>> x = np.arange(48.0).reshape(1, 4, 4, 3)
        >>> flatten(x).rows.shape, flatten(x).grid, flatten(x, (32, 32)).rows.shape, flatten(x, maps="whole").rows.shape
        ((1, 12, 4), (4, 3), (1, 16, 3), (1, 1, 48))
    """
    if state.ndim == 2:
        return Flat(state[:, None, :])
    if state.ndim == 3:
        return Flat(state)
    if state.ndim != 4:
        shape = tuple(state.shape)
        raise InputError(f"a layer of shape {shape} is neither a sequence nor a map; leave it out with --layers.")
    b, first, middle, last = state.shape
    if maps == "whole":
        return Flat(state.reshape(b, 1, first * middle * last))
    if image is not None and _fits(first, middle, image) and not _fits(middle, last, image):
        return Flat(state.reshape(b, first * middle, last), (first, middle))
    return Flat(state.reshape(b, first, middle * last).swapaxes(1, 2), (middle, last))


def _fits(height: int, width: int, image: tuple[int, int]) -> bool:
    """Whether a map has an image's proportions, up to a place that a stride left over."""
    return abs(height * image[1] - width * image[0]) < max(image)


def find_places(
    t: int, grid: tuple[int, int] | None, image: tuple[int, int], patch: Any = None
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where the rows of an image stand: their token types, (t,), and which of them are no patches.

    Args:
        t: Number of rows.
        grid: Height and width of a map.
        image: Height and width of what the model was given.
        patch: Size of its patches, where its config says it; tokens before them, such as [CLS], are special.

    Examples:
        >>> token, special = find_places(5, None, (32, 32), 16)
        >>> name_places(token), special.tolist()
        (['special 0', '0,0', '0,1', '1,0', '1,1'], [True, False, False, False, False])
    """
    extra = 0
    if grid is None:
        grid = _patches(image, patch)
        extra = 0 if grid is None else t - grid[0] * grid[1]
        if grid is None or not 0 <= extra <= _MOST_SPECIAL:
            grid, extra = _like(t, image), 0
    rows, columns = np.divmod(np.arange(t - extra), grid[1])
    token = np.concatenate([_SPECIAL + np.arange(extra), rows * _ROW + columns]).astype(np.int64)
    return token, np.arange(t) < extra


def _patches(image: tuple[int, int], patch: Any) -> tuple[int, int] | None:
    sizes = (patch, patch) if isinstance(patch, int) else tuple(patch) if isinstance(patch, (list, tuple)) else ()
    if len(sizes) != 2 or not all(isinstance(size, int) and size > 0 for size in sizes):
        return None
    return image[0] // sizes[0], image[1] // sizes[1]


def _like(t: int, image: tuple[int, int]) -> tuple[int, int]:
    """The grid of t places with the image's proportions, one line where there is none."""
    height = round((t * image[0] / image[1]) ** 0.5)
    return (height, t // height) if height and t % height == 0 else (1, t)


def name_places(tokens: NDArray[np.int64]) -> list[str]:
    """Token types in words: row and column, or which of the tokens that are no patch."""
    return [f"special {t - _SPECIAL}" if t >= _SPECIAL else f"{t // _ROW},{t % _ROW}" for t in tokens.tolist()]
