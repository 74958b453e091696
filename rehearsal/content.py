"""What a made-up collection holds, whatever its layout: passages, queries and judgements by split.

Everything odd that real collections hold is put in on purpose, and counted: see `ODDITIES`.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from rehearsal.language import Language, Name

ODDITIES = {
    "mojibake": "UTF-8 that was read as Latin-1, as in the raw MS MARCO passages",
    "control": "a control character inside a text",
    "nfd": "letters with their accents apart",
    "spaces": "white space at the ends, and a no-break space",
    "quote": 'a lone " at the start of a text, which is no quoted field',
    "long": "a passage of 1,500 words",
    "empty": "a passage without text",
    "blank": "a passage of spaces",
    "empty_judged": "an empty passage that is judged relevant",
    "empty_query": "a query without text that is judged",
    "duplicate": "a passage that stands there again under another id",
    "near_duplicate": "a passage that stands there again with a word or two added",
    "same_query": "a query that stands there again under another id",
    "missing_passage": "a judgement of a passage that is not in the corpus",
    "missing_query": "a judgement of a query that is not there",
    "repeated": "a judgement that stands there twice",
    "unjudged_query": "a query without a judgement",
    "shared": "a passage that answers several queries",
    "several": "a query with several passages",
    "collision": "an id that is a query's and a passage's",
}
Grades = Callable[[int], int]


@dataclass(frozen=True)
class Plan:
    """How much of everything there is."""

    language: Name
    passages: int
    queries: dict[str, int]  # split -> queries
    words: int = 30  # of a passage, about
    titles: bool = False
    positives: int = 1  # passages of most queries
    varying: bool = False  # from none to twice as many
    irrelevant: int = 0  # passages a query that are judged, and graded 0 or 1
    shared: int = 0  # queries that ask for a passage which another query asks for, in a hundred
    first_query: int = 0  # the id of the first query; passages start at 0
    odd: bool = True


@dataclass
class Content:
    """Rows in the order in which they stand in the files."""

    passages: list[tuple[str, str, str]] = field(default_factory=list)  # id, title, text
    queries: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # split -> id, text
    judgements: dict[str, list[tuple[str, str, int]]] = field(default_factory=dict)
    oddities: Counter[str] = field(default_factory=Counter)


def make(plan: Plan, seed: int, name: str) -> Content:
    """The collection that `plan` describes; the same for the same plan, seed and name."""
    writer = Language(plan.language, seed, name)
    content = Content()
    keys = [writer.keys() for _ in range(plan.passages)]
    for number, own in enumerate(keys):
        words = int(plan.words * (0.6 + writer.random.random()))
        title = writer.title(own) if plan.titles and number % 7 else ""
        content.passages.append((str(number), title, writer.passage(own, words)))
    order = iter(writer.random.permutation(plan.passages).tolist())
    number = plan.first_query
    for split, count in plan.queries.items():
        queries, judged = [], []
        asked: list[int] = []
        for _ in range(count):
            again = asked and int(writer.random.integers(100)) < plan.shared
            found = [asked[int(writer.random.integers(len(asked)))]] if again else []
            content.oddities["shared"] += bool(again)
            wanted = 2 if plan.positives == 1 and number % 20 == 0 else plan.positives
            if plan.varying:
                wanted = int(writer.random.integers(2 * plan.positives + 1))
            found += [next(order) for _ in range(wanted - len(found))]
            asked += found
            content.oddities["several"] += len(found) > 1
            content.oddities["collision"] += number < plan.passages
            topic = keys[found[0] if found else number % plan.passages]
            queries.append((str(number), writer.query(topic, loose=number % 3 == 0)))
            grades = [3 if rank == 0 else 2 for rank in range(len(found))]
            judged += [(str(number), str(p), g) for p, g in zip(found, grades, strict=True)]
            for grade in range(plan.irrelevant):
                other = int(writer.random.integers(plan.passages))
                if other not in found:
                    judged.append((str(number), str(other), grade % 2))
            number += 1
        content.queries[split], content.judgements[split] = queries, judged
    if plan.odd:
        _spoil_texts(content, writer)
        _spoil_rows(content, number, plan)
    return content


def mojibake(text: str) -> str:
    """`text` in UTF-8, read as Latin-1."""
    return text.encode().decode("latin-1")


def _spoil_texts(content: Content, writer: Language) -> None:
    """Texts that are odd but stay what they are."""
    accents = "caf\u00e9 \u2019 na\u00efve"
    changes: dict[str, Callable[[str], str]] = {
        "mojibake": lambda text: f"{text} {mojibake(accents)}",
        "control": lambda text: text[:9] + "\x07" + text[9:],
        "nfd": lambda text: f"{text} {unicodedata.normalize('NFD', accents)}",
        "spaces": lambda text: f"  {text}\u00a0 ",
        "quote": lambda text: f'"{text}',
        "long": lambda text: f"{text} {writer.passage(writer.keys(), 1500)}",
    }
    chosen = writer.random.permutation(len(content.passages))
    for at, index in enumerate(chosen[: max(len(chosen) // 40, len(changes))].tolist()):
        name = list(changes)[at % len(changes)] if at < 3 * len(changes) else "mojibake"
        identifier, title, text = content.passages[index]
        content.passages[index] = (identifier, title, changes[name](text))
        content.oddities[name] += 1


def _spoil_rows(content: Content, next_query: int, plan: Plan) -> None:
    """Rows that are odd: empty, twice there, or judged without being there.  All stand at the ends."""
    passage = len(content.passages)
    split = next(iter(plan.queries))
    queries, judged = content.queries[split], content.judgements[split]

    def add_passage(what: str, text: str) -> str:
        nonlocal passage
        content.passages.append((str(passage), "", text))
        content.oddities[what] += 1
        passage += 1
        return str(passage - 1)

    def add_query(what: str, text: str, answer: str | None) -> None:
        nonlocal next_query
        queries.append((str(next_query), text))
        content.oddities[what] += 1
        if answer is not None:
            judged.append((str(next_query), answer, 3))
        next_query += 1

    more = " \u4e5f\u662f" if plan.language == "zh" else " also"
    for _ in range(3):
        add_passage("empty", "")
    add_passage("blank", "   ")
    for index in (1, 5, 9):
        add_passage("duplicate", content.passages[index][2])
        add_passage("near_duplicate", content.passages[index + 1][2] + more)
    add_query("empty_judged", queries[0][1] + more, add_passage("empty", ""))
    add_query("empty_query", "", judged[0][1])
    add_query("same_query", queries[1][1], judged[1][1])
    add_query("unjudged_query", queries[2][1] + more, None)
    judged.append((queries[3][0], str(passage + 1000), 3))
    judged.append((str(next_query + 1000), "3", 3))
    judged.append(judged[4])
    content.oddities.update(["missing_passage", "missing_query", "repeated"])
