"""From answers to verdicts: what of each claim of params/claims.yaml held, and why."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from repro import params
from repro.params import Params
from repro.places import ROOT

Kind = Literal["num", "qual", "calc"]
SOURCES = {
    "mael": "Scaling Laws For Data-Constrained Dense Retrieval (2026)",
    "sigir24": "Scaling Laws For Dense Retrieval (SIGIR 2024)",
    "transfer": "An Empirical Study of Scaling Laws for Transfer (2024)",
    "classical": "classical scaling laws",
}
PARTS = {  # of answers, as a reader calls them
    "interaction": "between models", "bend_d": "along D", "bend_n": "along N",
    "loo_model": "model out", "loo_size": "size out", "worst_model": "worst, model out",
    "worst_size": "worst, size out", "mrr10": "MRR@10", "recall100": "Recall@100",
    "ndcg10": "nDCG@10", "map10": "MAP@10", "ratio_lr_steps": "ratio, lr-steps",
    "train_usd": "training, USD", "serve_usd": "serving, USD",
    "params_5k": "N for 5k USD", "params_20k": "N for 20k USD", "params_5m": "N for 5M USD",
    "params_20m": "N for 20M USD", "one": "noiseless, one solution", "volume": "noiseless, a volume",
    "noisy": "noisy labels", "floor": "floor", "factor": "off by a factor of", "nc": "N_c",
    "dc": "D_c", "overfit": "N^x / D, x", "parameters": "parameters x", "tokens": "tokens x",
    "gpt3": "N of GPT-3", "forward": "forward FLOP, counted / formula", "approach_1": "a, envelope",
    "approach_2": "a, parabolas", "approach_3": "a, parametric", "a": "a", "r_d": "R_D",
    "r_n": "R_N", "medium": "additive optimum", "base": "larger model",
    "model": "model's efficiency", "data": "data's efficiency", "n": "in N", "d": "in D",
    "best_r_d": "better R_D", "best_r_n": "better R_N", "cka": "debiased CKA",
}  # fmt: skip
NOT_COMPARABLE = "needs the paper's data and models, which are not this study's"


class Rule(Params):
    """Where one part of an answer must lie ("" is its value) for the claim to hold."""

    part: str = ""
    above: float | None = None
    below: float | None = None
    fails_below: float | None = None  # where failing is not the mere opposite of holding

    def holds(self, answer: Mapping[str, Any]) -> bool | None:
        """True or False if the whole interval lies inside or outside; None if neither."""
        value, interval = _quantity(answer, self.part)
        if value is None or answer.get("parts", {}).get(self.part, {}).get("endless"):
            return None
        low, high = interval or (value, value)
        if (self.above is None or low > self.above) and (self.below is None or high < self.below):
            return True
        floor = self.above if self.fails_below is None else self.fails_below
        if (floor is not None and high <= floor) or (self.below is not None and low >= self.below):
            return False
        return None

    def __str__(self) -> str:
        limits = [f"> {self.above:g}"] if self.above is not None else []
        limits += [f"< {self.below:g}"] if self.below is not None else []
        return f"{PARTS.get(self.part, self.part) or 'value'} {' and '.join(limits)}"


class Judgement(Params):
    """A question that any study can be asked; without rules the experiment decides by `asks`."""

    asks: str
    holds_if: list[Rule] = []


class Comparison(Params):
    """Printed numbers by part ("" is the value), and how far (relative) one may be off and be close."""

    values: dict[str, float]
    close: float = Field(gt=0, le=1)


class Claim(Params):
    """One row of params/claims.yaml."""

    id: str
    source: Literal["mael", "sigir24", "transfer", "classical"]
    notebook: str
    sentence: str
    paper: str
    value: str = ""  # what the single value of an answer is
    num: Comparison | None = None
    qual: Judgement | None = None
    calc: Comparison | None = None
    percent: list[Kind] = []  # shown as percentages; the report keeps shares
    not_run: str = ""

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of verdict that the claim asks for."""
        kinds: tuple[Kind, ...] = ("num", "qual", "calc")
        return [kind for kind in kinds if getattr(self, kind) is not None]


class Limit(Params):
    """A limit of the papers or of this study, and whether a notebook tests it."""

    text: str
    status: str = Field(pattern=r"^(open|tested in \d\d)$")


class Claims(Params):
    """The file params/claims.yaml."""

    claims: list[Claim]
    limits: list[Limit]


def load(path: Path | None = None) -> Claims:
    """The claims file; raises `UserError` that names line and key."""
    return params.load(path or ROOT / "params" / "claims.yaml", Claims)


