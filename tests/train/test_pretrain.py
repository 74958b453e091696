"""Pins: what becomes a document, that crops and masks are what they say, that the same text gives
the same weights bit for bit (interrupted or not), in any language, and that faults are the user's."""

from __future__ import annotations

import argparse
import io
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from repro import params as parameters
from repro import seeds
from repro.app import pretrain as command
from repro.app.study import Study
from repro.errors import UserError
from repro.files import file_digest
from repro.model import files, pretrained
from repro.model.encoder import EncoderParams, build
from repro.places import ROOT
from repro.train import crops, pretrain, vocabulary
from repro.train import pretraining_text as text

THINGS = ["bucket", "queue", "table", "network", "policy", "role", "disk", "image", "key", "zone"]
VERBS = ["creates", "deletes", "lists", "updates", "encrypts", "copies", "tags", "starts", "stops"]
CHINESE = [
    "上海是中国最大的城市之一，位于长江入海口，经济十分发达。",
    "北京是中国的首都，故宫和长城每年吸引许多游客前来参观。",
    "水稻是南方的主要粮食作物，农民在春天播种，在秋天收获。",
    "数据库保存用户的记录，管理员可以创建、修改或者删除表。",
    "火车从广州出发，经过长沙和武汉，第二天早上到达终点站。",
    "图书馆收藏了大量古籍，研究人员需要预约才能够阅读它们。",
]


def sentences(n: int) -> list[str]:
    """Documents about two things each, so that a crop tells which document it is from."""
    draw = seeds.stream(3, "sentences")
    out = []
    for i in range(n):
        first, second = draw.choice(THINGS, 2, replace=False)
        rest = [f"{draw.choice(VERBS)} {draw.choice([first, second])}" for _ in range(12)]
        out.append(f"Item {i} of {first}: " + ", ".join(rest) + ".")
    return out


def tiny(**training: object) -> pretrain.PretrainParams:
    return pretrain.PretrainParams.model_validate(
        {
            "seed": 7,
            "sizes": ["1x32"],
            "shape": {"positions": 32, "output": 16},
            "vocabulary": {"size": 300},
            "training": {
                "steps": 12,
                "batch": 8,
                "warmup_steps": 2,
                "log_every": 2,
                "save_every": 4,
                "crops": {"query_tokens": [4, 8], "passage_tokens": [6, 24]},
                **training,
            },
            "text": {"min_words": 8, "max_words": 60},
        }
    )


def silent(_line: str) -> None:
    pass


def weights(folder: Path) -> bytes:
    return b"".join(
        (folder / n).read_bytes() for n in ("model.safetensors", pretrained.HEAD, "tokenizer.json")
    )


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def test_the_same_text_gives_the_same_weights_bit_for_bit(tmp_path: Path) -> None:
    first, again = (
        pretrain.run(tiny(), sentences(160), tmp_path / name, silent)[0] for name in ("a", "b")
    )
    assert weights(first) == weights(again)
    other = tiny().model_copy(update={"seed": 8})
    assert weights(pretrain.run(other, sentences(160), tmp_path / "c", silent)[0]) != weights(first)


@pytest.mark.parametrize("masked", [0.15, 0.0])  # without, the head's weights have no state
def test_an_interrupted_pretraining_ends_with_the_same_weights(
    tmp_path: Path, masked: float
) -> None:
    crop = {"query_tokens": [4, 8], "passage_tokens": [6, 24], "masked": masked}
    recipe = tiny(crops=crop, mlm_weight=masked)
    whole = pretrain.run(recipe, sentences(160), tmp_path / "whole", silent)[0]
    lines: list[str] = []

    def interrupt(line: str) -> None:
        lines.append(line)
        if "step 10/" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pretrain.run(recipe, sentences(160), tmp_path / "cut", interrupt)
    rest: list[str] = []
    folder = pretrain.run(recipe, sentences(160), tmp_path / "cut", rest.append)[0]
    assert any("going on from step 8" in line for line in rest)
    assert weights(folder) == weights(whole)
    assert (folder / "log.csv").read_text() == (whole / "log.csv").read_text()
    assert not (tmp_path / "cut" / ".work" / "1x32" / "last.safetensors").exists()


