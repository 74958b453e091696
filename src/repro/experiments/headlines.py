"""SIGIR'24's headline allocations: what its joint law and its prices really give (S12, S13)."""

from __future__ import annotations

import numpy as np

from repro.experiments.answer import Answer, answer, part
from repro.laws.allocation import Optimum, optimum
from repro.laws.costs import NOTHING, WEB, Costs, unit_costs
from repro.laws.shapes import Array

# Joint law [(A/N)^(alpha/beta) + B/D]^beta + delta on MS MARCO, arXiv 2403.18684.
VERSION_2 = {"A": 3.6e4, "B": 7.1e3, "alpha": 0.56, "beta": 1.31, "delta": 0.03}
VERSION_1 = {"A": 8.2e5, "B": 5.2e3, "alpha": 0.57, "beta": 1.39, "delta": 0.03}
BUDGETS = {  # part -> USD, whether the web is encoded too, what the paper says
    "params_5k": (5e3, False, "1B"),
    "params_20k": (2e4, False, "13B"),
    "params_150k": (1.5e5, False, "over 10B"),
    "params_5m": (5e6, True, "10M"),
    "params_20m": (2e7, True, "40M"),
}
MSMARCO_PAIRS = 532_761  # judged training pairs, ir_datasets msmarco-passage/train/judged
BERT_BASE = 85_054_464  # parameters of its layers


def answers() -> dict[str, Answer]:
    """`S12:calc` and `S13:calc`."""
    return {"S12:calc": _headlines(), "S13:calc": _with_serving()}


def best(name: str, law: dict[str, float], max_pairs: float = 1e15) -> Optimum:
    """The best model and pairs for the budget called `name`."""
    budget, serving, _ = BUDGETS[name]

    def loss(n: Array, d: Array) -> Array:
        inner = (law["A"] / n) ** (law["alpha"] / law["beta"]) + law["B"] / d
        return np.asarray(inner ** law["beta"] + law["delta"])

    return optimum(
        loss, Costs(serving=WEB if serving else NOTHING).usd, budget, max_pairs=max_pairs
    )


def _headlines() -> Answer:
    second = {name: best(name, VERSION_2).n for name in BUDGETS}
    first = {name: best(name, VERSION_1).n for name in BUDGETS}
    said = "; ".join(
        f"{budget:,.0f} USD{' with serving' if serving else ''}: {_short(second[name])} "
        f"(v1 law {_short(first[name])}), paper {paper}"
        for name, (budget, serving, paper) in BUDGETS.items()
    )
    parts = {name: part(n) for name, n in second.items()}
    return answer(
        None, f"optima of the joint law of v2 under the printed prices. {said}", n=0, parts=parts
    )


def _with_serving() -> Answer:
    free = best("params_20m", VERSION_2)
    capped = best("params_20m", VERSION_2, MSMARCO_PAIRS)
    dearest = BUDGETS["params_20m"][0] / sum(unit_costs(Costs(serving=WEB))[1:])
    side = "under" if free.n <= BERT_BASE else "over"
    why = (
        f"{side} BERT-Base's {_short(BERT_BASE)}, as it must be: the budget serves no model over "
        f"{_short(dearest)}, whatever the law. The optimum asks for {free.d:,.0f} labels, MS MARCO has "
        f"{MSMARCO_PAIRS:,}; kept to those, the money left buys a model of {_short(capped.n)} "
        f"parameters and the loss is {capped.loss:.4f} instead of {free.loss:.4f}"
    )
    parts = {"params_20m": part(free.n), "params_capped": part(capped.n)}
    return answer(None, why, n=0, parts=parts)


def _short(count: float) -> str:
    return f"{count / 1e9:.3g}B" if count >= 1e9 * 0.95 else f"{count / 1e6:.3g}M"
