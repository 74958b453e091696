"""Pins what the project never does: run code of others, follow paths outside, show secrets, make tags."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

import repro
from repro.app import cli
from repro.data.sources.beir import BeirParams
from repro.data.sources.pairs import PairsParams
from repro.errors import UserError
from repro.model import files
from repro.show import page
from repro.store import Store, check
from repro.train.labels.kinds import Llm
from repro.work.cluster import SlurmParams
from repro.work.queue import Sweep, Task

SOURCE = Path(repro.__file__).parent
BY_NAME = {"eval", "exec", "compile", "__import__"}
METHODS = {"system", "popen", "getoutput", "extractall", "unpack_archive"}
FUNCTIONS = {
    "pickle.load", "pickle.loads", "marshal.load", "marshal.loads", "shelve.open", "joblib.load", "yaml.load",
}  # fmt: skip


def calls() -> Iterator[tuple[str, ast.Call, str]]:
    """File, call, and the name of what is called, throughout the package."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                yield str(path.relative_to(SOURCE)), node, ast.unparse(node.func)


def test_no_code_of_others_is_run() -> None:
    found = [
        (file, name)
        for file, _, name in calls()
        if name in BY_NAME | FUNCTIONS or ("." in name and name.rpartition(".")[2] in METHODS)
    ]
    assert found == []


def test_no_shell_is_started() -> None:
    run = [(file, call) for file, call, name in calls() if name.startswith("subprocess.")]
    assert len(run) > 2
    for file, call in run:
        assert not any(each.arg == "shell" for each in call.keywords), file
        assert not isinstance(call.args[0] if call.args else None, ast.Constant | ast.JoinedStr), (
            file
        )


def test_models_never_bring_code_and_arrays_never_pickles() -> None:
    names = {"trust_remote_code": 0, "allow_pickle": 0, "weights_only": 0, "use_safetensors": 0}
    safe = {
        "trust_remote_code": False,
        "allow_pickle": False,
        "weights_only": True,
        "use_safetensors": True,
    }
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            pairs = []
            if isinstance(node, ast.keyword) and node.arg in names:
                pairs = [(node.arg, node.value)]
            if isinstance(node, ast.Dict):
                keyed = zip(node.keys, node.values, strict=True)
                pairs = [
                    (k.value, v)
                    for k, v in keyed
                    if isinstance(k, ast.Constant) and k.value in names
                ]
            for name, value in pairs:
                names[name] += 1
                assert isinstance(value, ast.Constant), path
                assert value.value is safe[name], path
    assert min(names.values()) > 0
    for file, call, name in calls():
        given = {each.arg for each in call.keywords}
        if name.endswith(("np.load", "np.save")):
            assert "allow_pickle" in given, file
        if name == "torch.load":
            assert "weights_only" in given, file
        if name.endswith(".from_pretrained") and "Auto" in name:
            assert {"trust_remote_code", None} & given, file
        if name == "YAML":
            assert ast.unparse(call) in ("YAML(typ='rt')", "YAML(typ='safe')"), file


HOSTILE = ["a\0b", "x" * 300, "dir/" + "é" * 200]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_path_that_no_file_can_have_is_refused_where_it_stands(name: str) -> None:
    for model, given in (
        (BeirParams, {"kind": "beir", "folder": name}),
        (PairsParams, {"kind": "pairs", "files": [f"{name}.csv"]}),
    ):
        with pytest.raises(ValidationError, match="remedy"):
            model.model_validate(given)


@pytest.mark.parametrize("name", ["../../x.json", "/etc/hostname", "a/../../x.json", "a//x"])
def test_a_manifest_reaches_no_file_outside_its_result(name: str, tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    (tmp_path / "x.json").write_text("{}")
    folder = store.make(
        "measure", {"a": 1}, lambda work: (work / "a.json").write_text("{}") and None
    )
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name] = manifest["files"]["a.json"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert "names a place outside" in check(folder)


def test_an_index_of_weights_reaches_no_file_outside_its_folder(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "w.safetensors").write_bytes(b"")
    index = tmp_path / "m" / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "../w.safetensors"}}))
    with pytest.raises(UserError, match="not beside it"):
        files.weight_files("m", tmp_path / "m")


URL = "https://me:pa55word@host/v1"


@pytest.mark.parametrize(
    "text", [URL, "Bearer sk-abcdef123456", "hf_abcdefghijklmnopqrstuvwx", "from-env-1234"]
)
def test_no_message_shows_a_secret(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("REPRO_ENDPOINT_KEY", "from-env-1234")
    secret = re.split("[ /]+", text)[-1] if "@" not in text else "pa55word"
    assert secret not in str(UserError(f"what {text}", where=text, remedy=f"use {text}"))
    task = Task("train", {"a": 1}, "label", 1.0)
    sweep = Sweep(Store(tmp_path), [task], "s")
    where = next(iter(sweep.tasks))
    sweep.fail(where, f"HTTPError: {text}")
    assert secret not in sweep.failure_path(where).read_text()
    monkeypatch.setattr("repro.app.store.status", lambda args: (_ for _ in ()).throw(OSError(text)))
    assert cli.main(["store", "status"]) == 2
    assert secret not in capsys.readouterr().err


@pytest.mark.parametrize(
    "url", [URL, "http://host/v1?key=abc", "http://host/v1 x", "http://k@host"]
)
def test_an_endpoint_is_an_address_without_a_secret(url: str) -> None:
    with pytest.raises(ValidationError, match="REPRO_ENDPOINT_KEY"):
        Llm.model_validate({"kind": "llm", "model": "m", "endpoint": url})


@pytest.mark.parametrize("name", ["HF_TOKEN", "REPRO_ENDPOINT_KEY", "db_password", "AWS_SECRET"])
def test_no_secret_stands_in_the_script_of_a_job(name: str) -> None:
    with pytest.raises(ValidationError, match="name of a secret"):
        SlurmParams.model_validate({"backend": "slurm", "environment": {name: "x"}})


@pytest.mark.parametrize(
    "key", ["partition", "account", "qos", "constraint", "reservation", "exclude", "gpu_type"]
)
@pytest.mark.parametrize(
    "value", ["a b", "$(touch x)", "a;b", "`id`", "-x", "a\nb", "a\n", "'", "a\0"]
)
def test_nothing_in_a_resource_is_read_by_a_shell(key: str, value: str) -> None:
    with pytest.raises(ValidationError):
        SlurmParams.model_validate({"backend": "slurm", key: value})


def test_names_and_texts_make_no_tags_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(page, "_display", shown.append)
    hostile = "<script>alert(1)</script><img src=x onerror=y>|{x}"
    page.say(f"The model {hostile} is 3 < 4")
    page.say("The model {name}", name=hostile)
    shown.append(page.markdown([hostile], [[hostile], ["one<br>two"]]))
    page.provenance({hostile: hostile})
    for text in shown:
        assert not re.search(r"<(?!br>)[a-zA-Z/!?]", text)
        assert "alert(1)" in text
    assert "3 < 4" in shown[0]
    assert "one<br>two" in shown[2]