def test_training_lowers_both_losses_and_the_result_is_an_encoder(tmp_path: Path) -> None:
    recipe = tiny(steps=60, lr=0.01, log_every=20, save_every=20)
    folder = pretrain.run(recipe, sentences(400), tmp_path, silent)[0]
    rows = [line.split(",") for line in (folder / "log.csv").read_text().splitlines()]
    assert rows[0] == ["step", "mlm_loss", "contrastive_loss", "lr", "held_out_entropy"]
    assert float(rows[-1][1]) < float(rows[1][1])
    assert float(rows[-1][2]) < float(rows[1][2])
    source = pretrained.load(str(folder))
    encoder = build(source, EncoderParams(projection=16, scoring="cosine"), seed=1)
    head = pretrained.head(source)
    assert head is not None
    assert torch.equal(encoder.projection.weight, head["weight"])
    assert float(encoder.scale().detach()) == pytest.approx(
        float(torch.exp(-head["log_temperature"]))
    )


def test_a_finished_size_is_left_alone_and_checkpoints_are_kept(tmp_path: Path) -> None:
    recipe = tiny().model_copy(update={"checkpoints": {"1x32": [4]}})
    folder = pretrain.run(recipe, sentences(160), tmp_path, silent)[0]
    early = tmp_path / "1x32-4"
    assert pretrained.load(str(early)).digest != pretrained.load(str(folder)).digest
    stamp = (folder / "model.safetensors").stat().st_mtime_ns
    lines: list[str] = []
    pretrain.run(recipe, sentences(160), tmp_path, lines.append)
    assert lines[-1] == "1x32: there already"
    assert (folder / "model.safetensors").stat().st_mtime_ns == stamp


def test_chinese_text_works_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    lines = [
        json.dumps({"text": f"第{i}段。{CHINESE[i % 6]}{CHINESE[(i // 6) % 6]}"}) for i in range(36)
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    documents = text.read_files([file], text.Text(min_words=5, novelty=0.1), seed=1)
    assert len(documents) > 8
    folder = pretrain.run(tiny(steps=4), documents, tmp_path / "out", silent)[0]
    source = pretrained.load(str(folder))
    ids = source.tokenizer.encode(CHINESE[0]).ids
    assert source.unk_id not in ids
    assert len(ids) > 20


def test_the_command_trains_on_a_users_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "seed: 1\nsizes: [1x32, 2x32]\nshape: {positions: 32, output: 16}\nvocabulary: {size: 300}\n"
        "training: {steps: 2, batch: 4, crops: {query_tokens: [4, 8], passage_tokens: [6, 24]}}\n"
        "text: {min_words: 8}\n"
    )
    mine = tmp_path / "mine.txt"
    mine.write_text("\n\n".join(sentences(60)))
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    given = ["pretrain", "--params", str(recipe), "--text", str(mine), "--out", str(tmp_path / "o")]
    args = parser.parse_args([*given, "--sizes", "2x32"])
    assert args.run(args) == 0
    assert pretrained.load(str(tmp_path / "o" / "2x32")).config.num_hidden_layers == 2
    assert not (tmp_path / "o" / "1x32").exists()
    assert "weights:" in capsys.readouterr().out
    with pytest.raises(UserError, match="--sizes 2by32"):
        args.run(parser.parse_args([*given, "--sizes", "2by32"]))


def test_too_little_text_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="documents"):
        pretrain.run(tiny(), sentences(6), tmp_path, silent)


def test_the_shipped_recipe_is_a_valid_file() -> None:
    recipe = parameters.load(ROOT / "params" / "pretrain.yaml", pretrain.PretrainParams)
    for name in files.names():
        about = json.loads((pretrained.load(name).folder / "pretraining.json").read_text("utf-8"))
        assert about["recipe"] == recipe.model_dump(mode="json", exclude={"sizes", "text"})
        assert about["size"] in recipe.sizes


def test_a_crop_longer_than_the_positions_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text("sizes: [1x32]\nshape: {positions: 64}\n")
    with pytest.raises(UserError, match="does not fit into 64 positions"):
        parameters.load(file, pretrain.PretrainParams)


def test_vocabulary_is_the_same_twice_and_has_the_size_asked_for() -> None:
    documents = sentences(300)
    first, again = (vocabulary.train(documents, vocabulary.Vocabulary(size=200)) for _ in range(2))
    assert first.to_str() == again.to_str()
    assert first.get_vocab_size() <= 200
    assert [first.id_to_token(i) for i in range(5)] == vocabulary.SPECIAL
    assert first.decode(first.encode("lists bucket").ids) == "lists bucket"


