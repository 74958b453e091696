"""Linear CKA: how alike two representations of the same texts are, whatever their rotation and scale.

Biased: Kornblith et al. 2019 (arXiv 1905.00414), equation 3.  It is far from 0 for unrelated
vectors wherever there are not many more texts than dimensions.  Debiased: the same ratio of unbiased
estimates of HSIC (Song et al. 2012, JMLR 13, equation 5), 0 in the mean for unrelated vectors.
Both by features: from centred vectors, the products of n x n Gram matrices that the definitions
name become cross-products of d x d, so that memory grows with n d + d^2 and not with n^2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from repro.errors import UserError

Vectors = NDArray[np.floating]
Hsic = Callable[[NDArray[np.float64], NDArray[np.float64]], float]
LEAST_TEXTS = 4  # the unbiased estimate divides by n - 3


def biased_cka(x: Vectors, y: Vectors) -> float:
    """Linear CKA, in [0, 1].

    x, y: float [n, d] and [n, e], one row a text, the same texts in the same order.  Raises
    `UserError` where they do not match, are no numbers, or where all rows of one are alike.
    """
    return _ratio(_centred(x, "x"), _centred(y, "y"), _hsic)


def debiased_cka(x: Vectors, y: Vectors) -> float:
    """Debiased linear CKA: 1 for the same vectors, 0 in the mean (and at times below) for unrelated ones.

    x, y: float [n, d] and [n, e] with n >= 4, as in `biased_cka`, which also says what is refused.
    """
    return _ratio(_centred(x, "x"), _centred(y, "y"), _unbiased_hsic)


def _ratio(x: NDArray[np.float64], y: NDArray[np.float64], hsic: Hsic) -> float:
    if len(x) != len(y):
        raise UserError(
            f"CKA compares representations of the same texts; there are {len(x):,} and {len(y):,}",
            remedy="give one row for each text, in the same order",
        )
    own_x, own_y = hsic(x, x), hsic(y, y)
    if own_x <= 0 or own_y <= 0:
        raise UserError(
            "CKA has no value: the unbiased spread of one representation is not above 0",
            remedy="compare more texts",
        )
    return hsic(x, y) / float(np.sqrt(own_x * own_y))


def _hsic(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """HSIC of centred vectors, times (n - 1)^2: tr(K L) = |x'y|^2."""
    return float(np.sum((x.T @ y) ** 2))


def _unbiased_hsic(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """The unbiased HSIC, times n (n - 3).

    The estimate does not change when either kernel is centred, and the rows of a centred Gram
    matrix sum to 0.  Without its diagonal k they sum to -k_i, so that tr(KL) is |x'y|^2 - sum k_i l_i,
    1'K1 is -sum k_i, and 1'KL1 is sum k_i l_i.
    """
    n = len(x)
    k, l = np.sum(x**2, axis=1), np.sum(y**2, axis=1)  # noqa: E741 (the kernels' usual names)
    both = float(k @ l)
    products = _hsic(x, y) - both
    return products + float(k.sum() * l.sum()) / ((n - 1) * (n - 2)) - 2 * both / (n - 2)


def _centred(vectors: Vectors, name: str) -> NDArray[np.float64]:
    """The vectors in float64, less their mean, in units of their largest spread."""
    if vectors.ndim != 2 or len(vectors) < LEAST_TEXTS:
        raise UserError(
            f"CKA asks for at least {LEAST_TEXTS} vectors as rows; {name} is of shape {vectors.shape}",
            remedy="give an array [texts, dimensions]",
        )
    centred = np.asarray(vectors, dtype=np.float64)
    centred = centred - centred.mean(axis=0)
    if not np.isfinite(centred).all():
        raise UserError(
            f"{name} holds values that are not finite numbers",
            remedy="leave out runs that diverged",
        )
    largest, size = float(np.abs(centred).max()), float(np.abs(vectors).max())
    if largest <= 1e-12 * size or size == 0:
        raise UserError(
            f"all rows of {name} are alike: CKA has no value", remedy="compare texts that differ"
        )
    return centred / largest
