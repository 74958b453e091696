"""Pins: which of several like entries stays, and that likeness joins passages to components."""

from __future__ import annotations

import numpy as np
import pytest
from made import collect
from pydantic import ValidationError

from repro.data.dataset import Dataset
from repro.data.duplicates import DuplicatesParams, components, remove_duplicates, summary
from repro.data.similarity import near_texts

LONG = "one two three four five six seven eight nine ten eleven twelve"


def test_of_identical_queries_the_first_stays_with_its_passage() -> None:
    whole = collect([("The name.", "alpha beta"), ("the  name.", "gamma delta"), ("b", "epsilon")])
    left = remove_duplicates(whole, DuplicatesParams()).collection
    assert left.passages == ["alpha beta", "epsilon"]
    assert left.dropped["pair with an identical query"] == 1


def test_a_query_over_unlike_passages_goes_whole_where_ambiguity_is_dropped() -> None:
    whole = collect(
        [("The id.", "alpha beta"), ("the id.", "gamma delta"), ("b", LONG), ("B", f"{LONG} more")]
    )
    left = remove_duplicates(whole, DuplicatesParams(drop_ambiguous=True)).collection
    assert left.passages == [LONG]
    assert left.dropped["pair with an ambiguous query"] == 2
    assert left.dropped["pair with an identical query"] == 1


def test_of_near_passages_the_first_stays() -> None:
    whole = collect([("a", LONG), ("b", f"{LONG} more"), ("c", "something else altogether")])
    left = remove_duplicates(whole, DuplicatesParams()).collection
    assert left.queries == ["a", "c"]
    assert left.dropped["passage near to an earlier one"] == 1


def test_of_passages_with_the_same_start_the_first_stays() -> None:
    start = " ".join(f"w{i}" for i in range(25))
    tails = [" ".join(f"{letter}{i}" for i in range(100)) for letter in "xy"]
    whole = collect([("a", f"{start} {tails[0]}"), ("b", f"{start.upper()} {tails[1]}")])
    left = remove_duplicates(whole, DuplicatesParams()).collection
    assert left.queries == ["a"]
    assert left.dropped["passage with an identical start (25 words)"] == 1


def test_a_passage_near_only_to_a_dropped_one_stays() -> None:
    params = DuplicatesParams(shingle_words=1, drop_jaccard=0.5)
    whole = collect([("a", "a b c d"), ("b", "c d a x"), ("c", "c d x y")])
    left = remove_duplicates(whole, params).collection
    assert left.queries == ["a", "c"]  # b is near a; c is near b alone


def test_a_twin_of_a_dropped_passage_goes_too() -> None:
    params = DuplicatesParams(shingle_words=1, drop_jaccard=0.5)
    whole = collect([("a", "a b c"), ("b", "c b x"), ("c", "x b c"), ("d", "x x y")])
    left = remove_duplicates(whole, params).collection
    assert left.queries == ["a", "d"]
    assert left.dropped["passage near to an earlier one"] == 2
    assert left.dropped["pair of a dropped passage"] == 2
    assert left.dropped["query left without a pair"] == 2


def test_links_that_come_hundreds_of_times_still_link() -> None:
    links = np.repeat([[0, 1], [1, 2]], 256, axis=0)
    assert components(links, 4).tolist() == [0, 0, 0, 1]


def test_nothing_is_dropped_where_duplicates_are_kept_but_all_are_joined() -> None:
    start = " ".join(f"w{i}" for i in range(25))
    tails = [" ".join(f"{letter}{i}" for i in range(100)) for letter in "xy"]
    texts = [LONG, f"{LONG} more", f"{start} {tails[0]}", f"{start} {tails[1]}", "alone"]
    whole = collect([(f"q{index}", text) for index, text in enumerate(texts)])
    kept = remove_duplicates(whole, DuplicatesParams(drop=False))
    assert kept.collection.passages == texts
    assert kept.component.tolist() == [0, 0, 1, 1, 2]
    assert summary(kept.component) == {"components": 3, "of several passages": 2, "largest": 2}


