"""Known answers: data whose law is known, for notebook 09 and for anyone who doubts a fit.

Each function makes its data from a seed or from published constants and returns a table of what
was put in and what came out.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import wishart

from repro.laws.fit import fit
from repro.laws.flops import Transformer
from repro.laws.holdout import corner
from repro.laws.intervals import intervals
from repro.laws.isoflop import FLOP_PER_TOKEN, closed_form, envelope, parabolas, parametric
from repro.laws.shapes import Array
from repro.laws.table import Table

KAPLAN = {"A": 6.4e13, "alpha": 0.076, "B": 1.8e13, "beta": 0.103}  # arXiv 2001.08361, eq. 1.5
KAPLAN_COMPUTE = 0.73  # the same, table 6: the best N grows as C^.73, so D = C/6N as C^.27
REGIMES = {"chance": float(np.log(257)), "exponent": 0.35, "floor": 0.15}  # put into `regimes`
HOFFMANN = {"A": 406.4, "alpha": 0.34, "B": 410.7, "beta": 0.28, "E": 1.69}  # arXiv 2203.15556
AMARI = {  # exponent and whether a floor is left, Amari, Fujita and Shinomoto 1992
    "noiseless, one solution": (1.0, False),
    "noiseless, a volume of solutions": (2.0, False),
    "noisy labels, a certain learner": (0.5, False),
    "noisy labels, a loss that keeps the noise": (1.0, True),
}


def amari(rng: np.random.Generator, repeats: int = 1000) -> pd.DataFrame:
    """Learning curves of four learners built to have Amari's four exponents: case, t, error.

    A threshold between labelled points; the same with an empty gap around it; the bias of a coin,
    in absolute error; a linear regression in five dimensions, in squared error on noisy labels.
    """
    sizes = np.unique(np.geomspace(160, 5120, 6).round().astype(int))
    rows = []
    for t in sizes:
        for case, error in zip(AMARI, _amari_errors(int(t), rng, repeats), strict=True):
            rows.append((case, int(t), float(error)))
    return pd.DataFrame(rows, columns=["case", "t", "error"])


def amari_exponents(curves: pd.DataFrame) -> pd.DataFrame:
    """The exponents recovered from `amari`: case, expected, found, low, high, floor."""
    rows = []
    for case, (expected, floor) in AMARI.items():
        here = curves[curves["case"] == case]
        table = Table(here["error"].to_numpy(), d=here["t"].to_numpy(float))
        fitted = fit("single_d_floor" if floor else "single_d", table)
        low, high = intervals(fitted)["beta"]
        p = fitted.parameters
        rows.append((case, expected, p["beta"], low, high, p.get("delta", 0.0)))
    return pd.DataFrame(rows, columns=["case", "expected", "found", "low", "high", "floor"])


def regimes(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Hestness's three regimes: chance, power law, floor.  (curve: d, loss), (exponent by range)."""
    d = np.geomspace(10, 1e8, 29)
    power = 60 * d ** -REGIMES["exponent"]
    loss = power / np.sqrt(1 + (power / REGIMES["chance"]) ** 2) + REGIMES["floor"]
    loss = loss * np.exp(0.01 * rng.normal(size=len(d)))
    ranges = {"small data: chance": (0, 1e3), "middle": (1e4, 1e6), "large data: floor": (1e7, 1e9)}
    rows = []
    for name, (low, high) in ranges.items():
        here = (d >= low) & (d <= high)
        fitted = fit("single_d", Table(loss[here], d=d[here]))
        rows.append((name, int(here.sum()), fitted.parameters["beta"], *intervals(fitted)["beta"]))
    names = ["range", "points", "exponent (true .35)", "low", "high"]
    return pd.DataFrame({"d": d, "loss": loss}), pd.DataFrame(rows, columns=names)


def regimes_recovered(curve: pd.DataFrame) -> dict[str, float]:
    """Chance, exponent and floor as the curve of `regimes` shows them.

    The floor and the exponent come from a power law with floor past 1e5 pairs, where chance no longer
    bends the curve by more than 2 %; chance is the mean loss over that floor up to 30 pairs.
    """
    late, early = curve[curve["d"] >= 1e5], curve[curve["d"] <= 30]
    fitted = fit("single_d_floor", Table(late["loss"].to_numpy(), d=late["d"].to_numpy()))
    floor = fitted.parameters["delta"]
    chance = float(early["loss"].mean()) - floor
    return {"chance": chance, "exponent": fitted.parameters["beta"], "floor": floor}


