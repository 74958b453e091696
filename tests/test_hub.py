"""Pins the door to the hub: a mirror first, else download, cache and offline, each fault with a remedy.

The network is played by a server on this machine; the client is the real one, in a process of its own,
since it reads its settings when it is imported.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_hub import LARGE, FakeHub
from repro.errors import UserError
from repro.hub import MIRROR, Repository, file_sha256, mirrored, open_folder, open_repository

CLIENT = """
import json, sys
from repro.hub import file_sha256, open_repository
from repro.errors import UserError
name, revision, *files = sys.argv[1:]
try:
    opened = open_repository(name, revision or None, "dataset")
    paths = opened.fetch(files)
    print(json.dumps({
        "commit": opened.commit, "files": opened.files,
        "texts": [path.read_text() for path in paths],
        "digests": [file_sha256(path) for path in paths],
    }))
except UserError as error:
    print(json.dumps({"what": error.what, "remedy": error.remedy}))
"""
REPOSITORY = "org/name"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[FakeHub]:
    """A hub with one repository: a card, a small file and a large one."""
    folder = tmp_path / "hub" / REPOSITORY
    (folder / "data").mkdir(parents=True)
    (folder / "README.md").write_text("# A card\n")
    (folder / "data/small.tsv").write_text("a\tb\n")
    (folder / "data/large.tsv").write_text("large\n" * LARGE)
    with FakeHub(tmp_path / "hub").serve() as served:
        yield served


def client(
    hub: FakeHub, home: Path, *arguments: str, code: str = CLIENT, **environment: str
) -> dict[str, Any]:
    """What the client gets for a repository, a revision and files."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HF_") and name != "REPRO_HUB_MIRROR"
    }
    settings = {"HF_HOME": str(home), "HF_ENDPOINT": hub.endpoint, "HF_HUB_DISABLE_XET": "1"}
    settings |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**kept, **settings, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_only_the_files_that_are_asked_for_are_downloaded_and_once(
    hub: FakeHub, tmp_path: Path
) -> None:
    found = client(hub, tmp_path / "home", REPOSITORY, "", "data/small.tsv", "data/large.tsv")
    commit = hub.commit(REPOSITORY)
    assert found["commit"] == commit
    assert found["files"] == ["README.md", "data/large.tsv", "data/small.tsv"]
    assert found["texts"] == ["a\tb\n", "large\n" * LARGE]
    names = ("data/small.tsv", "data/large.tsv")
    assert found["digests"] == [file_sha256(hub.folder / REPOSITORY / name) for name in names]
    hub.asked.clear()
    again = client(hub, tmp_path / "home", REPOSITORY, commit, "data/small.tsv", "data/large.tsv")
    assert again == found
    assert not hub.asked, "a commit does not change"


def test_a_repository_without_a_card_is_read_too(hub: FakeHub, tmp_path: Path) -> None:
    (hub.folder / REPOSITORY / "README.md").unlink()
    found = client(hub, tmp_path / "home", REPOSITORY, "", "data/small.tsv")
    assert found["files"] == ["data/large.tsv", "data/small.tsv"]
    assert found["texts"] == ["a\tb\n"]


HERE = """
import json, sys
from repro.data.sources.hub import HubParams
from repro.hub import local
table = {"files": [sys.argv[2]]}
params = HubParams.model_validate({
    "kind": "hub", "repo": sys.argv[1], "passages": table, "queries": [table],
    "judgements": {"train": table},
})
print(json.dumps({"here": params.here(), "folder": local(sys.argv[1], None, "dataset") is not None}))
"""


