"""Labels of each kind: paired with their own passage, counted, and never lost half-way."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import tiny
from repro.data.dataset import Dataset
from repro.data.text import normal, words
from repro.errors import UserError
from repro.model import generator
from repro.train.labels import extracted, ict, llm, maker, wrong
from repro.train.labels.kinds import Ict, LabelSpec, Llm
from repro.train.labels.made import Generate, Label, LabelSet, Source, sources, write
from repro.train.labels.view import labelled

CPU = torch.device("cpu")


def spec(dataset: Dataset, kind: dict[str, Any], **more: Any) -> LabelSpec:
    """A set of labels on `dataset`."""
    about = {"collection": dataset.collection.digest, "splits": dataset.splits.digest, "seed": 1}
    return LabelSpec.model_validate({**about, "kind": kind, "sizes": [32, 100], **more})


def made(dataset: Dataset, folder: Path, kind: dict[str, Any], **more: Any) -> LabelSet:
    """The labels of a kind, made for real."""
    folder.mkdir(exist_ok=True)
    maker.make(folder, dataset, spec(dataset, kind, **more), CPU, lambda n: None)
    return LabelSet.load(folder)


# ---------------------------------------------------------------- inverse cloze


def test_a_sentence_asks_for_the_rest() -> None:
    text = "The first one here. No. A second one there! Is this a third one?"
    chosen = [Source(0, text, place) for place in range(60)]
    found = [label for (label,) in ict.labels(Ict(kind="ict"), chosen, 1, seed=1)]
    parts = ict.sentences(text)
    for label in found:
        assert label.query in parts
        assert label.text == " ".join(part for part in parts if part != label.query)
    asked = [label.query for label in found]
    assert "No." not in asked  # two words or fewer are no query
    assert 0.5 < asked.count(parts[0]) / len(asked) < 0.9  # half, and a third of the other half
    assert ict.labels(Ict(kind="ict"), chosen[7:8], 1, seed=1) == [[found[7]]]


def test_a_passage_of_one_sentence_gives_its_ends() -> None:
    text = " ".join(f"w{i}" for i in range(50))
    ((label,),) = ict.labels(Ict(kind="ict"), [Source(0, text, 0)], 3, seed=1)
    assert label.query.split() == [f"w{i}" for i in range(20)]
    assert (label.text or "").split() == [f"w{i}" for i in range(30, 50)]


def test_sentences_of_unspaced_scripts_are_cut_too() -> None:
    assert ict.sentences("第一句话。第二句话！") == ["第一句话。", "第二句话！"]


def test_a_word_of_an_unspaced_script_is_a_character() -> None:
    ((label,),) = ict.labels(Ict(kind="ict"), [Source(0, "第一句话。第二句话！", 0)], 1, seed=1)
    assert {label.query, label.text} == {"第一句话。", "第二句话！"}
    long = "".join(chr(0x4E00 + i) for i in range(50))
    ((label,),) = ict.labels(Ict(kind="ict"), [Source(0, long, 0)], 1, seed=1)
    assert (label.query, label.text) == (long[:20], long[-20:])


# ---------------------------------------------------------------- wrong on purpose


@given(
    st.lists(st.integers(20, 400), min_size=1, max_size=5),
    st.integers(0, 2**31),
)
def test_wrong_shares_are_exact_and_nested(gaps: list[int], seed: int) -> None:
    sizes = np.cumsum(gaps).tolist()
    before = np.zeros(sizes[-1], bool)
    for share in (0.0, 0.1, 0.3, 0.5):
        found = wrong.chosen(sizes, share, seed)
        for size in sizes:
            assert abs(found[:size].sum() - share * size) <= 1
        assert (found >= before).all()
        before = found


def test_no_wrong_label_is_right_by_accident(dataset: Dataset, tmp_path: Path) -> None:
    found = made(dataset, tmp_path, {"kind": "wrong", "share": 0.5})
    rows = dataset.splits.train[:100]
    queries, passages = dataset.collection.pairs[rows].T
    assert found.queries == [dataset.collection.queries[i] for i in queries]
    changed = found.passages != passages
    assert changed.sum() == 50
    assert np.isin(found.passages[changed], dataset.splits.pool).all()
    own = dataset.component_of_passage[dataset.judgements.positives(queries)]
    theirs = dataset.component_of_passage[found.passages]
    for i in np.flatnonzero(changed):
        assert theirs[i] not in own[i]
    fewer = made(dataset, tmp_path / "fewer", {"kind": "wrong", "share": 0.1})
    both = fewer.passages != passages
    assert both.sum() == 10
    assert (changed | ~both).all()
    assert (fewer.passages[both] == found.passages[both]).all()


# ---------------------------------------------------------------- extracted


def test_extracted_words_are_those_that_queries_hold(dataset: Dataset, tmp_path: Path) -> None:
    found = made(dataset, tmp_path, {"kind": "extracted"})
    hits = [_held(dataset, i, query) for i, query in enumerate(found.queries)]
    passages = [dataset.collection.passages[i] for i in found.passages]
    plain = [_held(dataset, i, " ".join(words(p)[:6])) for i, p in enumerate(passages)]
    assert np.mean(hits) > 1.5 * np.mean(plain)  # against the first words of the passage
    for query, passage in zip(found.queries, passages, strict=True):
        assert set(query.split()) <= set(words(passage))
    assert found.texts == [None] * 100


def test_extracted_words_tell_passages_apart(dataset: Dataset, tmp_path: Path) -> None:
    found = made(dataset, tmp_path, {"kind": "extracted"})
    pool = [set(words(dataset.collection.passages[i])) for i in dataset.splits.pool]

    def frequency(terms: Iterable[str]) -> float:  # of passages that hold a word, averaged
        return float(np.mean([np.mean([term in held for held in pool]) for term in terms]))

    chosen = frequency(word for query in found.queries for word in query.split())
    every = frequency(
        word
        for i in found.passages
        for word in dict.fromkeys(words(dataset.collection.passages[i]))
    )
    assert chosen < 0.5 * every


def _held(dataset: Dataset, place: int, query: str) -> float:
    """The share of a query's words that the author's own query holds."""
    own = dataset.collection.queries[dataset.collection.pairs[dataset.splits.train[place], 0]]
    return float(np.mean([word in words(own) for word in query.split()]))


def test_extraction_needs_pairs_to_learn_from(dataset: Dataset) -> None:
    import dataclasses

    none = dataclasses.replace(dataset.splits, generator=dataset.splits.generator[:3])
    with pytest.raises(UserError, match=r"generator split of tiny has 3 pairs"):
        extracted.fit(dataclasses.replace(dataset, splits=none))


# ---------------------------------------------------------------- what goes wrong on the way


def echo(chosen: Sequence[Source]) -> list[list[Label]]:
    """The first three words of each passage: a label that names its passage."""
    return [[Label(" ".join(source.text.split()[-3:]))] for source in chosen]


def written(dataset: Dataset, folder: Path, generate: Generate, **more: Any) -> LabelSet:
    """Labels by a generator of the test's own, in batches of eight."""
    folder.mkdir(exist_ok=True)
    asked = spec(dataset, {"kind": "ict"}, **more)
    write(folder, dataset, asked, generate, 8, lambda n: None)
    return LabelSet.load(folder)


