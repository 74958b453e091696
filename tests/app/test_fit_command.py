"""Pins: `repro fit` on a user's own table, in words, with errors that name rows and remedies."""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from repro.app import fit as command
from repro.app import fit_figure
from repro.app.cli import main
from repro.errors import UserError
from repro.laws.fit import from_json


def call(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["fit", *map(str, arguments)])
    return int(args.run(args))


@pytest.fixture
def table() -> pd.DataFrame:
    n, d = np.meshgrid([4e5, 3e6, 1.3e7, 2.5e7, 8.5e7], 5e3 * 2.0 ** np.arange(7), indexing="ij")
    n, d = n.ravel(), d.ravel()
    rng = np.random.default_rng(0)
    mael = 100 * n**-0.161 * d**-0.206 * np.exp(0.02 * rng.normal(size=35))
    return pd.DataFrame(
        {
            "params": n,
            "pairs": d,
            "mael": mael,
            "mrr": 0.5 - 0.2 * mael,
            "state": ["turned"] * 34 + ["censored"],
        }
    )


COLUMNS = ("--n", "params", "--d", "pairs", "--loss", "mael")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz"])
def test_every_kind_of_table_gives_the_same_fit(
    tmp_path: Path, table: pd.DataFrame, suffix: str
) -> None:
    path = tmp_path / f"table{suffix}"
    if suffix == ".parquet":
        table.to_parquet(path)
    elif suffix == ".jsonl":
        table.to_json(path, orient="records", lines=True, double_precision=15)
    else:
        table.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    assert call(path, *COLUMNS, "--json", tmp_path / "out" / "fit.json") == 0
    fitted = from_json((tmp_path / "out" / "fit.json").read_text())
    design = np.column_stack([np.ones(35), np.log(table["params"]), np.log(table["pairs"])])
    expected = np.linalg.lstsq(design, np.log(table["mael"]), rcond=None)[0]
    assert fitted.parameters["alpha"] == pytest.approx(-expected[1], rel=1e-8)


def test_it_says_what_a_reader_asks(
    tmp_path: Path, table: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False, encoding="utf-8-sig")  # a BOM, as spreadsheets write
    forms = "product, product_floor,additive"
    out = tmp_path / "fit.json"
    assert (
        call(path, *COLUMNS, "--form", forms, "--metric", "mrr", "--state", "state", "--json", out)
        == 0
    )
    said = capsys.readouterr().out
    for part in (
        "35 runs",
        "c N^-alpha D^-beta",
        "95 % intervals: t on the means",
        "Twice the pairs changes the loss by -13",
        "model left out",
        "additive",
        "Interaction of N and D",
        "1 of 35 rows are only bounds",
        "mrr = 0.5",
    ):
        assert part in said, part
    assert json.loads(out.read_text())["metric"]["slope"] == pytest.approx(-0.2)


def test_joint_laws_show_both_kinds_of_interval(
    tmp_path: Path, table: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "table.csv", tmp_path / "fit.json"
    table.assign(mael=table["mael"] + 0.2).to_csv(path, index=False)
    assert call(path, *COLUMNS, "--form", "product_floor", "--json", out) == 0
    assert "trust it if models differ by themselves" in capsys.readouterr().out
    record = json.loads(out.read_text())
    assert set(record["intervals_with_effects"]) == {"c", "alpha", "beta", "E"}


def test_options_reach_the_fit(tmp_path: Path, table: pd.DataFrame) -> None:
    path, out = tmp_path / "table.csv", tmp_path / "fit.json"
    table.to_csv(path, index=False)
    more = ("--huber", "1e-3", "--drop-highest", 5, "--bootstrap", 50, "--fix", "alpha=0.161")
    assert call(path, *COLUMNS, "--json", out, *more) == 0
    record = json.loads(out.read_text())
    assert record["delta"] == 1e-3
    assert record["fixed"] == {"alpha": 0.161}
    assert len(record["table"]["loss"]) == 30
    assert "5 highest" in record["dropped"]
    assert "50 resamples" in record["intervals"]["method"]


def test_the_figure_is_drawn_and_does_not_hit_the_fit(tmp_path: Path, table: pd.DataFrame) -> None:
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False)
    assert call(path, *COLUMNS, "--figure", tmp_path / "figure.svg") == 0
    assert (tmp_path / "figure.svg").stat().st_size > 5000
    assert "product law" in json.loads((tmp_path / "figure.json").read_text())["alt"]
    with pytest.raises(UserError, match="another name"):
        call(path, *COLUMNS, "--figure", tmp_path / "x.svg", "--json", tmp_path / "x.json")


