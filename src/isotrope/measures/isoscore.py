"""How evenly the variance is shared by all directions."""

from isotrope.errors import Undefined
from isotrope.measures.record import Bounds, measure
from isotrope.statistics import Moments


def _range(n: int, d: int) -> Bounds:
    return (0.0, 1.0 if n > d else max(0.0, (n - 2) / max(d - 1, 1)))


@measure(
    "moments",
    title="IsoScore",
    says="How evenly the variance is shared by all directions: 0 all in one, 1 evenly in all.",
    range=_range,
    better="higher",
    invariant=("rotation", "scale", "shift"),
    slow_bias=True,
    formula="(PR − 1)/(d − 1), PR = (Σλ)²/Σλ², λ eigenvalues of the covariance",
    paper="Rudman et al. 2022; closed form of their algorithm",
    blind="The mean. With few rows it is biased low: about 1/(1 + d/n) for isotropic rows.",
    wrong="Marbut, Chandler and Wheeler's Eq. 11 prints (d − δ)²(d − √d)² for (d − δ²(d − √d))².",
    headline=2,
    per_group=True,
    relative=True,
)
def isoscore(m: Moments) -> float:
    """IsoScore in closed form, from the trace and the Frobenius norm of the covariance.

    >>> import numpy as np
    >>> x = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> isoscore(x)
    1.0
    """
    if m.d == 1:
        raise Undefined("in one dimension there is nothing to share, so IsoScore is undefined")
    if m.n < 2:
        raise Undefined("IsoScore needs at least two rows")
    if m.constant:
        raise Undefined("the rows are all the same, so there is no variance to share")
    shares = m.scatter / m.scatter.trace()
    return min(1.0, max(0.0, (1.0 / float((shares**2).sum()) - 1.0) / (m.d - 1)))