def test_a_dataset_is_here_when_the_files_that_are_read_are(hub: FakeHub, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert client(hub, home, REPOSITORY, "data/small.tsv", code=HERE) == {
        "here": False,
        "folder": False,
    }
    client(hub, home, REPOSITORY, "", "data/small.tsv")
    hub.asked.clear()
    for name, here in (("data/small.tsv", True), ("data/large.tsv", False), ("data/*.tsv", False)):
        assert client(hub, home, REPOSITORY, name, code=HERE) == {"here": here, "folder": True}
    assert not hub.asked, "the network is not asked"


def test_what_is_in_the_cache_is_found_offline_and_what_is_not_is_refused(
    hub: FakeHub, tmp_path: Path
) -> None:
    online = client(hub, tmp_path / "home", REPOSITORY, "", "data/small.tsv")
    hub.asked.clear()
    offline = client(hub, tmp_path / "home", REPOSITORY, "", "data/small.tsv", HF_HUB_OFFLINE="1")
    assert not hub.asked
    assert offline["texts"] == online["texts"]
    assert offline["commit"] == online["commit"]
    assert offline["files"] == online["files"], "all of the commit, not those in the cache"
    for home, name in ((tmp_path / "home", "data/large.tsv"), (tmp_path / "new", "data/small.tsv")):
        refused = client(hub, home, REPOSITORY, "", name, HF_HUB_OFFLINE="1")
        assert "cannot get `org/name` from the hub" in refused["what"]
        assert "hf download org/name --repo-type dataset" in refused["remedy"]
        assert "REPRO_HUB_MIRROR" in refused["remedy"]


def test_without_a_network_the_cache_answers(hub: FakeHub, tmp_path: Path) -> None:
    online = client(hub, tmp_path / "home", REPOSITORY, "", "data/small.tsv")
    hub.endpoint = "http://127.0.0.1:9"  # nothing listens there
    assert client(hub, tmp_path / "home", REPOSITORY, "", "data/small.tsv") == online
    refused = client(hub, tmp_path / "new", REPOSITORY, "", "data/small.tsv")
    assert "cannot get `org/name` from the hub" in refused["what"]


@pytest.mark.parametrize(
    ("name", "revision", "what", "remedy"),
    [
        ("org/nowhere", "", "there is no dataset `org/nowhere` on the hub", "check the name"),
        (REPOSITORY, "v9", "`org/name` has no revision `v9`", "datasets/org/name/commits"),
        ("org/gated", "", "`org/gated` is gated", "HF_TOKEN"),
        ("name", "", "`name` is no name of a repository", "org/name"),
    ],
)
def test_what_the_hub_refuses_is_said_with_a_remedy(
    name: str, revision: str, what: str, remedy: str, hub: FakeHub, tmp_path: Path
) -> None:
    (hub.folder / "org/gated").mkdir()
    hub.gated.add("org/gated")
    refused = client(hub, tmp_path / "home", name, revision, HF_TOKEN="hf_secret")
    assert what in refused["what"]
    assert remedy in refused["remedy"]
    assert "hf_secret" not in json.dumps(refused)


def test_a_cache_that_does_not_know_its_files_is_not_taken_for_whole(
    hub: FakeHub, tmp_path: Path
) -> None:
    client(hub, tmp_path / "home", REPOSITORY, "", "data/small.tsv")
    (tree,) = (tmp_path / "home").rglob("trees/*.json")
    tree.unlink()
    refused = client(hub, tmp_path / "home", REPOSITORY, "", HF_HUB_OFFLINE="1")
    assert "the cache does not say which files `org/name` has" in refused["what"]
    assert client(hub, tmp_path / "home", REPOSITORY, "")["files"][0] == "README.md"


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror with two revisions of one repository."""
    for name in ("name", "name@v1", "name@refs/convert/parquet"):
        folder = tmp_path / "mirror/org" / name
        folder.mkdir(parents=True)
        (folder / "file.txt").write_text(name)
    (tmp_path / "mirror/org/name/.cache").mkdir()
    (tmp_path / "mirror/org/name/.cache/note").write_text("of the client")
    monkeypatch.setenv("REPRO_HUB_MIRROR", str(tmp_path / "mirror"))
    return tmp_path / "mirror"


@pytest.mark.parametrize(
    ("revision", "folder"),
    [
        (None, "name"),
        ("v1", "name@v1"),
        ("refs/convert/parquet", "name@refs/convert/parquet"),
        ("v2", "name"),  # the only other copy there is; its digest says what it is
    ],
)
def test_a_mirror_stands_for_the_hub(revision: str | None, folder: str, mirror: Path) -> None:
    opened = open_repository("org/name", revision, "dataset")
    assert opened.files == ("file.txt",)
    assert opened.commit == ""
    (path,) = opened.fetch(["file.txt"])
    assert path.read_text() == folder
    assert mirrored("org/name", revision) == mirror / "org" / folder


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("org/nmae", "has no `org/nmae`"),
        ("../etc/passwd", "no name of a repository"),
        ("org/..", "no name of a repository"),
        ("org", "no name of a repository"),
    ],
)
def test_what_the_mirror_does_not_have_is_refused(name: str, says: str, mirror: Path) -> None:
    with pytest.raises(UserError) as caught:
        mirrored(name)
    assert says in caught.value.what


def test_a_revision_cannot_leave_the_mirror(mirror: Path) -> None:
    (mirror.parent / "outside").mkdir()
    for revision in ("/../../../outside", "../../outside"):
        with contextlib.suppress(UserError):
            assert mirrored("org/name", revision) == mirror / "org/name"


def test_without_a_mirror_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REPRO_HUB_MIRROR", raising=False)
    assert mirrored("org/name") is None


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a.txt", ["a.txt"]),
        ("*.txt", ["a.txt"]),
        ("**/*.txt", ["a.txt", "in/b.txt", "in/deep/c.txt"]),
        ("in/**", ["in/b.txt", "in/deep/c.txt"]),
        ("in/?.txt", ["in/b.txt"]),
        ("./in/*.txt", ["in/b.txt"]),
        ("A.txt", []),
        ("a+txt", []),
    ],
)
def test_a_star_stays_in_a_folder_and_two_do_not(
    pattern: str, found: list[str], tmp_path: Path
) -> None:
    for name in ("a.txt", "in/b.txt", "in/deep/c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    assert open_folder(tmp_path).matching(pattern) == found


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such folder"):
        open_folder(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "pattern", ["*a" * 30 + "b", "**/" * 30 + "x", "**a" * 30 + "b", "?" * 300]
)
def test_patterns_of_many_stars_take_no_time(pattern: str) -> None:
    names = ("a" * 250, "/".join("a" * 120))
    began = time.perf_counter()
    assert Repository("org/name", names, "dataset", None).matching(pattern) == []
    assert time.perf_counter() - began < 2


@pytest.mark.parametrize(
    "name", ["name", "a/b/c", "../name", "org/..", "org/", "org/" + "n" * 300, "org/n\0", "org/a b"]
)
def test_what_is_no_name_of_a_repository_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MIRROR, str(tmp_path))
    with pytest.raises(UserError, match="is no name of a repository"):
        open_repository(name, None, "dataset")
    for revision in ("r" * 300, "\0", "a b"):
        with pytest.raises(UserError, match="is no revision of a repository"):
            open_repository("org/name", revision, "dataset")
