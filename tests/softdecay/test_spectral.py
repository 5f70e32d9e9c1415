"""SoftDecay of token matrices: values and gradients against 40-digit differences, numpy's and torch's SVD."""

from __future__ import annotations

import shutil

import mpmath
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.stats import ortho_group

from isotrope.errors import InputError
from isotrope.repairs import SoftDecay
from isotrope.softdecay.spectral import soft_decay

RNG = np.random.default_rng(0)

#: Singular values of every awkward kind; the largest is never within a step of another one unless it equals it.
SPECTRA = {
    "random": [7.3, 4.1, 2.6, 0.9, 0.4],
    "repeated": [7.3, 2.6, 2.6, 2.6, 0.4],
    "1e-8 apart": [7.3, 2.6, 2.6 + 1e-8, 0.4, 0.4 + 1e-8],
    "1e-12 apart": [7.3, 2.6, 2.6 + 1e-12, 0.4, 0.4 + 1e-12],
    "zero": [7.3, 2.6, 0.0, 0.0, 0.0],
    "rank one": [7.3, 0.0, 0.0, 0.0, 0.0],
    "nearly zero": [7.3, 2.6, 1e-9, 1e-13, 0.0],
    "condition 1e6": [7.3, 2.6, 1e-3, 1e-5, 7.3e-6],
    "large and rank-deficient": [730.0, 90.0, 0.3, 0.0, 0.0],
    "tiny": [1e-5, 1e-6, 1e-7, 0.0, 0.0],
}
SHAPES = {"wide": (5, 8), "tall": (8, 5), "square": (5, 5)}


