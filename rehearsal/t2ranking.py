"""T2Ranking: `THUIR/T2Ranking`, tab-separated files with a header, and the loading script beside them.

Columns: pid, text; qid, text; qid, -, pid, rel (levels 0 to 3); qid, pid (the pairs of level 2 or 3).
Identifiers of queries and of passages both start at 0.
"""

from __future__ import annotations

from pathlib import Path

from rehearsal import files
from rehearsal.content import Content
from rehearsal.msmarco import relevant

SCRIPT = '''"""A loading script, as the repository had one: the hub's library refuses the whole repository."""
raise RuntimeError("a loading script was run")
'''


def repository(folder: Path, content: Content) -> None:
    """The files under data/; the first passage of the collection has bytes that are not UTF-8."""
    data = folder / "data"
    passages = ((key, text) for key, _, text in content.passages)
    files.tsv(data / "collection.tsv", passages, header=("pid", "text"), mark=True)
    lines = (data / "collection.tsv").read_bytes().split(b"\n")
    lines[1] += b"\xb0\xff"
    (data / "collection.tsv").write_bytes(b"\n".join(lines))
    for split, queries in content.queries.items():
        ends = "\r\n" if split == "dev" else "\n"
        files.tsv(data / f"queries.{split}.tsv", queries, header=("qid", "text"), ends=ends)
        if split == "test":
            continue  # its judgements are not public
        judged = [(q, 0, p, grade) for q, p, grade in content.judgements[split]]
        files.tsv(data / f"qrels.{split}.tsv", judged, header=("qid", "-", "pid", "rel"))
        pairs = relevant(content, split)
        files.tsv(data / f"qrels.retrieval.{split}.tsv", pairs, header=("qid", "pid"))
    train = relevant(content, "train")
    passage = [key for key, _, _ in content.passages]
    near = [(q, passage[at * 7919 % len(passage)], at % 3) for at, (q, _) in enumerate(train)]
    files.tsv(data / "train.bm25.tsv", near, header=("qid", "pid", "index"))
    mined = [(*row, f"{0.9 - row[2] / 10:.4f}") for row in near]
    files.tsv(data / "train.mined.tsv", mined, header=("qid", "pid", "index", "score"))
    (folder / "T2Ranking.py").write_text(SCRIPT, encoding="utf-8")
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n", encoding="utf-8")
