"""Which N the laws see, and whose numbers a study is held against."""

from __future__ import annotations

from dataclasses import replace

import pytest
import synthetic

from repro.app.study import Study
from repro.experiments import foresight, law_choice
from repro.experiments.answer import answer
from repro.experiments.runs import Runs, Trained
from repro.show import claims


@pytest.mark.slow
def test_mebi_counts_move_the_constant_and_no_exponent() -> None:
    table = synthetic.grid_table(synthetic.product, synthetic.FIVE, synthetic.SIX, noise=0.01)
    table["n_drscale_mebi"] = table["n_drscale"] * 1e6 / 2**20
    plain, mebi = (
        law_choice.answers(table, n=f"n_{count}") for count in ("drscale", "drscale_mebi")
    )
    assert (plain["n_column"], mebi["n_column"]) == ("n_drscale", "n_drscale_mebi")
    for name in ("alpha", "beta"):
        found = [each["M6"]["parts"][name]["value"] for each in (plain, mebi)]
        assert found[0] == pytest.approx(found[1], rel=1e-6)
    constants = [each["laws"]["product"]["params"]["c"] for each in (plain, mebi)]
    alpha = plain["M6"]["parts"]["alpha"]["value"]
    assert constants[1] / constants[0] == pytest.approx((1e6 / 2**20) ** alpha, rel=1e-4)


def test_the_same_forms_elsewhere_are_as_good_as_the_worse_of_both() -> None:
    """S10: .999 and .991 in the paper; a law without an R2 leaves it open."""
    both = {"S3": answer(0.999, "24 models", n=24), "S4": answer(0.985, "6 sizes", n=6)}
    found = foresight.elsewhere(both)
    rows = {row["id"]: row for row in claims.verdicts({"S10": found}, comparable=["S10"])}
    assert rows["S10"]["verdict"] == "close"
    assert rows["S10"]["ours"] == {"r2": 0.985}
    both["S4"] = answer(None, "few", n=3, blocked="3 sizes for 3 parameters")
    rows = {
        row["id"]: row
        for row in claims.verdicts({"S10": foresight.elsewhere(both)}, comparable=["S10"])
    }
    assert (rows["S10"]["verdict"], rows["S10"]["why"]) == ("not run", "3 sizes for 3 parameters")


def test_numbers_are_compared_with_those_papers_alone_that_are_named() -> None:
    found = {"M12": answer(1.46, "", n=1, parts={}), "S3": answer(0.991, "", n=24)}
    for named, want in (
        ((), {"M12": "not comparable", "S3": "not comparable"}),
        (("sigir24",), {"M12": "not comparable", "S3": "match"}),
        (("S3",), {"M12": "not comparable", "S3": "match"}),
    ):
        rows = claims.verdicts(found, comparable=named)
        got = {row["id"]: row["verdict"] for row in rows if row["kind"] == "num"}
        assert {key: got[key] for key in want} == want


def test_a_row_carries_the_count_that_the_papers_code_prints(
    study: Study, cell: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Runs, "summary", lambda runs, task: {"mael": 1.0})
    row = study.runs.row(replace(cell, ranking=None))
    assert row is not None
    assert row["n_drscale_mebi"] == pytest.approx(row["n_drscale"] / 1.048576)