def matrix(values: list[float], shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    """A matrix with these singular values."""
    t, d = shape
    n = len(values)
    u, v = ortho_group.rvs(t, random_state=seed)[:, :n], ortho_group.rvs(d, random_state=seed + 1)[:, :n]
    return (u * np.array(values)) @ v.T


def by_digits(x: mpmath.matrix, alpha: mpmath.mpf, form: str = "shifted", tolerance: float = 1e-14) -> mpmath.matrix:
    """The definition, through a singular value decomposition of 40 digits."""
    a = -alpha
    u, values, v = mpmath.svd_r(x if x.rows >= x.cols else x.T)
    top = max(values)

    def f(value: mpmath.mpf) -> mpmath.mpf:
        if form == "shifted":
            return mpmath.log1p(a * value / (1 - a * a)) / a
        if value <= (a if form == "clipped" else tolerance * top):
            return mpmath.mpf(0)
        return -mpmath.log(1 - alpha * (value + alpha)) / alpha

    whole = u * mpmath.diag([f(value) * top / f(top) for value in values]) * v
    return whole if x.rows >= x.cols else whole.T


def as_array(x: mpmath.matrix) -> np.ndarray:
    return np.array(x.tolist(), dtype=np.float64)


def check(x: np.ndarray, alpha: float, form: str = "shifted", atol: float = 1e-7) -> None:
    """Values, and gradients along random directions and with respect to α, as differences of 40 digits give them."""
    rng = np.random.default_rng(1)
    mpmath.mp.dps = 40
    exact, h = mpmath.matrix(x.tolist()), mpmath.mpf("1e-18")
    tensor = torch.tensor(x).requires_grad_()
    strength = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    out = soft_decay(tensor, strength, form)
    scale = max(1.0, abs(out.detach().numpy()).max())
    assert_allclose(
        out.detach().numpy(), as_array(by_digits(exact, mpmath.mpf(alpha), form)), rtol=0, atol=1e-9 * scale
    )
    upstream = rng.normal(size=x.shape)
    out.backward(torch.tensor(upstream))
    assert tensor.grad is not None
    assert strength.grad is not None
    for _ in range(4):
        direction = rng.normal(size=x.shape)
        move = mpmath.matrix(direction.tolist()) * h
        ends = [by_digits(exact + sign * move, mpmath.mpf(alpha), form) for sign in (1, -1)]
        slope = float((upstream * as_array((ends[0] - ends[1]) / (2 * h))).sum())
        assert_allclose(float((tensor.grad.numpy() * direction).sum()), slope, rtol=atol, atol=atol)
    ends = [by_digits(exact, mpmath.mpf(alpha) + sign * h, form) for sign in (1, -1)]
    slope = float((upstream * as_array((ends[0] - ends[1]) / (2 * h))).sum())
    assert_allclose(float(strength.grad), slope, rtol=atol, atol=atol * scale)


@pytest.mark.parametrize(("shape", "alpha"), [("wide", -0.5), ("tall", -0.5), ("square", -0.05), ("wide", -0.95)])
@pytest.mark.parametrize("values", SPECTRA)
def test_gradients_of_the_shifted_form_on_every_spectrum(values: str, shape: str, alpha: float) -> None:
    check(matrix(SPECTRA[values], SHAPES[shape]), alpha)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_gradient_is_the_average_where_two_largest_values_are_equal(shape: str) -> None:
    """Then the differences to both sides differ, and the central one is their average."""
    t, d = SHAPES[shape]
    x = np.zeros((t, d))
    x[0, 1] = x[1, 0] = 7.3  # exactly: rounding would hold turned ones apart
    x[2:, 2:] = matrix([2.6, 1.4, 0.4], (t - 2, d - 2))
    check(x, -0.5)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_gradient_where_two_largest_values_are_nearly_equal(shape: str) -> None:
    check(matrix([7.3 + 1e-8, 7.3, 2.6, 0.4, 0.0], SHAPES[shape]), -0.5, atol=1e-6)


@pytest.mark.parametrize("shape", ["wide", "tall"])
@pytest.mark.parametrize(
    ("form", "alpha", "values"),
    [
        *[
            ("paper", -0.6, values)
            for values in ("random", "repeated", "1e-8 apart", "zero", "rank one", "large and rank-deficient")
        ],
        *[("clipped", -0.6, values) for values in ("random", "repeated", "1e-8 apart", "zero", "condition 1e6")],
        ("clipped", -1.5, "random"),
    ],
)
def test_gradients_of_the_other_forms_away_from_their_kinks(form: str, alpha: float, values: str, shape: str) -> None:
    check(matrix(SPECTRA[values], SHAPES[shape]), alpha, form, atol=1e-6)


def test_the_form_paper_with_a_above_one() -> None:
    check(matrix([7.3, 4.1, 2.6, 1.9, 0.9], (5, 8)), -1.3, "paper", atol=1e-6)


def test_the_gradient_of_paper_grows_as_one_over_sigma_and_that_of_shifted_does_not() -> None:
    sizes = {}
    for form in ("paper", "shifted"):
        x = torch.tensor(matrix([7.3, 4.1, 2.6, 0.9, 1e-2], (5, 8))).requires_grad_()
        rows = soft_decay(x, -0.5, form)
        jacobian = torch.stack(
            [torch.autograd.grad(value, x, retain_graph=True)[0].flatten() for value in rows.flatten()]
        )
        sizes[form] = float(torch.linalg.matrix_norm(jacobian, 2))
    assert sizes["paper"] > 50
    assert sizes["shifted"] < 8


def test_repairs_of_the_whole_library_agree() -> None:
    """The same formula by numpy, from moments, for rows as the paper takes them."""
    x = RNG.normal(size=(40, 6)) / np.arange(1, 7) + 0.5
    for form in ("paper", "clipped", "shifted"):
        expected = SoftDecay(-0.6, form=form).fit_transform(x)
        assert_allclose(soft_decay(torch.tensor(x), -0.6, form).numpy(), expected, rtol=0, atol=1e-10)


def by_torch(x: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
    """The shifted form through torch's own singular value decomposition."""
    u, values, v = torch.linalg.svd(x, full_matrices=False)
    f = torch.log1p(-alpha * values / (1 - alpha**2)) / -alpha
    return (u * (f * (values[..., :1] / f[..., :1]))[..., None, :]) @ v


def gradients(function: object, x: torch.Tensor, alpha: float, upstream: torch.Tensor) -> list[torch.Tensor]:
    x, strength = x.clone().requires_grad_(), torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    return list(torch.autograd.grad((function(x, strength) * upstream).sum(), [x, strength]))  # type: ignore[operator]


def test_where_the_gradient_of_torch_is_right_it_is_the_same() -> None:
    x, upstream = torch.tensor(RNG.normal(size=(2, 3, 7, 9)))
    for found, expected in zip(*(gradients(f, x, -0.5, upstream) for f in (soft_decay, by_torch)), strict=True):
        assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("values", ["repeated", "zero"])
def test_where_the_gradient_of_torch_is_not_finite_ours_is(values: str) -> None:
    x = torch.zeros(5, 8, dtype=torch.float64)
    x[range(5), range(5)] = torch.tensor(SPECTRA[values], dtype=torch.float64)
    upstream = torch.tensor(RNG.normal(size=(5, 8)))
    assert not all(torch.isfinite(g).all() for g in gradients(by_torch, x, -0.5, upstream))
    assert all(torch.isfinite(g).all() for g in gradients(soft_decay, x, -0.5, upstream))


def padded(lengths: list[int], t: int, d: int = 9, *, left: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Sequences of these lengths padded to t, at one end or the other."""
    rng = np.random.default_rng(5)
    x, mask = torch.zeros(len(lengths), t, d, dtype=torch.float64), torch.zeros(len(lengths), t, dtype=torch.bool)
    for i, n in enumerate(lengths):
        at = slice(t - n, t) if left else slice(0, n)
        x[i, at], mask[i, at] = torch.tensor(rng.normal(size=(n, d))), True
    return x, mask


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("junk", [0.0, float("nan"), float("inf")])
@pytest.mark.parametrize("t", [7, 12, 30])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("form", ["shifted", "clipped", "paper"])
def test_padding_changes_nothing(
    form: str, t: int, junk: float, left: bool, batched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what is in it nor how much there is, on either Gram side, one by one or all at once as on a GPU."""
    if batched:
        monkeypatch.setattr("isotrope.softdecay.spectral.eigh", lambda gram, mask: torch.linalg.eigh(gram))
    lengths = [7, 3, 1, 5, 0]
    x, mask = padded(lengths, t, left=left)
    first, *_, last = mask[3].nonzero()[:, 0]
    x[3, last] = x[3, first]  # one direction less than tokens
    x[~mask] = junk
    upstream = torch.tensor(np.random.default_rng(6).normal(size=(len(lengths), 7, 9)))
    wide = torch.full_like(x, 1e3)
    for i, n in enumerate(lengths):
        wide[i, mask[i]] = upstream[i, :n]
    leaf, strength = x.requires_grad_(), torch.tensor(-0.5, dtype=torch.float64, requires_grad=True)
    out = soft_decay(leaf, strength, form, mask)
    out.backward(wide)
    assert leaf.grad is not None
    assert strength.grad is not None
    by_alpha = 0.0
    for i, n in enumerate(lengths):
        alone, own = (
            leaf.detach()[i, mask[i]].requires_grad_(),
            torch.tensor(-0.5, dtype=torch.float64, requires_grad=True),
        )
        expected = soft_decay(alone, own, form)
        expected.backward(upstream[i, :n])
        assert_allclose(out.detach()[i, mask[i]], expected.detach(), rtol=0, atol=1e-12)
        assert_allclose(leaf.grad[i, mask[i]], alone.grad, rtol=0, atol=1e-12)
        by_alpha += 0.0 if own.grad is None else float(own.grad)
    assert_allclose(float(strength.grad), by_alpha, rtol=1e-12)
    assert (out[~mask] == 0).all()
    assert (leaf.grad[~mask] == 0).all()


@pytest.mark.parametrize("t", [4, 7])
@pytest.mark.parametrize("form", ["shifted", "clipped"])
def test_gradients_of_a_batch_of_uneven_length_are_those_of_differences(form: str, t: int) -> None:
    """By torch's own check of every entry, on either Gram side; one sequence has a row twice, one has none."""
    x, mask = padded([4, 2, 1, 3, 0], t, 5)
    x[3, 2] = x[3, 0]
    alpha = torch.tensor(-0.5, dtype=torch.float64, requires_grad=True)
    found = torch.autograd.gradcheck(
        lambda rows, strength: soft_decay(rows, strength, form, mask), (x.requires_grad_(), alpha), atol=1e-6, rtol=1e-6
    )
    assert found


def test_padding_does_not_change_what_counts_as_zero() -> None:
    """A singular value of 100 times the rounding of 9 dimensions, beside so much padding that it would be rounding."""
    x = torch.zeros(1, 2000, 9, dtype=torch.float64)
    x[0, 0, 0], x[0, 1, 1] = 8.0, 8.0 * 900 * torch.finfo(torch.float64).eps
    mask = torch.arange(2000)[None] < 2
    assert_allclose(soft_decay(x, -0.5, "paper", mask)[0, :2], soft_decay(x[0, :2], -0.5, "paper"), rtol=1e-12)


def test_one_row_and_no_row_stay_as_they_are() -> None:
    one = torch.tensor(RNG.normal(size=(2, 1, 6)))
    assert_allclose(soft_decay(one, -0.7), one, rtol=1e-14)
    nothing = torch.zeros(2, 4, 6, dtype=torch.float64, requires_grad=True)
    for form in ("shifted", "clipped", "paper"):
        out = soft_decay(nothing, -0.7, form)
        assert (out == 0).all()
        (grad,) = torch.autograd.grad(out.sum(), nothing)
        assert torch.isfinite(grad).all()


def conditioned(condition: float, *, t: int = 64, d: int = 96) -> np.ndarray:
    """A matrix whose singular values fall evenly by this ratio, with the size of hidden states."""
    u, v = ortho_group.rvs(t, random_state=0), ortho_group.rvs(d, random_state=1)[:, :t]
    return (u * (300 * np.geomspace(1, 1 / condition, t))) @ v.T


#: f by numpy, as printed, with a = −α.
FORMS = {
    "shifted": lambda x, a: np.log1p(a * x / (1 - a * a)) / a,
    "clipped": lambda x, a: np.maximum(np.log1p(a * (np.maximum(x, a) - a)) / a, 0.0),
    "paper": lambda x, a: np.log(1 - a * a + a * x) / a,
}


@pytest.mark.parametrize("form", FORMS)
def test_float32_is_right_to_1e_4_at_condition_1e5(form: str) -> None:
    x = conditioned(1e5)
    if form == "paper":  # it turns what is below a round, and magnifies the weakest by 1/σ, rounding and all
        x = conditioned(1e2)
    narrow = torch.tensor(x, dtype=torch.float32)
    found = soft_decay(narrow, -0.5, form)
    assert found.dtype == torch.float32
    u, values, v = np.linalg.svd(narrow.double().numpy(), full_matrices=False)
    f = FORMS[form](values, 0.5)
    expected = (u * (f * values[0] / f[0])) @ v
    assert np.linalg.norm(found.numpy() - expected) < 1e-5 * np.linalg.norm(expected)
    if form == "shifted":  # direction by direction, the weakest of which are a millionth of the strongest afterwards
        along = np.einsum("ti,td,id->i", u, found.double().numpy(), v)
        assert_allclose(along, f * values[0] / f[0], rtol=1e-2, atol=0)
        assert_allclose(along, f * values[0] / f[0], rtol=0, atol=1e-4)


def test_gradients_in_float32_are_right_at_condition_1e5() -> None:
    x, upstream = torch.tensor(conditioned(1e5), dtype=torch.float32), torch.tensor(RNG.normal(size=(64, 96)))
    found = gradients(soft_decay, x, -0.5, upstream.float())
    expected = gradients(soft_decay, x.double(), -0.5, upstream.float().double())
    assert found[0].dtype == torch.float32
    for narrow, wide in zip(found, expected, strict=True):
        assert float((narrow - wide).norm() / wide.norm()) < 1e-6


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_as_good_as_its_rounding(dtype: torch.dtype) -> None:
    x = torch.tensor(RNG.normal(size=(2, 20, 16)) + 0.5).to(dtype).requires_grad_()
    out = soft_decay(x, -0.5)
    out.backward(torch.ones_like(out))
    wide = x.detach().double().requires_grad_()
    expected = soft_decay(wide, -0.5)
    expected.backward(torch.ones_like(expected))
    assert out.dtype == x.grad.dtype == dtype  # type: ignore[union-attr]
    for found, true in ((out, expected), (x.grad, wide.grad)):
        error = (found - true).abs() / (true.abs() + 1e-4)  # type: ignore[union-attr]
        assert float(error.max().detach()) <= 0.501 * torch.finfo(dtype).eps


def test_float16_that_overflows_says_so() -> None:
    rows = torch.zeros(1, 4, 8)
    rows[:, :3, 0] = rows[:, 3, 1] = 60000.0  # the fourth is lifted to nearly √3 times its length
    with pytest.raises(InputError, match=r"values up to .*float16 holds 65504; use bfloat16 or float32"):
        soft_decay(rows.half(), -0.9)
    assert torch.isfinite(soft_decay(rows.bfloat16(), -0.9)).all()


def test_a_gradient_that_overflows_float16_is_left_to_the_loss_scaler() -> None:
    """Which looks for infinity, leaves the step out and scales less: an error would end training."""
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 8)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**15)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    before = model.weight.detach().clone()
    out = soft_decay(model(torch.randn(2, 4, 8)).half(), -0.9)
    scaler.scale((1.9 * out.float()).sum()).backward()  # what comes in, 62259, is still a number
    assert not torch.isfinite(model.weight.grad).all()  # type: ignore[arg-type]
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(model.weight, before)
    assert scaler.get_scale() == 2.0**14


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_hidden_states_that_are_not_finite_are_refused(bad: float) -> None:
    x = torch.ones(2, 3, 4)
    x[1, 2, 3] = bad
    with pytest.raises(InputError, match=r"hold NaN or infinity in rows that are no padding"):
        soft_decay(x, -0.5)


@pytest.mark.parametrize(
    ("alpha", "form", "said"),
    [
        (-1.0, "shifted", r"alpha is -1, expected −1 < alpha < 0 for the form 'shifted'"),
        (0.0, "shifted", r"expected −1 < alpha < 0"),
        (0.1, "paper", r"alpha is 0.1, expected alpha < 0 for the form 'paper'"),
        (float("nan"), "clipped", r"expected alpha < 0"),
        (-0.5, "bent", r"there is no form 'bent' of SoftDecay; say shifted, paper, clipped"),
    ],
)
def test_alpha_outside_its_form_is_refused(alpha: float, form: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        soft_decay(torch.ones(3, 4), alpha, form)


def test_values_outside_the_domain_of_a_form_are_refused() -> None:
    x = torch.diag(torch.tensor([0.9, 0.2]).double())
    with pytest.raises(InputError, match=r"is 0.9, expected at least a\(2 − a²\)/\(1 − a²\) = 1.1666.* form 'paper'"):
        soft_decay(x, -0.5, "paper")
    with pytest.raises(InputError, match=r"is 0.9, expected above a = 0.95"):
        soft_decay(x, -0.95, "clipped")
    with pytest.raises(InputError, match=r"smallest .* is 0.2, expected all above a − 1/a = 0.45"):
        soft_decay(torch.diag(torch.tensor([5, 0.2]).double()), -1.25, "paper")


def test_shapes_that_are_no_hidden_states_are_refused() -> None:
    with pytest.raises(InputError, match=r"expected hidden states of shape \(b, t, d\), got \(3,\)"):
        soft_decay(torch.ones(3), -0.5)
    with pytest.raises(InputError, match=r"the mask has shape \(2, 5\), expected \(2, 4\)"):
        soft_decay(torch.ones(2, 4, 3), -0.5, mask=torch.ones(2, 5))
    with pytest.raises(InputError, match=r"the mask has shape \(2, 1, 1, 4\), expected \(2, 4\)"):
        soft_decay(torch.ones(2, 4, 3), -0.5, mask=torch.ones(2, 1, 1, 4))


def test_a_second_derivative_is_refused_in_words() -> None:
    x = torch.tensor(RNG.normal(size=(3, 4))).requires_grad_()
    (grad,) = torch.autograd.grad(soft_decay(x, -0.5).sum(), x, create_graph=True)
    with pytest.raises(InputError, match="SoftDecay has a first derivative only"):
        grad.sum().backward()


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.long)])
def test_it_compiles_into_one_graph(backend: str) -> None:
    if backend == "inductor" and shutil.which("g++") is None:
        pytest.skip("this machine has no compiler for what torch.compile writes.")

    def model(x: torch.Tensor, alpha: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (soft_decay(torch.tanh(x), alpha, mask=mask) ** 2).sum()

    x, mask = padded([7, 3, 1], 7)
    strength = torch.tensor(-0.5, dtype=torch.float64, requires_grad=True)
    leaf = x.requires_grad_()
    expected = torch.autograd.grad(model(leaf, strength, mask), [leaf, strength])
    compiled = torch.compile(model, fullgraph=True, backend=backend, dynamic=True)
    found = torch.autograd.grad(compiled(leaf, strength, mask), [leaf, strength])
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_torch_finds_nothing_wrong_with_the_operators() -> None:
    from isotrope.softdecay import spectral

    x, mask = padded([4, 2], 4)
    a = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(spectral._forward, (x.requires_grad_(), a, "shifted", mask))
    _, vectors = spectral._forward(x.detach(), a.detach(), "shifted", mask)
    tests = ("test_schema", "test_faketensor")
    torch.library.opcheck(
        spectral._backward, (x.detach(), x.detach(), a.detach(), "shifted", mask, vectors), test_utils=tests
    )


def test_autocast_leaves_its_digits_alone() -> None:
    x = torch.tensor(conditioned(1e5), dtype=torch.float32).requires_grad_()
    expected = soft_decay(x, -0.5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = soft_decay(x, -0.5)
    assert torch.equal(found, expected)
    (grad,) = torch.autograd.grad(found.sum(), x)
    assert torch.equal(grad, torch.autograd.grad(expected.sum(), x)[0])


def test_inference_mode_and_threads_make_no_difference() -> None:
    x, mask = padded([7, 3, 1, 5], 7)
    expected = soft_decay(x, -0.5, mask=mask)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        with torch.inference_mode():
            found = soft_decay(x, -0.5, mask=mask)
    finally:
        torch.set_num_threads(threads)
    assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device.")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_gpu_gives_what_the_processor_gives(dtype: torch.dtype) -> None:
    x, mask = padded([7, 3, 1, 0], 7)
    upstream = torch.tensor(RNG.normal(size=x.shape))
    found = []
    for device in ("cpu", "cuda"):
        leaf = x.to(device=device, dtype=dtype).requires_grad_()
        alpha = torch.tensor(-0.5, dtype=torch.float64, device=device, requires_grad=True)
        out = soft_decay(leaf, alpha, mask=mask.to(device))
        out.backward(upstream.to(out))
        found.append([out.detach().cpu(), leaf.grad.cpu(), alpha.grad.cpu()])  # type: ignore[union-attr]
    for one, other in zip(*found, strict=True):
        tolerance = 1e-10 if dtype == torch.float64 else 1e-4
        assert_allclose(one, other, rtol=tolerance, atol=tolerance)