@pytest.mark.filterwarnings("error")
def test_a_figure_of_many_models_has_few_lines_and_all_points(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    n, d = np.geomspace(1e6, 1e9, 90), rng.permutation(np.geomspace(5e3, 3e6, 90))
    values, member = fit_figure._groups(n)
    assert len(values) == fit_figure.MOST_LINES
    assert set(member) == set(range(len(values)))
    path = tmp_path / "table.csv"
    loss = 100 * n**-0.161 * d**-0.206
    pd.DataFrame({"params": n, "pairs": d, "mael": loss}).to_csv(path, index=False)
    assert call(path, *COLUMNS, "--figure", tmp_path / "figure.svg") == 0
    assert len(json.loads((tmp_path / "figure.json").read_text())["data"]["loss"]) == 90


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--json", "table.csv"), "is the table itself"),
        (("--json", "link.csv"), "is the table itself"),
        (("--json", "x.svg", "--figure", "x.png"), "another name"),
        (("--json", "."), "this is a directory"),
        (("--figure", "folder.svg"), "this is a directory"),
        (("--json", "table.csv/fit.json"), "cannot be written"),
        (("--json", "/proc/fit.json"), "cannot be written"),
        (("--figure", "/proc/fit.svg"), "cannot be written"),
    ],
)
def test_no_output_hits_the_table_or_another(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    table: pd.DataFrame,
    options: tuple[str, ...],
    message: str,
) -> None:
    if "/proc" in options[1] and not Path("/proc/self").exists():
        pytest.skip("no folder here that refuses even its owner")
    monkeypatch.chdir(tmp_path)
    table.to_csv("table.csv", index=False)
    Path("link.csv").symlink_to("table.csv")
    Path("folder.svg").mkdir()
    before, names = Path("table.csv").read_bytes(), sorted(p.name for p in tmp_path.iterdir())
    with pytest.raises(UserError, match=message):
        call("table.csv", *COLUMNS, *options)
    assert Path("table.csv").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == names


def test_a_law_of_steps_says_what_it_was_fitted_to(
    tmp_path: Path, table: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "table.csv"
    table.assign(steps=(1e3 / table["mael"]).round()).to_csv(path, index=False)
    assert call(path, *COLUMNS[:4], "--loss", "steps", "--form", "steps") == 0
    said = capsys.readouterr().out
    assert "Column 'steps' was read as steps to the minimum" in said
    assert "steps to the minimum 4" in said.splitlines()[0]


def test_rows_at_fault_are_counted_before_any_is_dropped(
    tmp_path: Path, table: pd.DataFrame
) -> None:
    path = tmp_path / "table.csv"
    table.loc[30, "mael"] = np.nan
    table.to_csv(path, index=False)
    with pytest.raises(UserError, match="row 31 "):
        call(path, *COLUMNS, "--drop-highest", 5)


def test_the_commands_of_the_page_work_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: pd.DataFrame
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "laws.md").read_text(encoding="utf-8")
    commands = page.split("```bash\n")[1].split("```")[0].replace("\\\n", " ").splitlines()
    monkeypatch.chdir(tmp_path)
    table["mrr10"] = table.pop("mrr")
    table["steps"] = (300 * table["params"] ** -0.5 * table["pairs"] ** 0.92).round()
    table.to_csv("table.csv", index=False)
    assert len(commands) == 5
    for line in commands:
        program, *arguments = shlex.split(line, comments=True)
        assert program == "repro"
        assert main(arguments) == 0, line


