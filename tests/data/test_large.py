"""Pins: from the source to the token table, memory follows the number of passages a little, their text
not at all."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tiny
from repro.data.column import Column
from repro.data.dataset import load_dataset_params, prepare
from repro.store import Store

PREPARE = """
import sys
import numpy as np
from pathlib import Path
from tokenizers import Tokenizer, models, pre_tokenizers
from repro.data import tokenising
from repro.data.dataset import load_dataset_params, prepare
from repro.data.targets import n_seen
from repro.data.tuning import tuning_view
from repro.measure.ranking import RankingParams, searched
from repro.store import Store

tokenising.cores = lambda: 1  # several hold a few shards each: as much, however large the corpus
store = Store(Path(sys.argv[2]))
dataset = prepare(store, load_dataset_params(sys.argv[1]))
tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "word": 1}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
table = dataset.tokens(store, tokenizer, "one")
assert len(table.passages) == len(dataset.collection.passages)
tuning_view(dataset)
assert n_seen(dataset, dataset, dataset.evaluation("test")) == 0
searched(RankingParams(), dataset, np.arange(3))
print(peak())
"""


def write(folder: Path, n: int, n_words: int) -> Path:
    """A dataset file of `n` passages, of which 500 are judged."""
    (folder / "qrels").mkdir(parents=True)
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as file:
        for i in range(n):
            text = f"{'word ' * (n_words // 2)}w{i} x{i} y{i} z{i} {'word ' * (n_words // 2)}"
            file.write(json.dumps({"_id": f"p{i}", "text": f"passage {i} {text}"}) + "\n")
    queries = [json.dumps({"_id": f"q{i}", "text": f"query {i}"}) for i in range(500)]
    (folder / "queries.jsonl").write_text("\n".join(queries) + "\n", encoding="utf-8")
    rows = ["query-id\tcorpus-id\tscore", *(f"q{i}\tp{3 * i}\t1" for i in range(500))]
    (folder / "qrels" / "train.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    path = folder.with_suffix(".yaml")
    path.write_text(
        f"name: large\nlanguage: en\nseed: 1\n"
        f"source: {{kind: beir, folder: {folder}, qrels: [train]}}\n"
        "duplicates: {drop: false, near: none}\n"
        "splits: {validation: 50, test: 50, tuning: 60, generator: 0, held_out: 0, train: 200}\n"
        "evaluation:\n  negatives: 20\n  sets:\n"
        "    validation: {pairs: 50, passages: 100}\n"
        "    test: {pairs: 50, passages: 100}\n"
        "    tuning: {pairs: 30, passages: 60}\n",
        encoding="utf-8",
    )
    return path


@pytest.mark.slow
def test_memory_does_not_grow_with_the_text(tmp_path: Path) -> None:
    def peak(n: int) -> int:
        path = write(tmp_path / f"of-{n}", n, 1200)
        command = [
            sys.executable,
            "-c",
            tiny.PEAK + PREPARE,
            str(path),
            str(tmp_path / f"runs-{n}"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return int(done.stdout.splitlines()[-1])

    few, many = 2_000, 12_000
    text = 6_000 * (many - few)
    assert text > 50e6  # the premise: held, it would be seen
    assert peak(many) - peak(few) < 0.5 * text  # what an allocator keeps differs by some 15 MB


def test_what_is_loaded_again_lies_on_disk(tmp_path: Path) -> None:
    params = load_dataset_params(str(write(tmp_path / "small", 1600, 20)))
    made = prepare(Store(tmp_path / "runs"), params)
    again = prepare(Store(tmp_path / "runs"), params)
    for dataset in (made, again):
        assert isinstance(dataset.collection.passages, Column)
        assert isinstance(dataset.collection.passage_ids, Column)
    assert made.digests == again.digests
