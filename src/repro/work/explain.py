"""Why a result exists: who asks for it, what it shares, what it was made from, what would make it stale."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from repro import lease
from repro.errors import UserError
from repro.files import read_json
from repro.provenance import digests_in, flat, seeds_in
from repro.store import DATA, VERSIONS, Store, check
from repro.work.plans import Place, Plan


def resolve(store: Store, name: str, plans: list[Plan]) -> Place:
    """The result that `KEY`, `KIND/KEY` or a unique beginning of it means; raises `UserError`."""
    kind, _, start = name.rpartition("/")
    known = {(each, key) for each in VERSIONS for key in store.keys(each)}
    known |= {place for plan in plans for place in plan.asked}
    found = sorted(
        place for place in known if place[1].startswith(start) and kind in ("", place[0])
    )
    if start and len(found) == 1:
        return found[0]
    where = str(store.root)
    if not start or not found:
        raise UserError(
            f"no result, stored or planned, has a key that starts with `{name}`",
            where=where,
            remedy="the keys are the names of the folders there, and in `repro store status --json`",
        )
    few = ", ".join("/".join(place) for place in found[:4])
    raise UserError(
        f"`{name}` is the beginning of {len(found)} keys: {few}{' ...' if len(found) > 4 else ''}",
        where=where,
        remedy="write more of it",
    )


def explain(store: Store, place: Place, plans: list[Plan]) -> dict[str, Any]:
    """Plain data, ready for JSON."""
    kind, key = place
    folder = store.path(kind, key)
    asked = {
        plan.study: list(plan.asked[place].experiments) if place in plan.asked else ["data"]
        for plan in plans
        if place in plan.asked or place in plan.reads
    }
    labels = [plan.asked[place].label for plan in plans if place in plan.asked]
    about = _json(folder / "spec.json")
    made = _json(folder / "provenance.json")
    spec = about.get("spec", {})
    return {
        "kind": kind,
        "key": key,
        "label": made.get("label") or (labels[0] if labels else ""),
        "state": _state(store, place),
        "asked_by": asked,
        "rests_on": {name: _named(store, value) for name, value in digests_in(spec).items()},
        "seeds": seeds_in(spec),
        "used_by": ["/".join(user) for user in _users(store, place)],
        "made": {name: value for name, value in made.items() if name not in ("inputs", "label")},
        "result_version": about.get("version", VERSIONS[kind]),
        "result_version_now": VERSIONS[kind],
        "spec": spec,
    }


def as_text(found: dict[str, Any]) -> str:
    """The explanation for people."""
    lines = [f"{found['kind']}/{found['key']}  {found['label']}", f"  state       {found['state']}"]
    asked = found["asked_by"]
    for study, experiments in asked.items():
        lines.append(f"  asked for   by {study}: {', '.join(experiments)}")
    if not asked:
        lines.append("  asked for   by no study with a plan (repro store status PROFILE makes one)")
    sharers = sum(len(experiments) for experiments in asked.values())
    if sharers > 1:
        lines.append(f"  shared      by {sharers} experiments of {len(asked)} studies")
    for name, what in found["rests_on"].items():
        lines.append(f"  rests on    {name} {what}")
    used = found["used_by"]
    if used:
        more = f" and {len(used) - 4} more" if len(used) > 4 else ""
        lines.append(f"  used by     {', '.join(used[:4])}{more}")
    lines += _made(found["made"]) if found["made"] else []
    seeds = ", ".join(f"{name} {seed}" for name, seed in found["seeds"].items())
    lines.append(f"  seeds       {seeds or 'none of its own'}")
    for name, value in flat(found["spec"]):
        lines.append(f"  spec        {name} = {json.dumps(value)}")
    return "\n".join([*lines, *_stale(found)])


def _state(store: Store, place: Place) -> str:
    kind, key = place
    if store.has(kind, key):
        fault = check(store.path(kind, key))
        return f"damaged: {fault}" if fault else "finished, and its files match their digests"
    folder = store.root / kind / ".lease"
    holder = lease.look(folder / key, lease.clock(folder)) if (folder / key).exists() else None
    if holder is not None and holder.alive:
        return f"running on {holder.host}, process {holder.pid}"
    failed = _json(store.root / kind / ".failed" / f"{key}.json")
    if failed:
        reason = str(failed.get("error") or f"the worker died {failed.get('attempts')} times")
        return f"failed: {reason.splitlines()[0]}"
    begun = any(path.name.partition(".")[0] == key for path in store.unfinished(kind))
    return "interrupted, to be gone on with" if begun else "not made yet"


def _made(made: dict[str, Any]) -> list[str]:
    changed = str(made.get("dirty_digest") or "of unknown digest")[:12]
    dirty = f"with uncommitted changes {changed}" if made.get("dirty") else "clean"
    packages = ", ".join(f"{name} {version}" for name, version in made.get("packages", {}).items())
    code = f", code {made['code'][:12]}" if made.get("code") else ""
    return [
        f"  made        {made.get('started')} in {made.get('seconds')} s",
        f"  code        commit {str(made.get('commit'))[:12]}, {dirty}{code}",
        f"  packages    python {made.get('python')}, {packages}",
        f"  device      {made.get('device', 'not recorded')}; "
        f"{made.get('processor') or 'processor not recorded'}, {made.get('machine')}, "
        f"{made.get('cores')} cores, threads: {made.get('threads')}",
    ]


def _stale(found: dict[str, Any]) -> list[str]:
    """What would make the result stale, and whether it is."""
    kind, now = found["kind"], found["result_version_now"]
    lines = []
    if found["result_version"] != now:
        lines.append(
            f"  STALE       it has result version {found['result_version']}; this code makes {now}"
        )
    return [
        *lines,
        f"  stale when  the result version of `{kind}` is raised ({now} now: the code's numbers have "
        "changed on purpose), or any line of `spec` above is another",
        "  not when    comments, descriptions, workers, device, versions of packages or a refactoring "
        "change",
    ]


def _named(store: Store, value: str) -> str:
    """The digest or key, with the stored result that it is."""
    for kind in VERSIONS:
        if store.has(kind, value):
            return f"{kind}/{value}"
    for kind, key in _holders(store, value):
        return f"{value[:12]} ({kind}/{key})"
    return value[:12]


def _holders(store: Store, value: str) -> Iterator[Place]:
    """The stored data whose content has that digest."""
    for kind in DATA:
        for key in store.keys(kind):
            for path in store.path(kind, key).rglob("*.json"):
                if _json(path).get("digest") == value:
                    yield kind, key


def _users(store: Store, place: Place) -> Iterator[Place]:
    """The stored results whose spec names this one, by its key or by the digest of its content."""
    content = {_json(path).get("digest") for path in store.path(*place).rglob("*.json")}
    names = (content | {place[1]}) - {None}
    for kind in VERSIONS:
        for key in store.keys(kind):
            spec = _json(store.path(kind, key) / "spec.json").get("spec", {})
            if any(isinstance(value, str) and value in names for _, value in flat(spec)):
                yield kind, key


def _json(path: Path) -> dict[str, Any]:
    try:
        found = read_json(path)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
