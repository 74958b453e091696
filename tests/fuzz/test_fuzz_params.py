"""Parameter files, damaged: data as they stand there, a model that can be keyed, or one clear error."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from pydantic import BaseModel

from fuzz.damage import changed, damaged
from fuzz.harness import REFUSED, Fuzz, attempt
from repro import params
from repro.data.dataset import DatasetParams, load_dataset_params
from repro.document import Document, read
from repro.experiments.profile import Profile
from repro.files import digest

ROOT = Path(__file__).parents[2] / "params"
LINES = [
    b"a: 1e-5\nb: [x, 2]\n",
    b"a: {b: .5, c: no}\n",
    b"- a\n- b: ~\n",
    b'a: "\\u00e9\\x41"  # note\n',
    b"a: |\n  x\n  y\nb: >-\n  z\n",
    b"a: 2020-01-01\n? b\n: 'it''s'\n",
]
FILES = [
    path.read_bytes() for path in (ROOT / "smoke.yaml", ROOT / "datasets" / "beir-example.yaml")
]
PROFILES = [read(ROOT / f"{name}.yaml").data for name in ("smoke", "mini", "transfer", "team")]
CLUSTER = {"backend": "slurm", "partition": "main", "gpus_per_run": 1, "environment": {"A": "b"}}
PROFILES.append({**PROFILES[0], "execute": CLUSTER})
DATASETS = [
    read(ROOT / "datasets" / f"{name}.yaml").data
    for name in ("template", "apidocs", "beir-example", "msmarco", "nq", "t2ranking")
]


def test_yaml(fuzz: Fuzz) -> None:
    path = fuzz.folder / "lines.yaml"

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        found = attempt(lambda: read(path), path)
        if found is REFUSED:
            return False
        text = json.dumps(found.data, ensure_ascii=False)  # plain data alone, and no broken text
        assert json.loads(text.encode()) == found.data or not _finite(found.data)
        return all(path.name in place for place in found.places.values())

    fuzz(damaged(LINES), check, share=0.6)


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
_PLAIN = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)


def test_plain_data_come_back_as_they_were_written(fuzz: Fuzz) -> None:
    path = fuzz.folder / "data.yaml"

    def check(data: Any) -> bool:
        path.write_text(json.dumps(data), encoding="utf-8")  # JSON is YAML 1.2
        found = attempt(lambda: read(path).data, path)
        if found is REFUSED:
            return False if not isinstance(data, dict) else _odd(data)
        assert found == data or not _finite(data)  # NaN is a word in YAML, no number
        return True

    fuzz(_PLAIN | st.dictionaries(st.text(max_size=8), _PLAIN, max_size=4), check, share=0.05)


def test_whole_files(fuzz: Fuzz) -> None:
    path = fuzz.folder / "mine.yaml"

    def check(data: bytes) -> bool:
        path.write_bytes(data)
        profile = attempt(lambda: params.load(path, Profile), path)
        dataset = attempt(lambda: load_dataset_params(str(path)), path)
        return any(found is not REFUSED and _whole(found, data) for found in (profile, dataset))

    fuzz(damaged(FILES), check, share=0.005)


@pytest.mark.parametrize(("model", "bases"), [(Profile, PROFILES), (DatasetParams, DATASETS)])
def test_models(model: type[BaseModel], bases: list[Any], fuzz: Fuzz) -> None:
    path = fuzz.folder / "values.yaml"
    path.write_text("written: already\n", encoding="utf-8")
    places = read(path).places

    def check(data: Any) -> bool:
        document = Document(path, data, places)
        found = attempt(lambda: params.validate(document, model), path)
        return found is not REFUSED and _whole(found, data)

    fuzz(changed(bases), check, share=0.2)


def _whole(found: BaseModel, data: Any) -> bool:
    """Whether it can be keyed, holds finite numbers alone, and is the same when read again."""
    text = json.dumps(found.model_dump(mode="json", exclude_unset=True), allow_nan=False)
    if "auto" not in str(data):  # which stands for numbers that are not chosen yet
        assert type(found).model_validate(json.loads(text)) == found
    assert _finite(found.model_dump())
    return len(digest(found.model_dump(mode="json"))) == 20


def _odd(data: dict[str, Any]) -> bool:
    """Asserts that there is a reason to refuse these data; False, so that it counts as refused."""
    text = json.dumps(data)
    assert not data or re.search(r"\\ud[89a-f]|\d{20}", text)
    return False


def _finite(value: Any) -> bool:
    if isinstance(value, dict | list | tuple):
        return all(map(_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)
