"""Pins evaluation out of domain: declared by name, drawn once, apart from what is trained on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from repro.data.dataset import find_dataset_file, load_dataset_params, prepare
from repro.data.targets import n_seen, out_of_domain
from repro.errors import UserError
from repro.measure.entropy import chance
from repro.measure.evaluate import pair_entropies
from repro.model import pretrained
from repro.model.encoder import EncoderParams, build
from repro.model.texts import TextParams, Texts
from repro.places import ROOT
from repro.store import Store

FILE = """
name: {name}
language: en
source: {{kind: beir, folder: {name}, qrels: [train]}}
seed: 3
splits: {{validation: 5, test: 5, tuning: 5, generator: 5, held_out: 0, train: 20}}
evaluation:
  negatives: 4
  sets:
    validation: {{pairs: 5, passages: 8}}
    test: {{pairs: 5, passages: 8}}
"""
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a dataset file `name` beside its folder of sixty pairs, whose words end in `word`."""

    def do(name: str, word: str, more: str = "") -> Path:
        folder = tmp_path / name
        (folder / "qrels").mkdir(parents=True)
        ids = range(60)
        rows = {
            "corpus": [
                {"_id": f"d{i}", "text": f"Passage w{i}{word} x{i} y{i} {word}"} for i in ids
            ],
            "queries": [{"_id": f"q{i}", "text": f"query {i}"} for i in ids],
        }
        for part, row in rows.items():
            text = "".join(json.dumps(each) + "\n" for each in row)
            (folder / f"{part}.jsonl").write_text(text)
        (folder / "qrels/train.tsv").write_text("".join(f"q{i}\td{i}\t1\n" for i in ids))
        path = tmp_path / f"{name}.yaml"
        path.write_text(FILE.format(name=name) + more)
        return path

    return do


def test_targets_come_in_their_order_with_the_sets_of_their_datasets(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("two", "b")
    own = write(
        "one",
        "a",
        "targets:\n  z: {dataset: ./two.yaml, set: test}\n  a: {dataset: one.yaml, set: test}\n",
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store = Store(tmp_path / "runs")
    first, second = (list(out_of_domain(store, load_dataset_params(str(own)))) for _ in "12")
    assert [(name, dataset.params.name) for name, dataset, _ in first] == [
        ("z", "two"),
        ("a", "one"),
    ]
    for (_, dataset, evaluation), (_, _, again) in zip(first, second, strict=True):
        assert evaluation.digest == again.digest == dataset.digests["evaluation.test"]
        assert evaluation.negatives.shape == (5, 4)


def test_targets_change_nothing_of_the_dataset_itself(write: Write, tmp_path: Path) -> None:
    own = write("one", "a")
    store = Store(tmp_path / "runs")
    before = prepare(store, load_dataset_params(str(own))).digests
    own.write_text(own.read_text() + "targets:\n  a: {dataset: one.yaml, set: test}\n")
    assert prepare(store, load_dataset_params(str(own))).digests == before


def test_a_dataset_without_targets_has_none(write: Write, tmp_path: Path) -> None:
    params = load_dataset_params(str(write("one", "a")))
    assert list(out_of_domain(Store(tmp_path / "runs"), params)) == []


def test_a_target_that_was_trained_on_is_refused(write: Write, tmp_path: Path) -> None:
    """The same texts under another data seed: most of its test pairs are training pairs here."""
    path = write("two", "a")
    path.write_text(path.read_text().replace("seed: 3", "seed: 4"))
    own = write("one", "a", "targets:\n  t: {dataset: two.yaml, set: test}\n")
    with pytest.raises(
        UserError, match=r"the target t is not apart .* of its 5 passages"
    ) as caught:
        list(out_of_domain(Store(tmp_path / "runs"), load_dataset_params(str(own))))
    assert caught.value.remedy.startswith("targets.t: ")


@pytest.mark.parametrize("split", ["train", "generator"])
def test_a_single_passage_in_common_is_seen(write: Write, tmp_path: Path, split: str) -> None:
    store = Store(tmp_path / "runs")
    one, two = (
        prepare(store, load_dataset_params(str(write(name, word))))
        for name, word in (("one", "a"), ("two", "b"))
    )
    evaluation = two.evaluation("test")
    assert n_seen(one, two, evaluation) == 0
    trained = one.collection.pairs[getattr(one.splits, split)[0], 1]
    passages = list(two.collection.passages)
    passages[two.collection.pairs[evaluation.pairs[2], 1]] = (
        one.collection.passages[trained].upper().replace(" ", "  ")
    )
    other = replace(two, collection=replace(two.collection, passages=passages))
    assert n_seen(one, other, evaluation) == 1


def test_a_set_that_the_dataset_lacks_is_refused(write: Write, tmp_path: Path) -> None:
    own = write("one", "a", "targets:\n  t: {dataset: one.yaml, set: tuning}\n")
    with pytest.raises(UserError, match="has no evaluation set `tuning`"):
        list(out_of_domain(Store(tmp_path / "runs"), load_dataset_params(str(own))))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("{dataset: apidoc, set: test}", "did you mean `apidocs`"),
        ("{dataset: nowhere.yaml, set: test}", "there is no file"),
        ("{dataset: apidocs, set: train}", "targets.t.set"),
        ("{dataset: apidocs}", "`targets.t.set` is missing"),
        ("{dataset: apidocs, sets: test}", "unknown key `targets.t.sets`"),
    ],
)
def test_a_wrong_target_is_refused_with_its_line_before_anything_is_read(
    write: Write, target: str, message: str
) -> None:
    own = write("one", "a", f"targets:\n  t: {target}\n")
    line = len(own.read_text().splitlines())
    with pytest.raises(UserError) as caught:
        load_dataset_params(str(own))
    assert message in str(caught.value)
    assert f"{own}:{line}" in str(caught.value)


@pytest.mark.parametrize("name", ["apidocs", "pydocs", "pydocs-numeric", "pydocs-learning"])
def test_every_embedded_dataset_has_three_targets_whose_sets_are_declared(name: str) -> None:
    targets = load_dataset_params(name).targets
    assert len({(target.dataset, target.set) for target in targets.values()}) >= 3
    for target in targets.values():
        assert find_dataset_file(target.dataset).parent == ROOT / "params" / "datasets"
        assert target.set in load_dataset_params(target.dataset).evaluation.sets


@pytest.mark.slow
def test_the_targets_of_apidocs_are_better_than_chance_without_training(tmp_path: Path) -> None:
    """Zero-shot, micro/1x32: 3.0, 4.2 and 4.1 nats with the weights of 2026-11-29; chance is 5.549."""
    store, source = Store(tmp_path), pretrained.load("micro/1x32")
    encoder = build(source, EncoderParams(projection=128, scoring="cosine"), seed=1)
    names = []
    for name, dataset, evaluation in out_of_domain(store, load_dataset_params("apidocs")):
        table = dataset.tokens(store, source.tokenizer, source.tokenizer_digest)
        texts = Texts(table, source, TextParams(query_tokens=24, passage_tokens=64))
        entropies = pair_entropies(encoder, texts, evaluation)
        assert entropies.shape == (600,)
        assert evaluation.negatives.shape == (600, 256)
        assert np.mean(entropies) < chance(256) - 0.8, name
        names.append(name)
    assert names == ["services", "numeric", "learning"]
