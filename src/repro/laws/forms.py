"""The laws, each as data: name, formula, parameters with meaning and bounds, derivatives, source.

To add a form, add one entry to `_ALL`.  A sum of power terms needs no code (`PowerSum`); anything
else is a `Shape` with an analytic Jacobian (see `shapes`).  Units: N in parameters, D in judged
pairs (or tokens), losses in nats; only ratios to the constants matter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from repro.errors import UserError, nearest
from repro.laws.classical import Broken, Repeated
from repro.laws.powersum import PowerSum, Term
from repro.laws.shapes import Capped, Floored, Joint, Parameter, Shape

CHANCE_257 = math.log(257)  # contrastive entropy of equal scores: one positive among 256 negatives

_MEANING = {
    "c": "level of the law (constant of the power product)",
    "A": "constant of the model term",
    "B": "constant of the data term",
    "alpha": "exponent in model size",
    "beta": "exponent in labelled pairs",
    "E": "irreducible loss (floor)",
    "delta": "irreducible loss (floor)",
    "D0": "pairs that the pre-trained start is worth",
    "L0": "loss at chance",
    "k": "level of the steps law",
    "a": "exponent of the steps in model size (S falls with N where positive)",
    "b": "exponent of the steps in labelled pairs",
}


@dataclass(frozen=True)
class Form:
    """A law: what it says, where it comes from, and how it is computed (`shape`).

    `fixed` holds parameters that keep a known value unless a fit frees them.
    `response` names what is predicted.
    """

    name: str
    title: str
    formula: str
    latex: str
    source: str
    shape: Shape
    fixed: Mapping[str, float] = field(default_factory=dict)
    response: str = "loss"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, in order."""
        return tuple(p.name for p in self.shape.parameters)

    @property
    def variables(self) -> tuple[str, ...]:
        """Columns that a table must have: n (model size), d (pairs), ..."""
        return self.shape.variables

    @property
    def n_free(self) -> int:
        """Number of parameters that a fit with the form's own fixed values determines."""
        return len(self.names) - len(self.fixed)

    def parameter(self, name: str) -> Parameter:
        """The parameter called `name`; raises `UserError`."""
        for parameter in self.shape.parameters:
            if parameter.name == name:
                return parameter
        raise UserError(
            f"the form {self.name} has no parameter {name!r}",
            remedy=nearest(name, list(self.names)),
        )


def form(name: str) -> Form:
    """The form called `name`; raises `UserError` with the nearest right name."""
    if name not in FORMS:
        raise UserError(f"there is no form {name!r}", remedy=nearest(name, list(FORMS)))
    return FORMS[name]


_N: tuple[str, str, float] = ("n", "alpha", -1.0)
_D: tuple[str, str, float] = ("d", "beta", -1.0)
_FLOOR = Term("E", linear=True)
_DELTA = Term("delta", linear=True)
_JOINT = Joint(
    (
        Parameter(
            "A", "model size at which the model term is 1", "radius", (-60, 60), (-3.0, 0.5), (_N,)
        ),
        Parameter("alpha", _MEANING["alpha"], start=(0.05, 1.5)),
        Parameter(
            "B", "pairs at which the data term is 1", "radius", (-60, 60), (-3.0, 0.5), (_D,)
        ),
        Parameter("beta", _MEANING["beta"], "exponent", (0.01, 10.0), (0.05, 2.0)),
    )
)
_PRODUCT = PowerSum((Term("c", (_N, _D)),), _MEANING)

_C0: tuple[str, str, float] = ("d", "c0", -1.0)
_FADE = ((-4.6, 11.5), (-1.0, 6.5))  # logarithms: of .01 to 100,000; starts of .4 to 665
_CAP = Parameter("L0", _MEANING["L0"], "level", (1e-3, 1e3))


def _transfer(shifts: Mapping[str, str]) -> PowerSum:
    power: tuple[str, str, float] = ("f", "beta", -1.0)
    return PowerSum(
        (Term("A", (("p", "alpha", -1.0), power)), Term("G", (power,), linear=True), _FLOOR),
        {
            "A": "gap that pre-training closes",
            "alpha": "exponent in pre-training",
            "G": "transfer gap that no pre-training closes",
            "beta": "exponent in fine-tuning examples",
            "E": _MEANING["E"],
            "f0": "examples that the start is worth",
        },
        shifts,
    )


_BARNETT = "Barnett 2024, arXiv 2408.16947 (form from a summary); shape of Mikami et al. 2021"
_MAEL = "Scaling Laws For Data-Constrained Dense Retrieval (2026)"
_ROSENFELD = (
    "Rosenfeld et al. 2020, arXiv 1909.12673; Hoffmann et al. 2022, arXiv 2203.15556, approach 3"
)
_SIGIR = "Fang et al., SIGIR 2024, arXiv 2403.18684; shape of Kaplan et al. 2020, eq. 1.5"

