"""BERT-flow: an invertible map under which the rows become a standard normal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from isotrope.compute.arrays import check_width, to_matrix
from isotrope.compute.threads import limit_threads
from isotrope.errors import InputError, MissingExtra
from isotrope.repairs.flow_map import FlowMap, Matrix, Step, Vector, compute_log_normal, forward
from isotrope.repairs.repair import repair
from isotrope.repairs.row_repair import RowRepair

#: Share of the rows held out, and how many at most: enough to see a likelihood rise.
_HELD_OUT, _MOST_HELD_OUT = 0.1, 2000

#: Rows in a batch: at most, at least, and so few that an epoch has this many updates, if it can.
_BATCH, _SMALLEST_BATCH, _UPDATES = 512, 16, 50

#: At its highest, after a tenth of all updates: each changes all of a matrix a little, which together is much.
_LEARNING_RATE, _RISE = 8e-4, 0.1

#: Epochs in a row without a gain after which training stops.
_PATIENCE = 3

#: Gradients longer than this are cut: one odd row must not throw the map off.
_LONGEST = 10.0

#: Fewer rows could not be told from any Gaussian, and some must be held out.
_LEAST = 10

Parameters = dict[str, Any]


@repair("flow")
class Flow(RowRepair[FlowMap]):
    """An invertible map, trained by maximum likelihood, under which the rows become a standard normal.

    Each step is actnorm, an invertible linear map (LU) and an affine coupling. It starts as the Gaussian fitted to the
    rows, so that training finds what is not Gaussian, and keeps the epoch at which rows held out are likeliest.
    Directions in which the rows do not spread are scaled as the weakest in which they do. Rows of one column can only
    be standardized. Training needs torch, applying does not. It trains on one core, in less than a minute for 20,000
    rows of 384 columns.

    Args:
        steps: of the flow.
        hidden: width of the couplings' networks.
        epochs: passes over the rows at most; it stops when the likelihood held out rises no more.
        seed: of the rows held out, their order and the start.

    References:
        Li, Zhou, He, Wang, Yang and Li 2020, On the sentence embeddings from pre-trained language models (BERT-flow);
        Kingma and Dhariwal 2018 (Glow).

    Examples:
        >>> rows = np.random.default_rng(0).normal(size=(300, 4)) ** 3 + 5.0
        >>> flow = Flow(steps=2, hidden=16, epochs=2).fit(rows)
        >>> image = flow.transform(rows)
        >>> bool(abs(flow.inverse_transform(image) - rows).max() < 1e-9)
        True
    """

    _kind = FlowMap

    def __init__(self, steps: int = 4, hidden: int = 128, epochs: int = 10, seed: int = 0) -> None:
        self.steps = steps
        self.hidden = hidden
        self.epochs = epochs
        self.seed = seed

    def _fit_map(self, rows: NDArray[np.floating[Any]]) -> FlowMap:
        for name, least in (("steps", 1), ("hidden", 1), ("epochs", 0)):
            if getattr(self, name) < least:
                raise InputError(f"got {name}={getattr(self, name)}, expected at least {least}.")
        if len(rows) < _LEAST:
            raise InputError(f"got n_samples={len(rows)} rows, expected at least {_LEAST} for a flow; give more rows.")
        if find_spec("torch") is None:
            raise MissingExtra("torch", "models", "training a flow")
        return fit_flow(rows, self.steps, self.hidden, self.epochs, self.seed)

    @property
    def likelihoods_(self) -> Vector:
        """Mean log-likelihood of the rows held out: of the Gaussian that it starts as, then after each epoch."""
        return self.map_.likelihoods

    def log_det(self, X: Any) -> Vector:
        """Log of the absolute determinant of the map's Jacobian at each row, (n,)."""
        return self.map_.log_det(self._check_rows(X))

    def score_samples(self, X: Any) -> Vector:
        """Log-likelihood of each row, (n,), within the directions in which the rows fitted on spread."""
        return self.map_.log_likelihood(self._check_rows(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of rows."""
        return float(self.score_samples(X).mean())

    def _check_rows(self, X: Any) -> Any:
        """Rows with the columns that it was fitted on."""
        self._check_is_fitted()
        rows = to_matrix(X)
        self._check_names(X)
        check_width(rows, self.n_features_in_, "Flow")
        return rows


def fit_flow(rows: NDArray[np.floating[Any]], steps: int, hidden: int, epochs: int, seed: int) -> FlowMap:
    """Fit a flow to finite rows, (n, d): from the fitted Gaussian, until rows held out become no likelier."""
    import torch

    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows))
    count = max(1, min(int(_HELD_OUT * len(rows)), _MOST_HELD_OUT))
    with _limit_to_one_core():
        mean, whiten, rank = fit_gaussian(rows[order[count:]])
        white = torch.from_numpy(((rows[order] - mean) @ whiten[:, :rank]).astype(np.float32))
        volume = float(np.log(np.square(whiten[:, :rank]).sum(axis=0)).sum() / 2)
        parameters = [_make_parameters(rank, hidden, rng) for _ in range(steps)]
        best, likelihoods = _train(parameters, white[count:], white[:count], epochs, rng)
    return FlowMap(mean, whiten, rank, best, np.array(likelihoods) + volume)


@contextmanager
def _limit_to_one_core() -> Iterator[None]:
    """Products on one core: at this size threads gain little, and on a busy machine wait for each other tenfold.

    And the same seed gives the same map, whatever the number of threads.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with limit_threads():
            yield
    finally:
        torch.set_num_threads(threads)


def fit_gaussian(rows: NDArray[np.floating[Any]]) -> tuple[Vector, Matrix, int]:
    """Mean (d,) and whitening map (d, d) of the Gaussian fitted to rows, and the number of directions they spread in.

    Eigenvalues are shrunk towards their mean (Ledoit and Wolf 2004), so that few rows do not make directions that they
    merely miss look empty. Those beyond the rank count as the weakest.
    """
    n, d = rows.shape
    mean = rows.mean(axis=0, dtype=np.float64)
    offsets = rows - mean
    values, vectors = np.linalg.eigh(offsets.T @ offsets / n)
    values, vectors = values[::-1], vectors[:, ::-1]
    size = float(np.finfo(rows.dtype).eps) * float(np.abs(rows).max())
    rank = int((values > max(n, d) * np.finfo(np.float64).eps * values[0] + size**2).sum())
    if rank == 0:
        raise InputError(
            f"the {n:,} rows to train on are all the same, so there is no flow to fit; give rows that differ."
        )
    spread = values[:rank]
    fourth = float(np.square(np.einsum("ij,ij->i", offsets, offsets)).mean())
    noise = (fourth - float(spread @ spread)) / n
    unequal = float(np.square(spread - spread.mean()).sum())
    share = min(noise / unequal, 1.0) if unequal > 0 else 0.0
    shrunk = (1 - share) * spread + share * spread.mean()
    scales = np.concatenate([shrunk, np.full(d - rank, shrunk[-1])])
    return mean, vectors / np.sqrt(scales), rank


def _make_parameters(r: int, hidden: int, rng: np.random.Generator) -> Parameters:
    """Trainable numbers of a step that begins as a random rotation, by its LU factors, with an idle coupling."""
    import torch

    rotation = np.linalg.qr(rng.normal(size=(r, r)))[0]
    order, lower, upper = scipy.linalg.lu(rotation, p_indices=True)
    diagonal = np.diagonal(upper)
    half = r // 2
    trained = {
        "lower": lower,
        "upper": upper,
        "log_diagonal": np.log(np.abs(diagonal)),
        "log_scale": np.zeros(
            r
        ),  # actnorm; whitened rows have unit variance, as its data-dependent start would make them
        "shift": np.zeros(r),
        "first": rng.normal(size=(half, hidden)) * np.sqrt(2 / max(half, 1)),
        "first_bias": np.zeros(hidden),
        "second": rng.normal(size=(hidden, hidden)) * np.sqrt(2 / hidden),
        "second_bias": np.zeros(hidden),
        "third": np.zeros((hidden, 2 * (r - half))),
        "third_bias": np.zeros(2 * (r - half)),
    }
    tensors = {name: torch.tensor(array, dtype=torch.float32, requires_grad=True) for name, array in trained.items()}
    fixed = {"sign": torch.tensor(np.sign(diagonal), dtype=torch.float32), "order": torch.from_numpy(order)}
    return tensors | fixed


def _build_step(p: Parameters) -> Step:
    """The step that its numbers stand for."""
    upper = p["upper"].triu(1) + (p["sign"] * p["log_diagonal"].exp()).diag()
    unit = p["lower"].new_ones(len(p["shift"])).diag()
    linear = ((p["lower"].tril(-1) + unit) @ upper)[p["order"]]
    log_det = (p["log_scale"] + p["log_diagonal"]).sum(0, keepdim=True)
    network = (p[name] for name in Step._fields[3:])
    return Step(p["log_scale"].exp()[:, None] * linear, p["shift"] @ linear, log_det, *network)


def _train(
    parameters: list[Parameters], rows: Any, held_out: Any, epochs: int, rng: np.random.Generator
) -> tuple[tuple[Step, ...], list[float]]:
    """Steps at the epoch at which the rows held out were likeliest, as numpy, and their likelihood after each epoch."""
    import torch

    size = min(_BATCH, max(_SMALLEST_BATCH, len(rows) // _UPDATES))
    total = max(1, epochs * math.ceil(len(rows) / size))
    trained = [tensor for p in parameters for tensor in p.values() if tensor.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=_LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda done: min((done + 1) / (_RISE * total), (1 - done / total) / (1 - _RISE))
    )
    best, likelihoods = _to_numpy(parameters), [_compute_likelihood(parameters, held_out)]
    for epoch in range(epochs):
        for batch in torch.from_numpy(rng.permutation(len(rows))).split(size):
            optimizer.zero_grad()
            z, log_det = forward(rows[batch], [_build_step(p) for p in parameters], torch)
            loss = -(compute_log_normal(z) + log_det).mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(trained, _LONGEST)
            optimizer.step()
            schedule.step()
        likelihoods.append(_compute_likelihood(parameters, held_out))
        if likelihoods[-1] >= max(likelihoods):
            best = _to_numpy(parameters)
        elif int(np.argmax(likelihoods)) + _PATIENCE <= epoch + 1:
            break
    return best, likelihoods


def _compute_likelihood(parameters: list[Parameters], rows: Any) -> float:
    import torch

    with torch.no_grad():
        z, log_det = forward(rows, [_build_step(p) for p in parameters], torch)
        return float((compute_log_normal(z) + log_det).mean())


def _to_numpy(parameters: list[Parameters]) -> tuple[Step, ...]:
    """The steps in float64, worked out from their numbers in it: then the log-determinant is that of the weight."""
    wide = [{name: t.detach().double() if t.is_floating_point() else t for name, t in p.items()} for p in parameters]
    return tuple(Step(*(part.numpy().copy() for part in _build_step(p))) for p in wide)
