"""Pins: a hub id is found in the local mirror, at its revision; only what is read is downloaded; what
cannot be had says what to download, and where to put it."""

from __future__ import annotations

import shutil
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import httpx2
import pytest
import torch

from families import write_family
from repro import hub
from repro.errors import UserError
from repro.model import files, pretrained

TINY = "google/bert_uncased_L-2_H-128_A-2"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPRO_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(hub.MIRROR, raising=False)


def pickle_of(folder: Path) -> None:
    from safetensors.torch import load_file

    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def test_the_mirror_stands_for_the_hub_pickles_and_revisions_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = tmp_path / "mirror"
    pickle_of(write_family(mirror / TINY, "bert"))
    write_family(mirror / f"{TINY}@v2", "bert-relu")
    monkeypatch.setenv(hub.MIRROR, str(mirror))
    plain, pinned = pretrained.load(TINY), pretrained.load(f"{TINY}@v2")
    assert (plain.config.hidden_act, pinned.config.hidden_act) == ("gelu", "relu")
    assert plain.digest != pinned.digest
    assert plain.weights_folder != plain.folder
    assert not list((mirror / TINY).glob("*.safetensors"))
    pretrained.backbone(plain)
    with pytest.raises(UserError, match="the mirror of the hub has no `org/other`"):
        pretrained.load("org/other")


class Snapshots:
    """Stands for huggingface_hub.snapshot_download: copies what is asked for out of a folder."""

    def __init__(self, source: Path, place: Path) -> None:
        self.source, self.place = source, place
        self.asked: list[tuple[str, str | None]] = []

    def __call__(self, name: str, *, revision: str | None = None, allow_patterns: list[str]) -> str:
        self.asked.append((name, revision))
        self.place.mkdir(exist_ok=True)
        for path in self.source.iterdir():
            if any(fnmatch(path.name, pattern) for pattern in allow_patterns):
                shutil.copy(path, self.place)
        return str(self.place)


def fake(monkeypatch: pytest.MonkeyPatch, call: Any) -> None:
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "snapshot_download", call)


@pytest.mark.parametrize("pickled", [False, True])
def test_only_what_is_read_is_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pickled: bool
) -> None:
    source = write_family(tmp_path / "source", "modernbert")
    if pickled:
        pickle_of(source)
    else:
        (source / "pytorch_model.bin").write_bytes(b"large")
    for name in ("tf_model.h5", "training_args.bin", "flax_model.msgpack", "README.md"):
        (source / name).write_bytes(b"large")
    (source / "chat_template.jinja").write_text("{{ messages }}")
    snapshots = Snapshots(source, tmp_path / "cache")
    fake(monkeypatch, snapshots)
    found = pretrained.load("org/name@abc123")
    assert set(snapshots.asked) == {("org/name", "abc123")}
    assert len(snapshots.asked) == 1 + pickled
    there = {path.name for path in (tmp_path / "cache").iterdir()}
    weights = "pytorch_model.bin" if pickled else "model.safetensors"
    assert there == {
        "config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", weights,
    }  # fmt: skip
    pretrained.backbone(found)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (OSError("no route to host"), "no route to host"),
        (httpx2.ProxyError("403 from the proxy"), "403 from the proxy"),
        (None, "none of the files that are there hold weights"),
    ],
)
def test_what_cannot_be_had_says_what_to_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception | None, says: str
) -> None:
    snapshots = Snapshots(write_family(tmp_path / "source", "bert"), tmp_path / "cache")
    (tmp_path / "source" / "model.safetensors").unlink()

    def call(*args: Any, **options: Any) -> str:
        if fault is not None:
            raise fault
        return snapshots(*args, **options)

    fake(monkeypatch, call)
    with pytest.raises(UserError, match=says) as caught:
        files.folder_of(f"{TINY}@main")
    remedy = caught.value.remedy
    assert (
        f"hf download {TINY} --revision main --local-dir models/{TINY.partition('/')[2]}" in remedy
    )
    assert "REPRO_HUB_MIRROR" in remedy
