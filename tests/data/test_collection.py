"""Pins: what is dropped is counted, pairs keep their texts, the digest follows the content alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from made import collect

from repro.data.collection import Collection, Records, assemble, seal


def test_what_cannot_be_used_is_dropped_and_counted() -> None:
    records = Records(
        queries=[("q1", "one"), ("q2", " "), ("q1", "again"), ("", "no id"), ("q3", "unjudged")],
        passages=[("p1", "first", ""), ("p2", "\r\n", ""), ("p1", "again", ""), ("p3", "more", "")],
        judgements=[("q1", "p1"), ("q1", "p1"), ("q1", "p2"), ("q9", "p1"), ("q2", "p3")],
    )
    collection = assemble("small", "en", records)
    assert collection.counts == {"queries": 1, "passages": 2, "pairs": 1}
    assert collection.passages == ["first", "more"]  # a passage without a judgement stays
    assert collection.dropped == {
        "judgement of a missing or dropped passage": 1,
        "judgement of a missing or dropped query": 2,
        "passage with a repeated id": 1,
        "passage with an empty text": 1,
        "query with a repeated id": 1,
        "query with an empty text": 1,
        "query without an id": 1,
        "query without a judgement": 1,
        "repeated judgement": 1,
    }
    assert collection.repaired == {"CR or CRLF line ends": 1}


def test_kept_pairs_keep_their_texts() -> None:
    whole = collect([("a", "1"), ("b", "2"), ("b", "3"), ("c", "3")])
    part = whole.keep(np.array([True, False, True]), np.array([True, True, True, False]), {"x": 2})
    texts = [(part.queries[query], part.passages[passage]) for query, passage in part.pairs]
    assert texts == [("a", "1"), ("b", "3")]
    assert part.pairs.dtype == np.int32
    assert part.dropped["x"] == 2
    assert part.digest != whole.digest


def test_a_collection_survives_the_disk(tmp_path: Path) -> None:
    whole = collect([("é\n\u2028", "1\ttab"), ("b", "語")], groups=["s", ""])
    whole.save(tmp_path)
    back = Collection.load(tmp_path)
    for name in ("query_ids", "queries", "passage_ids", "passages", "groups", "dropped", "digest"):
        assert getattr(back, name) == getattr(whole, name)
    np.testing.assert_array_equal(back.pairs, whole.pairs)


def test_a_collection_stored_as_parquet_is_still_read(tmp_path: Path) -> None:
    """As collections were stored before their passages were columns."""
    whole = collect([("é\n\u2028", "1\ttab"), ("b", "語")], groups=["s", ""])
    whole.save(tmp_path)
    columns = {"id": whole.passage_ids, "text": whole.passages, "group": whole.groups}
    table = {key: pa.array(list(values), pa.large_string()) for key, values in columns.items()}
    for path in tmp_path.glob("*.npy"):
        path.unlink()
    pq.write_table(pa.table(table), tmp_path / "passages.parquet")
    back = Collection.load(tmp_path)
    for name in ("passage_ids", "passages", "groups"):
        assert getattr(back, name) == getattr(whole, name)
    assert seal(back).digest == whole.digest


def test_an_empty_collection_survives_the_disk(tmp_path: Path) -> None:
    empty = assemble("none", "en", Records([], [], []))
    empty.save(tmp_path)
    assert Collection.load(tmp_path).pairs.shape == (0, 2)


def test_the_digest_follows_the_content_and_not_the_name() -> None:
    one = collect([("a", "1"), ("b", "2")], name="one")
    assert one.digest == collect([("a", "1"), ("b", "2")], name="other").digest
    changed = [
        collect([("a", "1"), ("b", "3")]),
        collect([("a", "1"), ("b", "2"), ("a", "2")]),
        collect([("a", "1"), ("b", "2")], groups=["g", ""]),
        collect([("a1", "1"), ("b", "2")]),
    ]
    assert len({one.digest, *(each.digest for each in changed)}) == 5
