"""Labels by a language model that is asked for a query: one loaded here, or one behind an endpoint.

The endpoint speaks the chat protocol of OpenAI (`POST <url>/chat/completions`).  Its key, where it
wants one, is read from REPRO_ENDPOINT_KEY and is written nowhere.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from repro.errors import UserError
from repro.model.generator import Generator
from repro.seeds import derive
from repro.train.labels.kinds import Llm
from repro.train.labels.made import Label, Source

KEY = "REPRO_ENDPOINT_KEY"
RETRIES = 4
BUSY = (429, 500, 502, 503, 504)


def loaded(
    kind: Llm, writer: Generator, chosen: Sequence[Source], per_passage: int, seed: int
) -> list[list[Label]]:
    """So many queries of each passage, by a model in this process."""
    said = writer.write(
        [writer.prompted(asked(kind, source)) for source in chosen],
        each=per_passage,
        max_tokens=kind.max_tokens,
        top_k=kind.top_k,
        temperature=kind.temperature,
        read_tokens=None,
        seed=derive(seed, "llm", chosen[0].place),
    )
    return [[Label(first_line(text)) for text in texts] for texts in said]


class Endpoint:
    """A served model; several requests are under way at once."""

    def __init__(self, kind: Llm) -> None:
        import requests
        from requests.adapters import HTTPAdapter
        from urllib3.util import Retry

        self.kind, self.failed = kind, requests.RequestException
        again = Retry(
            total=RETRIES,
            connect=0,  # a service that is not there is told at once
            backoff_factor=0.5,
            status_forcelist=BUSY,
            raise_on_status=False,
            allowed_methods=["POST"],
        )
        self.session = requests.Session()
        for scheme in ("http://", "https://"):
            self.session.mount(scheme, HTTPAdapter(max_retries=again, pool_maxsize=kind.at_once))
        if key := os.environ.get(KEY):
            self.session.headers["Authorization"] = f"Bearer {key}"

    def labels(self, chosen: Sequence[Source], per_passage: int, seed: int) -> list[list[Label]]:
        """So many queries of each passage, in its order; raises `UserError` where none can be had."""

        def ask(task: tuple[Source, int]) -> Label:
            source, turn = task
            return Label(first_line(self._said(source, derive(seed, "llm", source.place, turn))))

        tasks = [(source, turn) for source in chosen for turn in range(per_passage)]
        with ThreadPoolExecutor(self.kind.at_once) as pool:
            said = list(pool.map(ask, tasks))
        return [said[i : i + per_passage] for i in range(0, len(said), per_passage)]

    def _said(self, source: Source, seed: int) -> str:
        kind = self.kind
        body: dict[str, Any] = {
            "model": kind.model,
            "messages": [{"role": "user", "content": asked(kind, source)}],
            "max_tokens": kind.max_tokens,
            "temperature": kind.temperature,
            "seed": seed % 2**31,
        }
        try:
            answer = self.session.post(
                f"{kind.endpoint}/chat/completions", json=body, timeout=kind.seconds
            )
            answer.raise_for_status()
            content = answer.json()["choices"][0]["message"]["content"]
        except self.failed as error:
            refused = getattr(error.response, "status_code", None)
            raise UserError(
                f"the endpoint gives no answer: {type(error).__name__}"
                + (f", status {refused}" if refused else ""),
                where=kind.endpoint,
                remedy=f"is it there, does it serve `{kind.model}`, does it want a key ({KEY})? The "
                "same command goes on where this one ended",
            ) from None
        except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
            raise ValueError(f"an answer that is no chat completion ({error!r})") from None
        return content or ""


def asked(kind: Llm, source: Source) -> str:
    """The prompt for a passage; nothing in the passage is taken for a placeholder."""
    passage = " ".join(source.text.split()[: kind.passage_words])
    return kind.prompt.replace("{passage}", passage)


def first_line(text: str) -> str:
    """The first line of an answer that is not empty, without quotation marks or the word "Query:"."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if line.lower().startswith("query:"):
        line = line[len("query:") :].strip()
    return line.strip("\"'“”«»` ")