def test_a_law_of_pairs_alone_needs_no_model_column(tmp_path: Path, table: pd.DataFrame) -> None:
    path, out = tmp_path / "table.csv", tmp_path / "fit.json"
    table[table["params"] == 3e6].to_csv(path, index=False)
    assert call(path, "--d", "pairs", "--loss", "mael", "--form", "single_d", "--json", out) == 0
    with pytest.raises(UserError, match="single_d"):
        call(path, *COLUMNS)


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({"mael": "low"}, COLUMNS, "text in rows 1, 2"),
        ({"mael": -1.0}, COLUMNS, "must be above 0"),
        ({"pairs": np.nan}, COLUMNS, "'pairs'.*rows 1, 2"),
        ({"mael": 1.5}, COLUMNS, "'mael': every row is 1.5"),
        ({"state": "weird"}, (*COLUMNS, "--state", "state"), "'state'.*unknown state, 'weird'"),
        ({"state": "censord"}, (*COLUMNS, "--state", "state"), "did you mean `censored`"),
        ({"state": ""}, (*COLUMNS, "--state", "state"), "without a state"),
        ({"state": "censored"}, (*COLUMNS, "--state", "state"), "only a bound"),
        ({}, ("--n", "params", "--d", "params", "--loss", "mael"), "named twice: as n and as d"),
        ({}, (*COLUMNS, "--form", "repeated"), "--column u=COL"),
        ({}, (*COLUMNS, "--form", "product,steps"), "one after the other"),
        ({}, (*COLUMNS[:4], "--form", "steps"), "not to losses"),
        ({}, (*COLUMNS, "--form", "steps"), "'mael'.*not steps"),
        ({}, (*COLUMNS, "--bootstrap", "-5"), "out of range"),
        ({}, (*COLUMNS, "--bootstrap", "1"), "out of range"),
        ({}, (*COLUMNS, "--bootstrap", "100000000"), "40 to 100,000"),
        ({}, (*COLUMNS, "--fix", "beta=nan"), "fixed at nan"),
        ({}, (*COLUMNS, "--fix", "beta=1e400"), "fixed at inf"),
        ({}, (*COLUMNS, "--fix", "c=0"), "above 0"),
        (
            {},
            (*COLUMNS, "--fix", "c=3", "--fix", "alpha=.1", "--fix", "beta=.2"),
            "nothing is left",
        ),
        ({"state": "diverged"}, (*COLUMNS, "--state", "state"), "diverged runs"),
        ({}, ("--n", "parms", *COLUMNS[2:]), "did you mean `params`"),
        ({}, (*COLUMNS, "--form", "produkt"), "did you mean `product`"),
        ({}, (*COLUMNS, "--huber", "-1"), "above 0"),
        ({}, (*COLUMNS, "--fix", "alpha"), "NAME=VALUE"),
        ({}, (*COLUMNS, "--fix", "gamma=1"), "no parameter"),
        ({}, (*COLUMNS, "--metric", "ndcg"), "ndcg"),
        ({}, (*COLUMNS, "--figure", "x.pdf"), "svg or .png"),
        ({}, (*COLUMNS, "--drop-highest", "99"), "99 of 35"),
        ({}, (*COLUMNS, "--drop-highest", "-3"), "0 or more"),
        ({}, (*COLUMNS, "--drop-highest", "34"), "every row has the same model size"),
    ],
)
def test_faults_name_their_place(
    tmp_path: Path,
    table: pd.DataFrame,
    change: dict[str, object],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    path = tmp_path / "table.csv"
    table.assign(**change).to_csv(path, index=False)
    with pytest.raises(UserError, match=message):
        call(path, *arguments)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tabel.csv", "n,d\n", "no rows"),
        ("empty.csv", "", "cannot be read"),
        ("semicolons.csv", "n;d;loss\n1;2;0,5\n", "separated by semicolons"),
        ("commas.tsv", "n,d,loss\n1,2,3\n", "separated by commas"),
        ("twice.csv", "n,d, loss,loss\n1,2,3,4\n", "two columns are called 'loss'"),
        ("wide.csv", "n,d,loss\n1,2,3,4\n", "more fields than the header"),
        ("table.xlsx", "x", "not read"),
        ("broken.parquet", "x", "cannot be read as parquet"),
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=message):
        call(tmp_path / name)


def test_a_missing_file_names_its_neighbour(tmp_path: Path, table: pd.DataFrame) -> None:
    table.to_csv(tmp_path / "losses.csv", index=False)
    with pytest.raises(UserError, match=r"did you mean .*losses\.csv"):
        call(tmp_path / "loses.csv")
    with pytest.raises(UserError, match="directory"):
        call(tmp_path)


def test_a_fit_does_without_torch(tmp_path: Path, table: pd.DataFrame) -> None:
    """Whoever fits a table of their own waits for no library of networks, nor of figures."""
    table.to_csv(tmp_path / "losses.csv", index=False)
    code = "import sys; from repro.app.cli import main; assert main(sys.argv[1:]) == 0\n"
    code += "assert not {'torch', 'transformers', 'matplotlib'} & set(sys.modules)"
    given = ["fit", str(tmp_path / "losses.csv"), *COLUMNS]
    done = subprocess.run([sys.executable, "-c", code, *given], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