def test_each_label_stays_with_its_passage(dataset: Dataset, tmp_path: Path) -> None:
    found = written(dataset, tmp_path, echo)
    for query, passage in zip(found.queries, found.passages, strict=True):
        assert dataset.collection.passages[passage].endswith(query)
    assert len(set(found.passages.tolist())) == 100


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("SAME", "the passage itself"),
        ("RAISE", "failed: RuntimeError: no answer to this"),
        ("NONE", "empty"),
    ],
)
def test_unusable_labels_are_left_out_and_counted(
    dataset: Dataset, tmp_path: Path, bad: str, reason: str
) -> None:
    def generate(chosen: Sequence[Source]) -> list[list[Label]]:
        found = echo(chosen)
        for i, source in enumerate(chosen):
            if source.place % 5 == 2:
                if bad == "RAISE":
                    raise RuntimeError("no answer to this\nand more")
                said = source.text.upper() if bad == "SAME" else bad
                found[i] = [] if bad == "NONE" else [Label(said)]
        return found

    found = written(dataset, tmp_path, generate)
    for query, passage in zip(found.queries, found.passages, strict=True):
        assert dataset.collection.passages[passage].endswith(query)  # still its own
    assert len(found.queries) == 100
    assert found.about["unusable"] == {reason: (found.about["passages"] + 2) // 5}
    assert found.about["examples"][0]["reason"] == reason


@pytest.mark.parametrize("how", ["cut off", "a bit flipped"])
def test_a_generator_that_breaks_down_loses_nothing(
    dataset: Dataset, tmp_path: Path, how: str
) -> None:
    calls: list[int] = []

    def broken(chosen: Sequence[Source]) -> list[list[Label]]:
        if chosen[0].place >= 40:
            raise RuntimeError("out of memory")
        return echo(chosen)

    def mended(chosen: Sequence[Source]) -> list[list[Label]]:
        calls.append(chosen[0].place)
        return echo(chosen)

    with pytest.raises(RuntimeError, match="out of memory"):
        written(dataset, tmp_path / "broken", broken)
    kept = tmp_path / "broken" / "batches.jsonl"
    text = kept.read_text()
    harmed = {"cut off": text[:-20], "a bit flipped": text[:-20] + "~" + text[-19:]}
    kept.write_text(harmed[how])  # the last line
    found = written(dataset, tmp_path / "broken", mended)
    assert calls[0] == 32  # the last batch again, no other
    whole = written(dataset, tmp_path / "whole", echo)
    assert found.queries == whole.queries
    assert not kept.exists()


def test_too_few_passages_are_told(dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"labels of the kind `ict` \(\d+ empty\); 100 are wanted"):
        written(dataset, tmp_path, lambda chosen: [[Label("")] for _ in chosen])


def test_passages_are_positives_in_order_or_any_of_the_pool(dataset: Dataset) -> None:
    first = dataset.collection.pairs[dataset.splits.train, 1].tolist()
    assert sources(dataset, spec(dataset, {"kind": "ict"})) == list(dict.fromkeys(first))
    drawn = sources(dataset, spec(dataset, {"kind": "ict"}, passages="random"))
    assert sorted(drawn) == sorted(dataset.splits.pool.tolist())
    assert drawn != sorted(drawn)


def test_several_labels_a_passage_are_each_once(dataset: Dataset, tmp_path: Path) -> None:
    def twice(chosen: Sequence[Source]) -> list[list[Label]]:
        return [[Label(source.text[:9]), Label("x"), Label("X"), Label("y")] for source in chosen]

    found = written(dataset, tmp_path, twice, per_passage=3)
    assert found.about["unusable"]["a repetition"] > 0
    assert found.queries[:2] != found.queries[2:4]
    assert "y" not in found.queries  # no more than were asked for


# ---------------------------------------------------------------- models that write


def write_t5(folder: Path) -> Path:
    """A random sequence-to-sequence model with the tiny tokenizer."""
    from transformers import T5Config, T5ForConditionalGeneration

    return _save(folder, T5ForConditionalGeneration, T5Config(
        vocab_size=64, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=3, initializer_factor=4.0,
    ))  # fmt: skip


def write_gpt(folder: Path) -> Path:
    """A random causal model with the tiny tokenizer."""
    from transformers import GPT2Config, GPT2LMHeadModel

    return _save(folder, GPT2LMHeadModel, GPT2Config(
        vocab_size=64, n_positions=256, n_embd=16, n_layer=1, n_head=2, bos_token_id=2,
        eos_token_id=3,
    ))  # fmt: skip


def _save(folder: Path, network: Any, config: Any) -> Path:
    tiny.write_bert(folder)  # its tokenizer
    for name in ("model.safetensors", "config.json"):
        (folder / name).unlink()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network(config).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", ["doc2query", "llm"])
def test_models_write_the_query_of_their_own_passage(
    dataset: Dataset, tmp_path: Path, kind: str
) -> None:
    folder = (write_t5 if kind == "doc2query" else write_gpt)(tmp_path / "model")
    about = {"kind": kind, "model": str(folder), "max_tokens": 6, "top_k": 1}
    whole = made(dataset, tmp_path / "whole", {**about, "batch": 16}, sizes=[40])
    alone = made(dataset, tmp_path / "alone", {**about, "batch": 1}, sizes=[40])
    assert len(set(whole.queries)) > 3  # it does not say the same of all
    assert whole.queries == alone.queries  # padding and order of a batch change nothing
    assert (whole.passages == alone.passages).all()


def test_sampling_is_repeatable_and_obeys_the_seed(dataset: Dataset, tmp_path: Path) -> None:
    about = {"kind": "doc2query", "model": str(write_t5(tmp_path / "model")), "max_tokens": 6}
    state = torch.random.get_rng_state()
    first, again, other = (
        made(dataset, tmp_path / name, about, sizes=[40], seed=seed)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    assert first.queries == again.queries != other.queries
    assert torch.equal(state, torch.random.get_rng_state())


def test_a_model_of_the_wrong_sort_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    gpt = write_gpt(tmp_path / "gpt")
    with pytest.raises(UserError, match="is no sequence-to-sequence model"):
        made(dataset, tmp_path / "out", {"kind": "doc2query", "model": str(gpt)})
    with pytest.raises(UserError, match="there is no model folder"):
        generator.digest("./nowhere")
    about = {"kind": "llm", "model": str(gpt)}
    assert maker.loads(spec(dataset, about).kind) == str(gpt)
    assert maker.loads(spec(dataset, {**about, "endpoint": "http://there"}).kind) == ""
    assert len(generator.digest(str(gpt))) == 64


class Served(BaseHTTPRequestHandler):
    """A chat endpoint that answers with the last words of the passage it was given."""

    seen: list[dict[str, Any]]
    broken_for: str

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][0]["content"]
        type(self).seen.append({**body, "path": self.path, "key": self.headers["Authorization"]})
        passage = prompt.split("Passage: ")[1].split("\n")[0]
        status = 400 if self.broken_for and self.broken_for in passage else 200
        said = "\n“" + " ".join(passage.split()[-3:]) + "”\nbecause"
        answer = json.dumps({"choices": [{"message": {"content": said}}]}).encode()
        self.send_response(status)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    Served.seen, Served.broken_for = [], ""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Served)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