def numbered(n_documents: int, length: int) -> crops.Pieces:
    """Documents whose tokens are all different, so that a crop tells where it comes from."""
    ids = np.arange(10, 10 + n_documents * length, dtype=np.int32)
    return crops.Pieces(ids, np.arange(n_documents + 1, dtype=np.int64) * length)


def test_crops_are_runs_of_one_document_of_the_lengths_asked_for() -> None:
    pieces, asked = numbered(10, 50), crops.Crops(query_tokens=(4, 9), passage_tokens=(12, 30))
    first, second = crops.batch(pieces, asked, 1, 0, 10)
    for query, passage in zip(first, second, strict=True):
        assert (np.diff(query) == 1).all()
        assert (np.diff(passage) == 1).all()
        assert (query[0] - 10) // 50 == (passage[-1] - 10) // 50
        assert 4 <= len(query) <= 9
        assert len(passage) <= 30
    again = crops.batch(pieces, asked, 1, 0, 10)
    assert all(np.array_equal(a, b) for a, b in zip(first, again[0], strict=True))
    documents = {int(query[0] - 10) // 50 for query in first}
    assert documents == set(range(10))  # an epoch meets each document once


def test_crops_apart_do_not_overlap_and_prefer_no_place() -> None:
    pieces, asked = numbered(400, 60), crops.Crops(apart=1.0, query_tokens=(6, 12))
    first, second = crops.batch(pieces, asked, 1, 0, 400)
    assert not any(set(q.tolist()) & set(p.tolist()) for q, p in zip(first, second, strict=True))
    starts = np.array([(query[0] - 10) % 60 for query in first])
    assert 15 < starts.mean() < 35  # the middle of what is possible is 25
    ahead = np.mean([q[0] < p[0] for q, p in zip(first, second, strict=True)])
    assert 0.4 < ahead < 0.6  # the query comes first as often as not


def test_masks_hide_the_share_asked_for_and_only_in_second_crops() -> None:
    texts = [np.full(100, 50, np.int32) for _ in range(40)]
    shown, places = crops.mask(texts, 20, crops.Crops(masked=0.2), 300, 1, 0)
    assert all(np.array_equal(a, b) for a, b in zip(shown[:20], texts[:20], strict=True))
    chosen = np.concatenate([s[p] for s, p in zip(shown[20:], places[20:], strict=True)])
    assert 0.15 < len(chosen) / 2000 < 0.25
    assert 0.7 < np.mean(chosen == crops.MASK) < 0.9
    assert all((np.delete(s, p) == 50).all() for s, p in zip(shown[20:], places[20:], strict=True))


def test_chunks_hold_every_text_once_with_its_labels_in_place() -> None:
    texts = [np.arange(10, 10 + n, dtype=np.int32) for n in (3, 9, 5, 9, 4)]
    places = [np.array([1]), np.array([0, 8]), np.empty(0, int), np.array([2]), np.array([3])]
    parts = crops.chunks(texts, texts, places, chunk_tokens=24, width=32)
    assert len(parts) > 1
    seen: list[int] = []
    for part in parts:
        assert part.chunk.ids.numel() <= 24 or len(part.chunk.rows) == 1
        assert torch.equal(part.chunk.ids[part.places], part.labels)
        assert part.chunk.lengths.tolist() == [len(texts[row]) + 2 for row in part.chunk.rows]
        seen += part.chunk.rows.tolist()
    assert sorted(seen) == [0, 1, 2, 3, 4]


def test_short_neighbours_are_joined_and_long_texts_cut_at_sentences() -> None:
    rules = text.Text(min_words=6, max_words=10)
    assert list(
        text.merged(["one two three four", "The name.", "five six seven eight"], rules)
    ) == ["one two three four five six seven eight"]
    long = "a b c d e f g. h i j k l m n. o p q r s t u v."
    assert list(text.merged([long], rules)) == [
        "a b c d e f g.",
        "h i j k l m n.",
        "o p q r s t u v.",
    ]


def test_repeats_and_near_repeats_are_dropped() -> None:
    base = "the quick brown fox jumps over the lazy dog near the river bank"
    near = base.replace("river", "forest")
    new = "an entirely different text about tables and rows and keys in a store"
    assert list(text.novel([base, base.upper(), near, new], 0.5, set())) == [base, new]


def test_overlap_is_the_share_of_shared_ngrams() -> None:
    shared = "w1 w2 w3 w4 w5 w6 w7 w8"
    assert text.overlap([f"x {shared} y"], [shared, "z " + shared, "a b c"]) == [1.0, 0.5, 0.0]


def test_readers_find_prose_and_markup_is_stripped() -> None:
    source = (
        'class A:\n    """See :class:`~a.B` or `here <http://x.y>`__ and <b>this</b>.\n\n'
        "    :param str name: The **name** of it.\n    :type name: str\n"
        '    """\n    x: int\n    "What x is."\n'
    )
    pieces = [text.tidy(piece) for piece in text.READERS["docstrings"](source)]
    assert [piece for piece in pieces if piece] == [
        "See a.B or here and this .",
        "The name of it.",
        "What x is.",
    ]
    found = text.READERS["descriptions"]('{"description": "a", "p": [{"description": "b"}]}')
    assert found == ["a", "b"]
    page = "Title\n=====\n\nA paragraph of six words here.\n\n    code = 1\n\n.. note::\n"
    assert text.READERS["markup"](page) == ["A paragraph of six words here."]
    assert text.READERS["docstrings"]("this is not python") == []


def archive_source(folder: Path, **changes: object) -> text.Source:
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "thing-1.0-py3-none-any.whl", "w") as wheel:
        for name in ("b", "a", "skip"):
            prose = " ".join(f"{name}{i}" for i in range(12))
            wheel.writestr(f"thing/{name}.py", f'"""{prose}"""\n')
    fields = {
        "package": "thing",
        "version": "1.0",
        "sha256": file_digest(folder / "thing-1.0-py3-none-any.whl"),
        "licence": "MIT",
        "reader": "docstrings",
        "include": ["thing/*.py"],
        "exclude": ["*skip*"],
        "drop": ["a1 .*? a5"],
    }
    return text.Source.model_validate({**fields, **changes})