def verdicts(
    answers: Mapping[str, Any], *, comparable: Collection[str] = (), claims: Claims | None = None
) -> list[dict[str, Any]]:
    """A row a claim and kind: {id, kind, source, notebook, claim, paper, asks, value, ours, ci95, unit, n,
    verdict, why}.

    answers: claim -> answer, or experiment -> such a mapping; "ID:calc" answers the calc kind, "ID"
    the others.  comparable: sources and claims whose printed numbers the study may be held against.
    Kinds of one claim that were not run share a row.
    """
    found = _flat(answers)
    rows = []
    for claim in (claims or load()).claims:
        missing: list[Kind] = []
        for kind in claim.kinds:
            answer = found.get(f"{claim.id}:calc" if kind == "calc" else claim.id)
            if answer is None:
                missing.append(kind)
            else:
                rows.append(_row(claim, kind, answer, *_judge(claim, kind, answer, comparable)))
        if missing:
            why = claim.not_run or f"no answer came from notebook {claim.notebook}"
            rows.append(_row(claim, ", ".join(missing), {}, "not run", why))
    return rows


def _judge(
    claim: Claim, kind: Kind, answer: Mapping[str, Any], comparable: Collection[str]
) -> tuple[str, str]:
    why = str(answer.get("why", ""))
    if kind == "qual":
        assert claim.qual is not None
        return _judge_quality(claim.qual, answer, why)
    comparison = claim.num if kind == "num" else claim.calc
    assert comparison is not None
    if kind == "num" and not {claim.id, claim.source} & set(comparable):
        return "not comparable", NOT_COMPARABLE
    if answer.get("blocked"):
        return "not run", str(answer["blocked"])
    return _compare(comparison, answer), why


def _judge_quality(asked: Judgement, answer: Mapping[str, Any], why: str) -> tuple[str, str]:
    if answer.get("blocked"):
        return "inconclusive", str(answer["blocked"])
    if not asked.holds_if:
        decided = answer.get("holds")
        return {True: "holds", False: "fails", None: "inconclusive"}[decided], why
    outcomes = {str(rule): rule.holds(answer) for rule in asked.holds_if}
    if all(outcomes.values()):
        return "holds", f"{', '.join(outcomes)}; {why}"
    broken = [rule for rule, outcome in outcomes.items() if outcome is False]
    if broken:
        return "fails", f"not {', not '.join(broken)}; {why}"
    open_ = [rule for rule, outcome in outcomes.items() if outcome is None]
    return (
        "inconclusive",
        f"open, the interval reaches both sides or there is none: {', '.join(open_)}; {why}",
    )


def _compare(comparison: Comparison, answer: Mapping[str, Any]) -> str:
    """match (a tenth of `close`, or the rounding of the printed value), close, or differs."""
    worst = "match"
    for name, printed in comparison.values.items():
        value, _ = _quantity(answer, name)
        if value is None:
            return "not run"
        miss = abs(value - printed)
        if miss > max(0.1 * comparison.close * abs(printed), _rounding(printed)):
            worst = (
                "close"
                if worst != "differs" and miss <= comparison.close * abs(printed)
                else "differs"
            )
    return worst


def _row(
    claim: Claim, kind: str, answer: Mapping[str, Any], verdict: str, why: str
) -> dict[str, Any]:
    named = _named(claim, kind)
    parts = {name: _quantity(answer, name) for name in named}
    single = set(parts) <= {""}
    ours = {name: value for name, (value, _) in parts.items() if value is not None}
    ci95 = {name: ends for name, (_, ends) in parts.items() if ends is not None}
    value, ends = _quantity(answer, "")
    return {
        "id": claim.id,
        "kind": kind,
        "source": SOURCES[claim.source],
        "notebook": claim.notebook,
        "claim": claim.sentence,
        "paper": claim.paper,
        "asks": claim.qual.asks if kind == "qual" and claim.qual else "",
        "value": claim.value if single else "",
        "ours": value if single else ours or None,
        "ci95": ends if single else ci95 or None,
        "unit": "%" if kind in claim.percent else "",
        "n": answer.get("n"),
        "verdict": verdict,
        "why": why,
    }


def _named(claim: Claim, kind: str) -> list[str]:
    """The parts that a claim of this kind is about."""
    if kind == "qual" and claim.qual is not None:
        return list(dict.fromkeys(rule.part for rule in claim.qual.holds_if))
    comparison = {"num": claim.num, "calc": claim.calc}.get(kind)
    return list(comparison.values) if comparison else []


def _quantity(answer: Mapping[str, Any], name: str) -> tuple[float | None, list[float] | None]:
    """Value and interval of a part of an answer; "" is the answer itself."""
    found = answer if name == "" else answer.get("parts", {}).get(name, {})
    return found.get("value"), found.get("ci95")


def _flat(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Claim -> answer, whether or not they are grouped by experiment."""
    flat: dict[str, Any] = {}
    for key, value in answers.items():
        if re.fullmatch(r"[A-Z]\d+(:calc)?", key):
            flat[key] = value
        elif isinstance(value, Mapping):
            flat |= {k: v for k, v in value.items() if re.fullmatch(r"[A-Z]\d+(:calc)?", k)}
    return flat


def _rounding(printed: float) -> float:
    """Half a unit of the last digit with which `printed` is written."""
    mantissa, _, exponent = f"{printed!r}".partition("e")
    digits = len(mantissa.partition(".")[2]) if "." in mantissa else 0
    return 0.5 * 10.0 ** (int(exponent or 0) - digits)
