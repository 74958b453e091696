"""Weights from a folder stand in one grid with the shipped ones: other words, other width."""

from __future__ import annotations

import json
import string
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from repro.app.study import Study
from repro.model import packed, pretrained

pytestmark = pytest.mark.slow
WIDTH, LAYERS = 48, 2


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT as a user has it: pooler, cased letters for a vocabulary, vocab.txt, 64 positions."""
    folder = tmp_path_factory.mktemp("own") / "letters"
    folder.mkdir()
    signs = [*string.ascii_letters, *string.digits]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *signs, *(f"##{sign}" for sign in signs)]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=False).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=3,
        intermediate_size=100,
        max_position_embeddings=64,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def grid(own: Path, study_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Study:
    home = tmp_path_factory.mktemp("home")
    profile = json.loads(study_file.read_text())
    profile["encoder"] |= {"projection": 128}
    profile["curve"] |= {"max_steps": 12}
    profile["models"] = {
        "shipped": {"weights": "micro/1x32", "lr": 1e-3},
        "own": {"weights": str(own), "lr": 1e-3},
    }
    profile["grid"] = {"models": ["shipped", "own"], "sizes": [64, 160]}
    (home / "mixed.yaml").write_text(json.dumps(profile))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_HOME", str(home))
        study = Study(home / "mixed.yaml")
        assert study.sweep() == {}
    return study


def test_both_models_are_trained_and_counted_in_one_grid(grid: Study) -> None:
    table = grid.grid().set_index(["model", "d"])
    assert len(table) == 4
    assert np.isfinite(table["mael"]).all()
    assert (table["mael"] < 1.5 * np.log(31)).all()  # chance, with a margin for the start
    block = 4 * (WIDTH**2 + WIDTH) + 2 * WIDTH * 100 + 100 + WIDTH + 4 * WIDTH
    assert table.loc[("own", 64), "n_encoder"] == LAYERS * block
    assert table.loc[("shipped", 64), "n_encoder"] != table.loc[("own", 64), "n_encoder"]


def test_each_model_reads_the_texts_through_its_own_vocabulary(grid: Study, own: Path) -> None:
    sources = [grid.runs.source(name) for name in ("micro/1x32", str(own))]
    tables = [
        grid.dataset.tokens(grid.store, each.tokenizer, each.tokenizer_digest) for each in sources
    ]
    assert tables[0].digest != tables[1].digest
    assert max(table.unknown_share for table in tables) < 0.05
    runs = {run.model: run.spec for run in grid.planned()}
    assert runs["own"].tokens == tables[1].digest
    assert runs["own"].weights == sources[1].digest


def test_a_folder_goes_the_fast_way_and_is_the_model_that_was_saved(own: Path) -> None:
    source = pretrained.load(str(own))
    network = pretrained.backbone(source, dropout=0.0)
    assert packed.supports(network)
    saved = BertModel.from_pretrained(own)
    for name, weight in network.state_dict().items():
        assert torch.equal(weight, saved.state_dict()[name])
