"""The verdicts of several studies side by side: where they agree, and which claims divide them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from repro.show.page import MARKS, found, markdown

SIDES = {
    "holds": "for", "match": "for", "close": "for", "fails": "against", "differs": "against",
    "inconclusive": "open",
}  # fmt: skip
Rows = Sequence[Mapping[str, Any]]  # of `claims.verdicts`


def compare(studies: Mapping[str, Rows]) -> list[dict[str, Any]]:
    """A row a claim and kind: {id, kind, claim, paper, rows: study -> its row, outcome}.

    outcome: "same"; "opposed" (for the claim in one study, against it in another); "open" (inconclusive
    in one, decided in another); "" where fewer than two studies gave a verdict.
    """
    by_kind: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for name, rows in studies.items():
        for row in rows:
            for kind in row["kind"].split(", "):
                by_kind.setdefault((row["id"], kind), {})[name] = row
    compared = []
    for (claim, kind), rows_of in by_kind.items():
        first = next(iter(rows_of.values()))
        about = {"id": claim, "kind": kind, "claim": first["claim"], "paper": first["paper"]}
        compared.append({**about, "rows": rows_of, "outcome": _outcome(rows_of)})
    return compared


def beside(name: str, own: Rows, others: Mapping[str, Any]) -> str:
    """The verdicts of the study `name` beside those of `others` (`app.beside.others`), as Markdown."""
    if not others["studies"]:
        return "\n\n".join(["No other study on this dataset is published.", *others["faults"]])
    marks = {each["name"]: each["marks"] for each in others["studies"] if each["marks"]}
    studies = {name: own} | {each["name"]: each["claims"] for each in others["studies"]}
    return side_by_side(studies, marks, others["faults"])


def side_by_side(
    studies: Mapping[str, Rows],
    marks: Mapping[str, Sequence[str]] | None = None,
    notes: Sequence[str] = (),
) -> str:
    """Where the studies divide, `notes`, and their verdicts, a column a study, as Markdown.

    marks: study -> why its verdicts are shown and not counted.
    """
    marks, parts = marks or {}, list(notes)
    alike = {each: rows for each, rows in studies.items() if each not in marks}
    if len(alike) > 1:
        parts.insert(0, divided(compare(alike)))
    parts += [f"† {each}: {'; '.join(why)}. Shown, not counted." for each, why in marks.items()]
    heads = [each + (" †" if each in marks else "") for each in studies]
    return "\n\n".join([*parts, _table(compare(studies), list(studies), heads)])


def decided(studies: Mapping[str, Rows], unsteady: Mapping[str, set[str]]) -> str:
    """The claims that the runs of some study bear out or speak against, in words, as Markdown.

    unsteady: study -> the claims whose verdict depends on its root seeds; these are marked.
    """
    body = []
    for row in compare(studies):
        verdicts = {each["verdict"] for each in row["rows"].values()}
        if row["kind"] != "qual" or not verdicts & {"holds", "fails"}:
            continue
        cells = []
        for name in studies:
            each = row["rows"].get(name, {})
            n = f" (n = {each['n']:,})" if each.get("ours") is not None and each.get("n") else ""
            mark = " ‡" if row["id"] in unsteady.get(name, ()) else ""
            cells.append(f"{_cell(each or None)}{n}{mark}")
        asks = next((each["asks"] for each in row["rows"].values() if each.get("asks")), "")
        body.append([row["id"], row["claim"], asks, *cells])
    said = markdown(["", "the papers say", "asked of the runs", *studies], body)
    if any(unsteady.values()):
        said += "\n\n‡ another verdict under another root seed (notebook 10)."
    return said


def unsteady(variants: Rows) -> set[str]:
    """The claims whose verdict depends on the root seeds; variants: of `app.beside.stability`."""
    compared = compare({each["name"]: each["claims"] for each in variants})
    return {row["id"] for row in _unlike(compared)}


def stability(found: Mapping[str, Any]) -> str:
    """Which verdicts depend on the root seeds (`app.beside.stability`), as Markdown."""
    if found["fault"]:
        return str(found["fault"])
    variants = found["variants"]
    studies = {each["name"]: each["claims"] for each in variants}
    seeds = ", ".join(
        f"{each['name']} (run seed {each['run_seed']}, data seed {each['data_seed']})"
        + (f", {each['missing']} runs missing" if each["missing"] else "")
        for each in variants
    )
    compared = compare(studies)
    parts = [f"{len(variants)} studies with root seeds of their own: {seeds}.", divided(compared)]
    depends = _unlike(compared)
    if depends:
        names = list(studies)
        parts += ["These verdicts depend on the seed:", _table(depends, names, names)]
    return "\n\n".join(parts)


def divided(compared: Rows) -> str:
    """On how many verdicts the studies agree, and on which claims they do not, as a sentence.

    Arithmetic (calc) is left out: no study bears on it.
    """
    asked = [row for row in compared if row["outcome"] and row["kind"] != "calc"]
    same = sum(row["outcome"] == "same" for row in asked)
    said = [
        f"Of {len(asked)} verdicts on runs that more than one study gives, {same} are the same "
        f"and {len(asked) - same} are not."
    ]
    for outcome, title in (("opposed", "Opposite"), ("open", "Decided by some, open in others")):
        rows = [row for row in asked if row["outcome"] == outcome]
        if rows:
            said.append(f"{title}: {'; '.join(_named(row) for row in rows)}.")
    return " ".join(said)


def _unlike(compared: Rows) -> list[Mapping[str, Any]]:
    """The rows on which the studies do not agree."""
    return [row for row in compared if row["outcome"] in ("opposed", "open")]


def _outcome(rows: Mapping[str, Mapping[str, Any]]) -> str:
    sides = [SIDES[row["verdict"]] for row in rows.values() if row["verdict"] in SIDES]
    if len(sides) < 2:
        return ""
    if len(set(sides)) == 1:
        return "same"
    return "opposed" if {"for", "against"} <= set(sides) else "open"


def _named(row: Mapping[str, Any]) -> str:
    """A claim, and which study says what of it."""
    by_verdict: dict[str, list[str]] = {}
    for name, each in row["rows"].items():
        if each["verdict"] in SIDES:
            by_verdict.setdefault(each["verdict"], []).append(name)
    said = ", ".join(f"{verdict} in {', '.join(by)}" for verdict, by in by_verdict.items())
    return f"**{_label(row)}** ({said})"


def _table(compared: Rows, names: list[str], heads: list[str]) -> str:
    """A row a claim and kind that some study was asked, a column a study."""
    body, above = [], None
    for row in compared:
        if all(each["verdict"] == "not run" for each in row["rows"].values()):
            continue
        about = ["as above", ""] if row["id"] == above else [row["claim"], row["paper"]]
        above = row["id"]
        body.append([_label(row), *about, *(_cell(row["rows"].get(name)) for name in names)])
    return markdown(["", "claim", "paper", *heads], body)


def _label(row: Mapping[str, Any]) -> str:
    return row["id"] if row["kind"] == "qual" else f"{row['id']} ({row['kind']})"


def _cell(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "–"
    verdict = f"**{MARKS[row['verdict']]}**"
    return verdict if row["ours"] is None else f"{verdict}<br>{found(row)}"
