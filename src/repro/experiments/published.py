"""What the papers' own printed numbers imply: arithmetic that needs no run of ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from repro.experiments.answer import Answer, answer, part
from repro.laws import efficiency as eff

ALPHA, BETA = 0.161, 0.206  # MAEL 2026: exponents of the product law
STEPS_N, STEPS_D = -0.5064, 0.9231  # MAEL 2026: S ~ N^STEPS_N D^STEPS_D
# Layers of BERT-Tiny, Mini, Small, Medium, Base (google-research/bert); MAEL halves lr at each.
BERT = (396_544, 3_159_040, 12_609_536, 25_219_072, 85_054_464)

A100_USD_AN_HOUR = 3.93  # SIGIR'24, cost model: A100-80G
A100_FLOP_A_SECOND = 312e12 * 0.25  # SIGIR'24: peak x utilisation
TRAIN_TOKENS = 10_000 * 256 * (30 + 2 * 60)  # SIGIR'24: steps x batch x (query + 2 passages)
SERVED_TOKENS = 30e12 * 512  # SIGIR'24: pages of the web x tokens a page


def answers() -> dict[str, Answer]:
    """`ID:calc` -> answer, for the claims that the printed constants decide."""
    return {
        "M11:calc": _compute(),
        "M12:calc": _efficiencies(),
        "M13:calc": _twice_the_model(),
        "M21:calc": _ratio_under_lr_steps(),
        "S11:calc": _unit_costs(),
    }


def ratios(most: float) -> list[dict[str, Any]]:
    """What the printed steps law implies under each reading, if its steps are raw or lr-steps (M21).

    Rows: printed (what they are taken for), reading, a, model, data (efficiencies; None: without end),
    ratio, at most `most`.
    """
    rates = np.array([2.0**-k for k in range(len(BERT))])
    rho = eff.lr_exponent(np.array(BERT, float), rates)
    data, rows = BETA / STEPS_D, []
    for printed, lr in (("raw", -STEPS_N + rho), ("lr_steps", -STEPS_N)):
        raw = float(eff.convert(lr, rho, "lr", "raw"))
        for reading, a in (("raw", raw), ("lr_steps", lr), ("common", lr)):
            one = [np.array([value]) for value in (ALPHA, BETA, a, STEPS_D)]
            found = eff.ratio(one[0], one[1], one[2], one[3], most)
            model = ALPHA / (1 - a) if a < 1 else None
            row = {"printed": printed, "reading": reading, "a": a, "model": model, "data": data}
            rows.append(row | {"ratio": float(found[0])})
    return rows


def _compute() -> Answer:
    why = "C ~ N S: the exponent in N is 1 plus that of the steps law"
    return answer(None, why, n=0, parts={"n": part(1 + STEPS_N)})


def _efficiencies() -> Answer:
    model, data = ALPHA / (1 + STEPS_N), BETA / STEPS_D
    parts = {"model": part(model), "data": part(data), "ratio": part(model / data)}
    why = (
        f"alpha and beta over the exponents of compute; the second is {data:.4f}, printed as .2234"
    )
    return answer(None, why, n=0, parts=parts)


def _twice_the_model() -> Answer:
    pairs = 2 ** (-(1 + STEPS_N) / STEPS_D)
    parts = {"pairs": part(pairs), "loss": part(2**-ALPHA * pairs**-BETA)}
    return answer(None, "from the exponents of M6 and M11", n=0, parts=parts)


def _ratio_under_lr_steps() -> Answer:
    # The paper halves lr for each larger model, lr ~ N^-.52: lr-steps hardly depend on N, so C ~ N.
    ratio = ALPHA / (BETA / STEPS_D)
    why = "if the steps are lr-normalised, raw steps hardly depend on N and C ~ N: the ratio turns below 1"
    return answer(None, why, n=0, parts={"ratio_lr_steps": part(ratio)})


def _unit_costs() -> Answer:
    usd_a_flop = A100_USD_AN_HOUR / 3600 / A100_FLOP_A_SECOND
    parts = {
        "train_usd": part(6 * TRAIN_TOKENS * usd_a_flop),
        "serve_usd": part(2 * SERVED_TOKENS * usd_a_flop),
    }
    return answer(
        None, "6 and 2 FLOP a token and parameter; 0.6 USD a label is cited", n=0, parts=parts
    )