def small_to_large(rng: np.random.Generator) -> pd.DataFrame:
    """Rosenfeld: laws fitted to small N and D predict the large corner: law, mean and worst error."""
    n, d = _grid(np.geomspace(1e6, 1e9, 7), np.geomspace(1e7, 1e10, 7))
    loss = additive(n, d) * np.exp(0.01 * rng.normal(size=len(n)))
    table = Table(loss, n, d)
    rows = []
    for law in ("additive_floor", "additive", "joint_floor", "product_floor", "product"):
        out = corner(law, table)
        rows.append((law, out.mean, out.worst))
    return pd.DataFrame(rows, columns=["law", "mean error", "worst error"])


def kaplan() -> pd.DataFrame:
    """Kaplan's constants and consequences: claim, paper, computed."""
    n, d = _grid(np.geomspace(768, 1.5e9, 8), np.geomspace(2.2e7, 2.3e10, 8))
    a, b = KAPLAN["alpha"], KAPLAN["beta"]
    table = Table(((KAPLAN["A"] / n) ** (a / b) + KAPLAN["B"] / d) ** b, n, d)
    found = fit("joint", table).parameters
    gpt3 = Transformer(96, 12288, n_ctx=2048)
    rows: list[tuple[str, float | None, float]] = [
        (f"{name} from its own grid", KAPLAN[name], found[name]) for name in KAPLAN
    ]
    rows += [
        ("over-fitting is governed by N^x / D, x", 0.74, a / b),
        ("10 x compute: x times the parameters", 5.5, 10**KAPLAN_COMPUTE),
        ("10 x compute: x times the tokens", 1.8, 10 ** (1 - KAPLAN_COMPUTE)),
        ("N of GPT-3 = 12 layers x width^2", 175e9, float(gpt3.parameters)),
        ("its forward FLOP, counted product by product, over the formula", 1.0, _counted(gpt3)),
        ("its forward FLOP a token over 2 N (attention is the rest)", None, _over_2n(gpt3)),
        ("steps to a loss of 3.5: N = 1e8 over N = 1e9", None, _steps(1e8, 3.5) / _steps(1e9, 3.5)),
    ]
    return pd.DataFrame(rows, columns=["claim", "paper", "computed"])


def approaches(rng: np.random.Generator, noise: float = 0.002) -> pd.DataFrame:
    """Chinchilla's three approaches on data from the published law: approach, a, true a, error."""
    true, _, _ = closed_form(*(HOFFMANN[k] for k in ("A", "alpha", "B", "beta")))
    models = np.geomspace(4e7, 1.6e10, 16)
    spent = np.geomspace(3e17, 3e22, 80)[None] * np.ones((16, 1))
    curves = additive(models[:, None], spent / (FLOP_PER_TOKEN * models[:, None]))
    curves = curves * np.exp(noise * rng.normal(size=curves.shape))
    n, c = _grid(np.geomspace(4e7, 1.6e10, 16), np.geomspace(6e18, 3e21, 9))
    keep = (c / (6 * n) > 2 * n) & (c / (6 * n) < 400 * n)
    n, c = n[keep], c[keep]
    d = c / (FLOP_PER_TOKEN * n)
    loss = additive(n, d) * np.exp(noise * rng.normal(size=len(n)))
    found = {
        "1: envelope of training curves": envelope(models, spent, curves).a,
        "2: IsoFLOP parabolas": parabolas(n, c, loss).a,
        "3: parametric, closed form": parametric(fit("additive_floor", Table(loss, n, d))).a,
    }
    frame = pd.DataFrame({"approach": list(found), "a": list(found.values())})
    return frame.assign(true=float(true), error=frame["a"] - float(true))