def test_a_pinned_archive_is_read_without_importing_it(tmp_path: Path) -> None:
    source = archive_source(tmp_path / "thing-1.0")
    params = text.Text(sources=[source], min_words=5)
    found = text.collect(params, tmp_path, 1, silent)
    assert sorted(document.split()[0] for document in found) == ["a0", "b0"]
    assert "a3" not in " ".join(found)  # what `drop` says
    (tmp_path / "thing-1.0" / "thing-1.0-py3-none-any.whl").unlink()
    assert text.collect(params, tmp_path, 1, silent) == found  # from the cached text


def test_another_archive_than_the_pinned_one_is_refused(tmp_path: Path) -> None:
    source = archive_source(tmp_path / "thing-1.0", sha256="0" * 64)
    with pytest.raises(UserError, match="not the pinned archive"):
        text.fetch(source, tmp_path)


def test_an_sdist_is_read_too(tmp_path: Path) -> None:
    content = b"A paragraph of more than five words.\n"
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        member = tarfile.TarInfo("a/doc.txt")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    assert [(n, read()) for n, read in text._members(tmp_path / "a.tar.gz")] == [
        ("a/doc.txt", content)
    ]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.jsonl", b'{"text": "x"}\n{"body": "y"}\n', "a.jsonl:2"),
        ("a.txt", b"\xff\xfe\x00", "not UTF-8"),
    ],
)
def test_a_bad_text_file_is_a_user_error(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=says):
        text.read_files([tmp_path / name], text.Text(), 1)
    with pytest.raises(UserError, match="no such text file"):
        text.read_files([tmp_path / "none.txt"], text.Text(), 1)


def test_a_dataset_gives_its_training_side_alone(study: Study) -> None:
    from repro.app.pretrain import _training_side

    params = tiny()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REPRO_HOME", str(study.store.root.parent))
        documents = set(_training_side(str(study.dataset_file), params))
    dataset = study.dataset
    passages = dataset.collection.passages
    assert documents == {passages[i] for i in dataset.splits.pool}
    for name in ("validation", "test", "tuning"):
        assert not documents & {passages[i] for i in dataset.evaluation(name).passages}