def test_near_passages_are_looked_for_among_the_judged_alone_where_asked() -> None:
    start = " ".join(f"w{i}" for i in range(25))
    texts = [LONG, f"{LONG} more", f"{LONG} much", f"{start} a", f"{start} b", "something else"]
    whole = collect([(f"q{index}", text) for index, text in enumerate(texts)])
    judged = np.array([True, True, False, True, False, True])  # the passages that keep their pair
    corpus = whole.keep(np.ones(6, bool), judged, {})
    assert corpus.counts == {"queries": 4, "passages": 6, "pairs": 4}

    def components_under(near: str) -> list[int]:
        params = DuplicatesParams.model_validate({"drop": False, "near": near})
        return remove_duplicates(corpus, params).component.tolist()

    assert components_under("all") == [0, 0, 0, 1, 1, 2]
    assert components_under("judged") == [0, 0, 1, 2, 2, 3]  # of the same start are joined always
    assert components_under("none") == [0, 1, 2, 3, 3, 4]

    def left_under(near: str) -> list[str]:
        return list(remove_duplicates(corpus, DuplicatesParams(near=near)).collection.passages)

    assert left_under("all") == [LONG, f"{start} a", "something else"]
    assert left_under("judged") == [LONG, f"{LONG} much", f"{start} a", "something else"]
    assert left_under("none") == [*texts[:4], "something else"]


def test_among_judged_passages_alone_nothing_changes(apidocs: Dataset) -> None:
    """Every passage of apidocs is judged: the scope is the whole, and so is what comes out."""
    few = apidocs.collection.keep(
        np.arange(len(apidocs.collection.passages)) < 3000,
        np.ones(len(apidocs.collection.pairs), bool),
        {},
    )
    found = [
        remove_duplicates(few, DuplicatesParams(near=near, drop=False))
        for near in ("all", "judged")
    ]
    assert summary(found[0].component)["of several passages"] > 50  # the premise
    np.testing.assert_array_equal(found[0].component, found[1].component)
    assert found[0].collection.digest == found[1].collection.digest


def test_the_scope_is_in_the_spec_only_where_it_is_not_the_default() -> None:
    params = DuplicatesParams()
    old = {
        "drop": True, "drop_ambiguous": False, "first_words": 25, "shingle_words": 4,
        "drop_jaccard": 0.6, "join_jaccard": 0.3, "rules": 2,
    }  # fmt: skip
    assert params.spec() == old
    assert DuplicatesParams(near="judged").spec() == {**old, "near": "judged"}


def test_ambiguity_asks_which_passages_are_near() -> None:
    with pytest.raises(ValidationError, match="near: judged"):
        DuplicatesParams(drop_ambiguous=True, near="none")


def test_passages_without_a_pair_stay() -> None:
    whole = collect([("a", "alpha beta"), ("a2", "gamma delta")])
    corpus = whole.keep(np.array([True, True]), np.array([True, False]), {})
    left = remove_duplicates(corpus, DuplicatesParams()).collection
    assert left.passages == ["alpha beta", "gamma delta"]


def test_an_empty_collection_has_no_components() -> None:
    empty = collect([])
    unique = remove_duplicates(empty, DuplicatesParams())
    assert len(unique.component) == 0
    assert summary(unique.component)["largest"] == 0


def test_joining_may_not_be_stricter_than_dropping() -> None:
    with pytest.raises(ValidationError, match="join_jaccard is above drop_jaccard"):
        DuplicatesParams(drop_jaccard=0.3, join_jaccard=0.5)


def test_apidocs_is_left_without_near_passages(apidocs: Dataset) -> None:
    params = apidocs.params.duplicates
    near = near_texts(apidocs.collection.passages, params.shingle_words, params.join_jaccard)
    assert len(near.pairs) > 1000  # the premise: there is something to join
    assert near.jaccard.max() < params.drop_jaccard
    component = apidocs.component_of_passage
    assert (component[near.pairs[:, 0]] == component[near.pairs[:, 1]]).all()