def counting() -> pd.DataFrame:
    """What N counts: exponent a of the best N in compute, by how both are counted, by range of C.

    A law in all parameters, alpha = beta, so that a = .5; transformers of Kaplan's sizes, whose
    embeddings (50,257 tokens) are most of a small model.
    """
    width = np.geomspace(32, 12288, 2000)
    body = 12 * (width / 64) * width**2  # width / 64 layers
    everything = body + 50_257 * width
    rows = []
    for name, low, high in (("small", 1e15, 1e18), ("middle", 1e18, 1e21), ("large", 1e21, 1e24)):
        budgets = np.geomspace(low, high, 20)
        for counted, size in (("without embeddings", body), ("all parameters", everything)):
            d = budgets[:, None] / (FLOP_PER_TOKEN * size)
            best = (400 * everything**-0.3 + 400 * d**-0.3).argmin(axis=1)
            slope = np.polyfit(np.log(budgets), np.log(size[best]), 1)[0]
            rows.append((f"{name}: {low:.0e} to {high:.0e} FLOP", counted, float(slope)))
    return pd.DataFrame(rows, columns=["compute", "N and C count", "a"])


def vanishing_floor(rng: np.random.Generator, draws: int = 200) -> Array:
    """Floors fitted to grids of the product law, which has none, with 2 % noise: (draws,)."""
    n, d = _grid(np.geomspace(4e5, 8.5e7, 5), np.geomspace(5e3, 3.2e5, 7))
    true = 100 * n**-0.161 * d**-0.206
    noise = np.exp(0.02 * rng.normal(size=(draws, len(n))))
    fits = [fit("product_floor", Table(true * row, n, d), starts=16) for row in noise]
    return np.array([fitted.parameters["E"] for fitted in fits])


def additive(n: Array, d: Array) -> Array:
    """Chinchilla's published law (rounded constants)."""
    p = HOFFMANN
    return np.asarray(p["A"] * n ** -p["alpha"] + p["B"] * d ** -p["beta"] + p["E"])


def _grid(n: Array, d: Array) -> tuple[Array, Array]:
    one, two = np.meshgrid(n, d, indexing="ij")
    return one.ravel(), two.ravel()


def _counted(model: Transformer) -> float:
    """Operations a token of a causal decoder, each matrix product by itself, over C_forward."""
    width, seen = (
        model.d_model,
        (model.n_ctx + 1) / 2,
    )  # a token sees half of the context on average
    projections = 4 * 2 * width * width  # query, key, value, output
    attention = 2 * 2 * seen * width  # scores, and the mean of the values
    feed_forward = 2 * 2 * width * (4 * width)
    total = model.n_layer * (projections + attention + feed_forward)
    return total / model.forward_flop_per_token


def _over_2n(model: Transformer) -> float:
    return model.forward_flop_per_token / (2 * model.parameters)


def _steps(n: float, loss: float) -> float:
    """Steps to a loss, Kaplan 2020, eq. 1.6: L = (6.5e13/N)^.077 + (2.1e3/S)^.76."""
    return float(2.1e3 / (loss - (6.5e13 / n) ** 0.077) ** (1 / 0.76))


def _amari_errors(t: int, rng: np.random.Generator, repeats: int) -> list[float]:
    x = rng.uniform(size=(repeats, t))
    left = 0.5 - np.where(x < 0.5, x, 0.0).max(axis=1)
    right = np.where(x >= 0.5, x, 1.0).min(axis=1) - 0.5
    one = (left**2 + right**2) / (2 * (left + right))  # threshold anywhere between the points
    y = np.where(x < 0.5, 0.8 * x, 0.8 * x + 0.2)  # nothing falls between .4 and .6
    below = 0.4 - np.where(y < 0.5, y, 0.0).max(axis=1)
    above = np.where(y >= 0.5, y, 1.0).min(axis=1) - 0.6
    two = (below**2 + above**2) / (2 * 0.8 * (0.2 + below + above))
    three = np.abs((x < 0.3).mean(axis=1) - 0.3)
    return [
        float(one.mean()),
        float(two.mean()),
        float(three.mean()),
        _regression(t, rng, 40 * repeats),
    ]


def _regression(t: int, rng: np.random.Generator, repeats: int, noise: float = 0.5) -> float:
    """Expected squared error of a five-dimensional regression learnt from t noisy labels.

    The learnt weights are off by noise x (X'X)^-1/2 times a standard normal; X'X is Wishart.
    """
    root = np.linalg.cholesky(wishart.rvs(t, np.eye(5), repeats, random_state=rng))
    off = np.linalg.solve(root.transpose(0, 2, 1), noise * rng.normal(size=(repeats, 5, 1)))
    return float(noise**2 + (off**2).sum(axis=(1, 2)).mean())