def served(url: str) -> dict[str, Any]:
    """The kind of a served model."""
    return {"kind": "llm", "model": "some-model", "endpoint": url, "batch": 16, "at_once": 4}


def test_a_served_model_is_asked_passage_by_passage(
    dataset: Dataset, tmp_path: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(llm.KEY, "sesame")
    found = made(dataset, tmp_path, served(endpoint), sizes=[40])
    for query, passage in zip(found.queries, found.passages, strict=True):
        assert dataset.collection.passages[passage].endswith(query)
    assert {each["path"] for each in Served.seen} == {"/v1/chat/completions"}
    assert {each["model"] for each in Served.seen} == {"some-model"}
    assert {each["key"] for each in Served.seen} == {"Bearer sesame"}
    assert len({each["seed"] for each in Served.seen}) == len(Served.seen)
    assert not any("sesame" in path.read_text(errors="replace") for path in tmp_path.iterdir())


def test_a_passage_that_the_endpoint_refuses_costs_that_one_alone(
    dataset: Dataset, tmp_path: Path, endpoint: str
) -> None:
    passage = dataset.collection.passages[sources(dataset, spec(dataset, served(endpoint)))[3]]
    Served.broken_for = " ".join(passage.split()[:6])
    found = made(dataset, tmp_path, served(endpoint), sizes=[40])
    assert sum(found.about["unusable"].values()) == 1
    assert "status 400" in next(iter(found.about["unusable"]))
    assert len(found.queries) == 40


def test_an_endpoint_that_is_not_there_is_told(dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="gives no answer") as fault:
        made(dataset, tmp_path, served("http://127.0.0.1:9/v1"), sizes=[40])
    assert llm.KEY in fault.value.remedy


def test_labels_do_not_depend_on_where_the_model_lies_or_how_it_is_asked(dataset: Dataset) -> None:
    url = served("http://one:1/v1")
    other = {**url, "endpoint": "http://two:2/v1", "at_once": 9, "seconds": 600}
    assert spec(dataset, url).determined() == spec(dataset, other).determined()
    assert spec(dataset, url).determined() != spec(dataset, {**url, "model": "x"}).determined()
    about = {"kind": "doc2query", "model": "/here"}
    moved, digest = {**about, "model": "/there"}, "d" * 64
    here, there = (spec(dataset, kind, generator=digest).determined() for kind in (about, moved))
    assert here == there
    assert here != spec(dataset, about, generator="e" * 64).determined()
    assert here != spec(dataset, {**about, "top_k": 3}, generator=digest).determined()


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ('"What is it?"\n', "What is it?"),
        ("\n\nQuery: one thing\nmore", "one thing"),
        ("", ""),
        ("«ein Ding»", "ein Ding"),
    ],
)
def test_the_query_of_an_answer_is_its_first_line(said: str, query: str) -> None:
    assert llm.first_line(said) == query


