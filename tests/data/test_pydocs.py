"""Pins how docstrings are read from installed packages, and what the embedded collection is."""

from __future__ import annotations

import gc
import re
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from repro import params as parameters
from repro.data.collection import Collection, assemble
from repro.data.dataset import Dataset, DatasetParams, load_dataset_params, prepare
from repro.data.sources.pydocs import VERSIONS, PydocsParams, docstrings, public
from repro.errors import UserError
from repro.places import ROOT
from repro.store import Store
from repro.train.pretrain import PretrainParams

REST = "It is told here in a sentence that is long enough. " * 3
FILES = {
    "tinypack/__init__.py": f'"""The tiny package does next to nothing. {REST}"""\nraise RuntimeError',
    "tinypack/_core.py": f'''
class Box:
    """A box holds one single thing. {REST} of a box"""

    def __init__(self):
        """Make a box of some kind. {REST} private"""

    def open(self):
        """Open this box and look inside. {REST} opened"""
        def inner():
            """Never to be seen by anyone. {REST} inner"""

    @property
    def size(self):
        """Short."""

class _Hidden:
    """A hidden class nobody may see. {REST} hidden"""

    def shown(self):
        """A public name in a private class. {REST} not shown"""

try:
    import fast
except ImportError:
    async def wait():
        """Unread: it stands in a handler. {REST} handler"""
else:
    async def wait():
        """Wait until the box is full. {REST} waited"""

if True:
    def wait():
        """A second text of that name. {REST} repeated"""
''',
    "tinypack/docs.py": f'''
add_newdoc("tinypack", "total", """
    total(x, /)

    Add up what is in it. {REST} total
""")
add_newdoc("tinypack", "Box", [("weight", """Tell the weight of this box. {REST} weight"""), ("x", y)])
_C.add_docstr(tinypack.mean, r"""mean(x) -> Tensor

The mean of all that is there. {REST}
""" + r"""{{more}} of the mean""".format(**common))
add_newdoc("tinypack", "_secret", """A secret that no one may read. {REST} secret""")
add_newdoc(*computed)
print("Not a docstring of anything at all. {REST} printed")
''',
    "tinypack/broken.py": "def (:\n",
    "tinypack/tests/test_box.py": f'"""The tests of the tiny package. {REST} tests"""',
    "tinypack/_vendor/other.py": f'"""Another package that is copied. {REST} copied"""',
    "tinypack/data.txt": f'"""Not a module but some text. {REST} data"""',
}
NAMES = ["__init__", "_core.Box", "_core.Box.open", "_core.wait"]
HUNG = ["docs.tinypack.total", "docs.tinypack.Box.weight", "docs.tinypack.mean"]


def install(folder: Path, version: str = "1.0", *, listed: bool = True) -> None:
    """The package as pip would leave it."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    about = folder / f"tinypack-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tinypack\nVersion: {version}\n")
    if listed:
        names = ["../../bin/tinypack.py", *reversed(FILES)]
        (about / "RECORD").write_text("".join(f"{name},,\n" for name in names))


@pytest.fixture
def params(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PydocsParams:
    """A source of one small package, which lies in `tmp_path`, pinned to 1.0 but not installed."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(VERSIONS, "tinypack", "1.0")
    return PydocsParams(kind="pydocs", packages=["tinypack"])


def read(params: PydocsParams) -> Collection:
    return assemble("tinypack", "en", params.read())


def test_public_names_are_read_and_nothing_is_imported(
    params: PydocsParams, tmp_path: Path
) -> None:
    install(tmp_path)
    collection = read(params)
    expected = [f"tinypack/tinypack.{name}".replace(".__init__", "") for name in NAMES + HUNG]
    assert collection.passage_ids == collection.query_ids == expected
    assert collection.queries[:2] == [
        "The tiny package does next to nothing.",
        "A box holds one single thing.",
    ]
    assert collection.passages[1] == f"{REST}of a box"
    assert collection.passages[3].endswith("waited")
    assert collection.queries[4] == "Add up what is in it."
    assert collection.passages[-1].startswith(REST)
    assert set(collection.groups) == {"tinypack"}
    assert collection.dropped == {
        "entry of a single sentence": 1,
        "file that this Python cannot parse": 1,
        "query with a repeated id": 1,
        "passage with a repeated id": 1,
        "repeated judgement": 1,
    }
    assert "tinypack" not in sys.modules


