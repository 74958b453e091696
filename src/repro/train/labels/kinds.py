"""The kinds of labels, and what determines a set of them.

A label is a query paired with the passage that it was made from.  One file a kind makes them: `ict`,
`extracted`, `doc2query`, `llm` from passages, `wrong` from the dataset's own pairs.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from repro.params import Params

PROMPT = (
    "Write the one search query that a person would type to find the passage below. "
    "Answer with the query alone.\n\nPassage: {passage}\n\nQuery:"
)


class Ict(Params):
    """Inverse cloze: a sentence of the passage is the query, the rest of it the passage."""

    kind: Literal["ict"]
    first: Annotated[float, Field(ge=0, le=1)] = 0.5  # how often it is the first sentence


class Extracted(Params):
    """Words of the passage that a model, fitted to the generator split, expects in a query."""

    kind: Literal["extracted"]


class Sampling(Params):
    """How a model's tokens are drawn."""

    max_tokens: Annotated[int, Field(ge=1, le=1024)] = 48  # of a query, at the most
    top_k: Annotated[int, Field(ge=0, le=100_000)] = 10  # 0: all; 1: always the likeliest
    temperature: Annotated[float, Field(gt=0, le=10)] = 1.0
    batch: Annotated[int, Field(ge=1, le=4096)] = 32  # passages at once; part of the draw


class Doc2query(Sampling):
    """A sequence-to-sequence model that was trained to write the query of a passage."""

    kind: Literal["doc2query"]
    model: str  # a folder, or a hub id
    prefix: str = ""  # put before each passage
    passage_tokens: Annotated[int, Field(ge=8, le=4096)] = 512  # read of a passage


class Llm(Sampling):
    """A causal language model that is asked for the query: one that is loaded, or one that is served."""

    kind: Literal["llm"]
    model: str  # a folder or a hub id; with `endpoint`, the model's name there
    endpoint: str = ""  # base URL of an OpenAI-compatible service, such as http://localhost:8000/v1
    prompt: Annotated[str, Field(max_length=20_000)] = PROMPT
    passage_words: Annotated[int, Field(ge=8, le=10_000)] = 300  # of a passage in the prompt
    at_once: Annotated[int, Field(ge=1, le=256)] = 8  # requests under way to the endpoint
    seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0  # to wait for an answer of the endpoint

    @field_validator("prompt")
    @classmethod
    def _asks(cls, prompt: str) -> str:
        if "{passage}" not in prompt:
            raise ValueError("the prompt has no place for the passage\n  remedy: write {passage}")
        return prompt

    @field_validator("endpoint")
    @classmethod
    def _url(cls, endpoint: str) -> str:
        if endpoint and not endpoint.startswith(("http://", "https://")):
            raise ValueError("this is no URL\n  remedy: such as http://localhost:8000/v1")
        if any(mark in endpoint for mark in "@?#") or any(map(str.isspace, endpoint)):
            raise ValueError(
                "an address alone stands here, because specs are kept and shown\n  remedy: a key goes "
                "into the environment, REPRO_ENDPOINT_KEY"
            )
        return endpoint.rstrip("/")


class Wrong(Params):
    """The dataset's own pairs, of which a share is given a passage that does not answer the query."""

    kind: Literal["wrong"]
    share: Annotated[float, Field(ge=0, lt=1)]


Kind = Annotated[Ict | Extracted | Doc2query | Llm | Wrong, Field(discriminator="kind")]
ONCE = ("extracted", "wrong")  # kinds that give one label a passage


class LabelSpec(Params):
    """A set of labels; the digest of `determined` is its key."""

    collection: str  # digest
    splits: str  # digest
    kind: Kind
    generator: str = ""  # digest of the model that writes; "" where none is loaded
    passages: Literal["positives", "random"] = "positives"
    per_passage: Annotated[int, Field(ge=1, le=100)] = 1
    # D, pairs, rising; a kind whose labels do not depend on them has the largest alone.
    sizes: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)]
    seed: int

    @model_validator(mode="after")
    def _once(self) -> LabelSpec:
        if self.kind.kind in ONCE and self.per_passage > 1:
            raise ValueError(
                f"labels of the kind `{self.kind.kind}` come once a passage\n"
                "  remedy: per_passage: 1, or leave the kind out"
            )
        return self

    def determined(self) -> dict[str, Any]:
        """What determines the labels, plain data: the spec without where the model lies or how it is asked.

        A loaded model is named by its digest, so that it may be moved; of an endpoint only the model's
        name there counts.
        """
        found = self.model_dump(mode="json")
        reached = ["endpoint", "at_once", "seconds", *(["model"] if self.generator else [])]
        found["kind"] = {name: v for name, v in found["kind"].items() if name not in reached}
        return found

    @property
    def count(self) -> int:
        """How many labels are made."""
        return self.sizes[-1]