def test_braces_in_a_passage_are_no_placeholders() -> None:
    kind = Llm(kind="llm", model="m", prompt="Ask: {passage}")
    assert llm.asked(kind, Source(0, "f{0} {passage}", 0)) == "Ask: f{0} {passage}"


@pytest.mark.parametrize(
    ("kind", "more", "text"),
    [
        ({"kind": "wrong", "share": 1.0}, {}, "less than 1"),
        ({"kind": "llm", "model": "m", "prompt": "say"}, {}, "no place for the passage"),
        ({"kind": "llm", "model": "m", "endpoint": "localhost"}, {}, "no URL"),
        ({"kind": "extracted"}, {"per_passage": 2}, "come once a passage"),
        ({"kind": "guess"}, {}, "does not match any of the expected tags"),
    ],
)
def test_impossible_labels_are_refused(
    dataset: Dataset, kind: dict[str, Any], more: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        spec(dataset, kind, **more)


# ---------------------------------------------------------------- the dataset under other labels


def test_evaluation_is_untouched_and_training_is_the_labels(
    dataset: Dataset, tmp_path: Path
) -> None:
    made_labels = made(dataset, tmp_path, {"kind": "ict"}, sizes=[100])
    view = labelled(dataset, made_labels)
    base = dataset.collection
    assert view.evaluations == dataset.evaluations
    assert view.collection.queries[: len(base.queries)] == base.queries
    assert view.collection.passages[: len(base.passages)] == base.passages
    for name in ("validation", "test", "tuning", "generator"):
        rows = getattr(dataset.splits, name)
        assert (view.collection.pairs[rows] == base.pairs[rows]).all()
    queries, passages = view.collection.pairs[view.splits.subset(100)].T
    assert [view.collection.queries[i] for i in queries] == made_labels.queries
    assert [view.collection.passages[i] for i in passages] == made_labels.texts
    component = view.component_of_passage
    assert len(component) == len(view.collection.passages)
    assert (component[passages] == component[made_labels.passages]).all()
    # The own passage and its like are never negatives of a label.
    judged = view.judgements.positives(queries)
    assert (judged[:, 0] == passages).all()
    assert view.splits.digest != dataset.splits.digest
    assert view.collection.digest != base.digest


def test_wrong_labels_hide_the_right_answer(dataset: Dataset, tmp_path: Path) -> None:
    found = made(dataset, tmp_path, {"kind": "wrong", "share": 0.5})
    view = labelled(dataset, found)
    queries, passages = view.collection.pairs[view.splits.subset(100)].T
    right = dataset.collection.pairs[dataset.splits.subset(100), 1]
    judged = view.judgements.positives(queries)
    changed = np.flatnonzero(passages != right)
    assert len(changed) == 50
    for i in changed:
        if normal(view.collection.queries[queries[i]]):
            assert right[i] not in judged[i]


def test_more_labels_than_training_pairs(dataset: Dataset, tmp_path: Path) -> None:
    most = len(dataset.splits.train) + 5

    def two(chosen: Sequence[Source]) -> list[list[Label]]:
        return [[Label(source.text[:12]), Label(source.text[-12:])] for source in chosen]

    asked = {"passages": "random", "per_passage": 2, "sizes": [most]}
    view = labelled(dataset, written(dataset, tmp_path, two, **asked))
    assert len(view.splits.subset(most)) == most == len(set(view.splits.train.tolist()))