_ALL = (
    Form(
        "product", "product law", "c N^-alpha D^-beta", r"c\,N^{-\alpha}D^{-\beta}", _MAEL, _PRODUCT
    ),
    Form(
        "product_floor",
        "product law with floor",
        "c N^-alpha D^-beta + E",
        r"c\,N^{-\alpha}D^{-\beta}+E",
        "ours: the product law with an irreducible loss",
        PowerSum((Term("c", (_N, _D)), _FLOOR), _MEANING),
    ),
    Form(
        "product_d0",
        "product law with head start",
        "c N^-alpha (D + D0)^-beta",
        r"c\,N^{-\alpha}(D+D_0)^{-\beta}",
        "ours: the pre-trained start counted as D0 pairs",
        PowerSum((Term("c", (_N, _D)),), _MEANING, {"d": "D0"}),
    ),
    Form(
        "product_capped",
        "product law capped at chance",
        "x / sqrt(1 + (x/L0)^2), x = c N^-alpha D^-beta",
        r"x\big/\sqrt{1+(x/L_0)^2},\quad x=c\,N^{-\alpha}D^{-\beta}",
        "envelope of Rosenfeld et al. 2020, arXiv 1909.12673, on the product law",
        Capped(_PRODUCT, _CAP),
        {"L0": CHANCE_257},
    ),
    Form(
        "additive",
        "additive law",
        "A N^-alpha + B D^-beta",
        r"A\,N^{-\alpha}+B\,D^{-\beta}",
        _ROSENFELD,
        PowerSum((Term("A", (_N,)), Term("B", (_D,))), _MEANING),
    ),
    Form(
        "additive_floor",
        "additive law with floor",
        "A N^-alpha + B D^-beta + E",
        r"A\,N^{-\alpha}+B\,D^{-\beta}+E",
        _ROSENFELD,
        PowerSum((Term("A", (_N,)), Term("B", (_D,)), _FLOOR), _MEANING),
    ),
    Form(
        "joint",
        "joint law",
        "[(A/N)^(alpha/beta) + B/D]^beta",
        r"\left[(A/N)^{\alpha/\beta}+B/D\right]^{\beta}",
        _SIGIR,
        _JOINT,
    ),
    Form(
        "joint_floor",
        "joint law with floor",
        "[(A/N)^(alpha/beta) + B/D]^beta + delta",
        r"\left[(A/N)^{\alpha/\beta}+B/D\right]^{\beta}+\delta",
        _SIGIR,
        Floored(_JOINT, Parameter("delta", _MEANING["delta"], "level", (0.0, 50.0), (0.0, 0.9))),
    ),
    Form(
        "single_n",
        "N-law",
        "(A/N)^alpha",
        r"(A/N)^{\alpha}",
        "Kaplan et al. 2020, arXiv 2001.08361, eq. 1.1",
        PowerSum((Term("A", (_N,), radius=True),), _MEANING),
    ),
    Form(
        "single_n_floor",
        "N-law with floor",
        "(A/N)^alpha + delta",
        r"(A/N)^{\alpha}+\delta",
        "Fang et al., SIGIR 2024, arXiv 2403.18684",
        PowerSum((Term("A", (_N,), radius=True), _DELTA), _MEANING),
    ),
    Form(
        "single_d",
        "D-law",
        "(B/D)^beta",
        r"(B/D)^{\beta}",
        "Hestness et al. 2017, arXiv 1712.00409; Kaplan et al. 2020, eq. 1.2",
        PowerSum((Term("B", (_D,), radius=True),), _MEANING),
    ),
    Form(
        "single_d_floor",
        "D-law with floor",
        "(B/D)^beta + delta",
        r"(B/D)^{\beta}+\delta",
        "Fang et al., SIGIR 2024, arXiv 2403.18684; Amari et al. 1992",
        PowerSum((Term("B", (_D,), radius=True), _DELTA), _MEANING),
    ),
    Form(
        "steps",
        "steps law",
        "k N^-a D^b",
        r"k\,N^{-a}D^{b}",
        _MAEL,
        PowerSum((Term("k", (("n", "a", -1.0), ("d", "b", 1.0))),), _MEANING, signed=True),
        response="steps to the minimum",
    ),
)