def test_short_texts_are_left_out_by_the_parameters(params: PydocsParams, tmp_path: Path) -> None:
    install(tmp_path)
    strict = params.model_copy(update={"min_query_words": 7, "min_passage_words": 35})
    collection = read(strict)
    assert len(collection.queries) < len(NAMES + HUNG)
    assert collection.dropped["entry with a first sentence under 7 words"] == 6


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_left_as_it_was(
    params: PydocsParams, tmp_path: Path, enabled: bool
) -> None:
    install(tmp_path)
    before = gc.isenabled()
    try:
        gc.enable() if enabled else gc.disable()
        read(params)
        assert gc.isenabled() is enabled
    finally:
        gc.enable() if before else gc.disable()


def test_another_version_is_named_and_its_digest_is_not_checked(
    params: PydocsParams, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    install(tmp_path, "1.1")
    assert params.fingerprint()["versions"] == {"tinypack": "1.1"}
    assert params.departures() == ["tinypack 1.1 in place of 1.0"]
    dataset = DatasetParams.model_validate({
        "name": "tinypack", "language": "en", "source": params.model_dump(), "seed": 1,
        "duplicates": {"drop": False, "first_words": 100, "drop_jaccard": 1, "join_jaccard": 1},
        "splits": {
            "validation": 1, "test": 1, "tuning": 1, "generator": 2, "held_out": 0, "train": 1,
        },
        "evaluation": {"negatives": 1, "sets": {"test": {"pairs": 1, "passages": 2}}},
        "expected": {"pairs": 99},
    })  # fmt: skip
    store = Store(tmp_path_factory.mktemp("store"))
    assert prepare(store, dataset).collection.counts["pairs"] == 7
    (tmp_path / "tinypack-1.1.dist-info").rename(tmp_path / "tinypack-1.0.dist-info")
    metadata = tmp_path / "tinypack-1.0.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("1.1", "1.0"))
    with pytest.raises(UserError, match="its pairs is 7, 99 was expected"):
        prepare(store, dataset)


def test_the_local_part_of_a_version_does_not_matter(params: PydocsParams, tmp_path: Path) -> None:
    install(tmp_path, "1.0+cpu")
    assert params.departures() == []
    assert public("2.13.0+cu130") == "2.13.0"


def test_a_missing_package_is_refused_with_the_remedy(params: PydocsParams) -> None:
    for use in (params.fingerprint, params.read, params.departures):
        with pytest.raises(UserError, match="needs the package tinypack") as caught:
            list(use().queries) if use == params.read else use()
        assert caught.value.remedy == "pip install tinypack==1.0"


def test_a_package_that_lists_no_files_is_refused(params: PydocsParams, tmp_path: Path) -> None:
    install(tmp_path, listed=False)
    with pytest.raises(UserError, match="does not list its files"):
        params.fingerprint()


@pytest.mark.parametrize(
    ("packages", "message"),
    [
        (["numpi"], "did you mean `numpy`"),
        (["numpy", "numpy"], "stands twice"),
        ([], "at least 1"),
    ],
)
def test_wrong_packages_are_refused(packages: list[str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        PydocsParams(kind="pydocs", packages=packages)


@pytest.mark.parametrize("source", ["def (:", "x = '\0'", b"\xff"])
def test_what_is_no_python_raises_what_the_reader_expects(source: str | bytes) -> None:
    with pytest.raises((SyntaxError, ValueError)):
        list(docstrings(source, "module"))


def test_the_versions_are_those_of_the_lock_file() -> None:
    lock = dict(re.findall(r"(?m)^([\w.-]+)==(\S+)$", (ROOT / "requirements.lock").read_text()))
    assert {name: lock[name] for name in VERSIONS} == VERSIONS


def test_no_package_is_pre_training_text() -> None:
    recipe = parameters.load(ROOT / "params" / "pretrain.yaml", PretrainParams)
    used = {source.package.lower().replace("-", "_") for source in recipe.text.sources}
    assert used
    assert not used & set(VERSIONS)


@pytest.mark.parametrize("name", ["pydocs", "pydocs-numeric", "pydocs-learning"])
def test_the_dataset_files_state_every_default(name: str) -> None:
    stated = load_dataset_params(name).model_dump(exclude_unset=True)
    for part in ("source", "duplicates", "splits", "evaluation"):
        kind = PydocsParams if part == "source" else DatasetParams.model_fields[part].annotation
        assert set(stated[part]) == set(kind.model_fields) - {
            "official"
        }  # there is no official split
    assert set(stated["expected"]) == {"pairs", "digest"}


def test_the_two_groups_are_disjoint_and_make_up_the_whole() -> None:
    whole, numeric, learning = (
        load_dataset_params(name).source.packages
        for name in ("pydocs", "pydocs-numeric", "pydocs-learning")
    )
    assert sorted(numeric + learning) == sorted(whole) == sorted(VERSIONS)


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """The whole of pydocs, prepared from the installed packages."""
    found = load_dataset_params("pydocs")
    departures = found.source.departures()
    if departures:
        pytest.skip(f"not the packages of the lock file: {', '.join(departures)}")
    return prepare(Store(tmp_path_factory.mktemp("pydocs")), found)


@pytest.mark.slow
def test_counts_and_digest_are_the_stated_constants(embedded: Dataset) -> None:
    assert embedded.collection.digest == embedded.params.expected.digest
    assert embedded.collection.counts["pairs"] == embedded.params.expected.pairs
    assert set(embedded.collection.groups) == set(VERSIONS)
    assert embedded.splits.counts == {
        "validation": 600,
        "test": 1000,
        "tuning": 600,
        "generator": 600,
        "held_out": 1477,
        "train": 7626,
        "pool": 7626,
        "reserve": 600,
        "unused": 4,
    }
    assert len(embedded.splits.held_out_groups) == 12
    assert embedded.digests["splits"][:12] == "e55f00137f69"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("index", "identifier", "query", "passage"),
    [
        (
            0,
            "contourpy/contourpy.contour_generator",
            "Create and return a .ContourGenerator object.",
            "The class and properties of the returned .ContourGenerator are determined by ",
        ),
        (
            5953,
            "statsmodels/statsmodels.tools.validation.validation.array_like",
            "Convert array-like to a ndarray and check conditions",
            "Convert a list or pandas series to an array Squeezes singleton dimensions when ",
        ),
        (
            -1,
            "transformers/transformers.vision_utils.get_vision_merged_shape",
            "Get post-window-merge (merged_h, merged_w) Python ints, or pop from kwargs if "
            "precomputed.",
            ".view() needs Python ints, but target_sizes.item() is non-traceable. Callers must ",
        ),
    ],
)
def test_first_middle_and_last_record(
    embedded: Dataset, index: int, identifier: str, query: str, passage: str
) -> None:
    collection = embedded.collection
    assert collection.passage_ids[index] == identifier
    assert collection.queries[index] == query
    assert collection.passages[index].startswith(passage)
    assert collection.groups[index] == identifier.split("/")[0]


@pytest.mark.slow
def test_no_mark_up_is_left_in_most_texts(embedded: Dataset) -> None:
    texts = [*embedded.collection.queries, *embedded.collection.passages]
    for mark in (">>> ", "\n", "`", "----", ".. code", ":param "):
        assert sum(mark in text for text in texts) < 0.002 * len(texts), mark
