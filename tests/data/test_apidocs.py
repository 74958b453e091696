"""Pins the embedded collection: counts, digest, first, middle and last record, and how it is read."""

from __future__ import annotations

import importlib.metadata
import sys

import pytest

from repro.data.dataset import Dataset
from repro.data.sources.apidocs import ApidocsParams, split
from repro.errors import UserError


def test_counts_and_digest_are_the_stated_constants(apidocs: Dataset) -> None:
    expected = apidocs.params.expected
    assert apidocs.collection.digest == expected.digest
    assert apidocs.collection.counts == {"queries": 23168, "passages": 23168, "pairs": 23168}
    assert expected.pairs == 23168
    assert len(set(apidocs.collection.groups)) == 429
    assert apidocs.collection.dropped == {
        "entry of a single sentence": 200067,
        "entry on paging or idempotency": 14901,
        "entry with a first sentence under 5 words": 4901,
        "entry with a rest under 20 words": 39046,
        "pair with an ambiguous query": 4854,
        "pair with an identical query": 6323,
        "passage with an identical start (25 words)": 3314,
        "passage near to an earlier one": 1613,
        "passage left without a pair": 11177,
        "pair of a dropped passage": 4927,
        "query left without a pair": 16104,
    }


@pytest.mark.parametrize(
    ("index", "identifier", "query", "passage"),
    [
        (
            0,
            "abuse-signal/operation/GetAbuseReportStatus",
            "Retrieves the current processing status of a previously submitted abuse report, "
            "including the status, submission timestamp, and last-update time.",
            "You can poll this operation to track the report's status. PROCESSING confirms ",
        ),
        (
            11584,
            "iotsitewise/shape/ListEnrichmentJobsRequest/endDate",
            "The inclusive end of the date range for filtering jobs by creation time.",
            "Jobs created on or before this timestamp are included. Use ISO 8601 format (e.g., "
            "2024-01-31T23:59:59Z).",
        ),
        (
            -1,
            "xray/shape/UpdateGroupResult/Group",
            "The group that was updated.",
            "Contains the name of the group that was updated, the ARN of the group that was ",
        ),
    ],
)
def test_first_middle_and_last_record(
    apidocs: Dataset, index: int, identifier: str, query: str, passage: str
) -> None:
    collection = apidocs.collection
    assert collection.passage_ids[index] == identifier
    assert collection.query_ids[index] == identifier
    assert collection.queries[index] == query
    assert collection.passages[index].startswith(passage)
    assert collection.groups[index] == identifier.split("/")[0]


def test_the_package_is_read_and_not_imported(apidocs: Dataset) -> None:
    assert apidocs.collection.passages
    assert "botocore" not in sys.modules


@pytest.mark.parametrize(
    ("documentation", "query", "passage"),
    [
        ("<p>One sentence. The <code>Rest</code>.</p>", "One sentence.", "The Rest."),
        ("<p>A title</p> <ul><li>x</li><li>y</li></ul>", "A title", "x y"),
        ("<p>Costs e.g. Money (i.e. Cash). More.</p>", "Costs e.g. Money (i.e. Cash).", "More."),
        ("<p>Uses v1.2 of it. 3 are left.</p>", "Uses v1.2 of it.", "3 are left."),
        (
            "<p>The ARN of <account-id> &amp; co. Next.</p>",
            "The ARN of <account-id> & co.",
            "Next.",
        ),
        ("<p>It is no longer open to new customers. Does it. Then.</p>", "Does it.", "Then."),
        ("<p>Only one.</p>", "Only one.", ""),
        ("<p></p>", "", ""),
        ("", "", ""),
    ],
)
def test_an_entry_is_split_after_its_first_sentence(
    documentation: str, query: str, passage: str
) -> None:
    assert split(documentation) == (query, passage)


def test_another_version_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        version = "1.0"

        def locate_file(self, path: str) -> str:
            return f"/somewhere/{path}"

    params = ApidocsParams(kind="apidocs")
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Other())
    with pytest.raises(UserError, match=r"1\.0 is installed") as caught:
        params.fingerprint()
    assert caught.value.remedy == "pip install botocore==1.44.8"


def test_a_missing_package_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    with pytest.raises(UserError, match="needs botocore") as caught:
        ApidocsParams(kind="apidocs").read()
    assert caught.value.remedy == "pip install botocore==1.44.8"