_CLASSICAL = (
    Form(
        "rosenfeld",
        "additive law capped at chance",
        "x / sqrt(1 + (x/L0)^2), x = A N^-alpha + B D^-beta + E",
        r"x\big/\sqrt{1+(x/L_0)^2},\quad x=A\,N^{-\alpha}+B\,D^{-\beta}+E",
        "Rosenfeld et al. 2020, arXiv 1909.12673, eq. 5 (envelope as summarised)",
        Capped(PowerSum((Term("A", (_N,)), Term("B", (_D,)), _FLOOR), _MEANING), _CAP),
        {"L0": CHANCE_257},
    ),
    Form(
        "kaplan_steps",
        "steps-limited law",
        "(A/N)^alpha + (S0/S)^sigma",
        r"(A/N)^{\alpha}+(S_0/S)^{\sigma}",
        "Kaplan et al. 2020, arXiv 2001.08361, eq. 1.6",
        PowerSum(
            (Term("A", (_N,), radius=True), Term("S0", (("s", "sigma", -1.0),), radius=True)),
            {**_MEANING, "S0": "steps at which the steps term is 1", "sigma": "exponent in steps"},
        ),
    ),
    Form(
        "transfer",
        "transfer law",
        "(A p^-alpha + G) f^-beta + E",
        r"(A\,p^{-\alpha}+G)\,f^{-\beta}+E",
        _BARNETT,
        _transfer({}),
    ),
    Form(
        "transfer_f0",
        "transfer law with head start",
        "(A p^-alpha + G) (f + f0)^-beta + E",
        r"(A\,p^{-\alpha}+G)\,(f+f_0)^{-\beta}+E",
        f"{_BARNETT}; ours: f0, so that f = 0 has a value",
        _transfer({"f": "f0"}),
    ),
    Form(
        "effective_data",
        "effective data transferred",
        "k f^alpha n^beta",
        r"k\,D_F^{\alpha}N^{\beta}",
        "Hernandez et al. 2021, arXiv 2102.01293, eq. 1.1",
        PowerSum(
            (Term("k", (("f", "alpha", 1.0), ("n", "beta", 1.0))),),
            {
                "k": "level of the transferred data",
                "alpha": "exponent in fine-tuning data",
                "beta": "exponent in model size",
            },
            signed=True,
        ),
        response="data transferred",
    ),
    Form(
        "repeated",
        "law of repeated data",
        "E + A/N'^alpha + B/D'^beta, D' = U (1 + R_D (1 - exp(-(D/U - 1)/R_D))), N' alike",
        r"E+A/N'^{\alpha}+B/D'^{\beta},\ D'=U\left(1+R_D(1-e^{-(D/U-1)/R_D})\right)",
        "Muennighoff et al. 2023, arXiv 2305.16264, eq. 5 to 7",
        Repeated(
            (
                Parameter("A", _MEANING["A"], "constant", (-60, 60), (-3.0, 0.5), (_N,)),
                Parameter("alpha", _MEANING["alpha"], "exponent", (0.01, 10.0)),
                Parameter("B", _MEANING["B"], "constant", (-60, 60), (-3.0, 0.5), (_D,)),
                Parameter("beta", "exponent in data", "exponent", (0.01, 10.0)),
                Parameter("E", _MEANING["E"], "level", (0.0, 50.0), (0.0, 0.9)),
                Parameter("R_D", "epochs after which repetition fades", "place", *_FADE),
                Parameter("R_N", "the same for excess parameters", "place", *_FADE),
            )
        ),
    ),
    Form(
        "over_training",
        "law of over-training",
        "E + (a m^eta + b m^-eta) c^-eta",
        r"E+(a\,M^{\eta}+b\,M^{-\eta})\,C^{-\eta}",
        "Gadre et al. 2024, arXiv 2403.08540",
        PowerSum(
            (
                Term("a", (("m", "eta", 1.0), ("c", "eta", -1.0))),
                Term("b", (("m", "eta", -1.0), ("c", "eta", -1.0))),
                _FLOOR,
            ),
            {"a": "data side", "b": "model side", "eta": "exponent in compute", "E": _MEANING["E"]},
        ),
    ),
    Form(
        "broken",
        "broken power law",
        "a + b D^-c0 (1 + (D/d1)^(1/f1))^(-c1 f1)",
        r"a+b\,D^{-c_0}\left(1+(D/d_1)^{1/f_1}\right)^{-c_1f_1}",
        "Caballero et al. 2022, arXiv 2210.14891, one break",
        Floored(
            Broken(
                (
                    Parameter(
                        "b", "level before the break", "constant", (-60, 60), (-1.0, 1.0), (_C0,)
                    ),
                    Parameter("c0", "exponent before the break", start=(0.0, 0.6)),
                    Parameter(
                        "c1", "change of the exponent", "exponent", (-10.0, 10.0), (-0.4, 0.6)
                    ),
                    Parameter(
                        "d1", "data at the break", "place", (-8.0, 8.0), (-2.0, 2.0), (), "d"
                    ),
                    Parameter("f1", "width of the break", "free", (0.02, 5.0), (0.1, 1.0)),
                )
            ),
            Parameter("a", _MEANING["E"], "level", (0.0, 50.0), (0.0, 0.9)),
        ),
    ),
)

FORMS: dict[str, Form] = {entry.name: entry for entry in (*_ALL, *_CLASSICAL)}
