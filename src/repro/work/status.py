"""How a store stands: what is done, running where, waiting, failed and why, and the time left.

It lists folders and reads leases, records of failures and plans: no result is opened.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from repro import lease
from repro.files import read_json
from repro.progress import clock
from repro.store import VERSIONS, Store
from repro.work import batches
from repro.work.plans import Place, Plan, makespan
from repro.work.queue import MAX_ATTEMPTS


def status(store: Store, plans: list[Plan]) -> dict[str, Any]:
    """Plain data, ready for JSON: the store as a whole, and a line for each study."""
    labels = {place: each.label for plan in plans for place, each in plan.asked.items()}
    done = {kind: set(store.keys(kind)) for kind in VERSIONS}
    running = [each for kind in VERSIONS for each in _running(store, kind, labels)]
    held = {(each["kind"], each["key"]): each for each in running if each["alive"]}
    failed = [
        each
        for kind in VERSIONS
        for each in _failed(store, kind)
        if each["key"] not in done[kind] and (kind, each["key"]) not in held
    ]
    jobs = batches.find_all(store)
    places = {(each["kind"], each["key"]) for each in [*running, *failed]}
    printed = batches.logs(jobs, places)
    for each in [*running, *failed]:
        each["logs"] = [str(path) for path in printed.get((each["kind"], each["key"]), [])]
    return {
        "store": str(store.root),
        "done": {kind: len(keys) for kind, keys in done.items() if keys},
        "running": running,
        "failed": failed,
        "interrupted": [
            {"kind": kind, "key": key, "label": labels.get((kind, key), "")}
            for kind in VERSIONS
            for key in sorted({path.name.partition(".")[0] for path in store.unfinished(kind)})
            if (kind, key) not in held and key not in done[kind]
        ],
        "set_aside": [
            str(path)
            for kind in VERSIONS
            for path in sorted((store.root / kind / ".aside").glob("*"))
        ],
        "batches": len(jobs),
        "converted": len(list((store.root / "converted").glob("[!.]*"))),
        "studies": [_study(plan, done, held, failed) for plan in plans],
    }


def goes_on(found: dict[str, Any]) -> bool:
    """Whether a run goes on, or waits for a worker."""
    running = any(each["alive"] for each in found["running"])
    return running or any(each["running"] or each["waiting"] for each in found["studies"])


def as_text(found: dict[str, Any]) -> str:
    """The status for people."""
    counts = ", ".join(f"{n:,} {kind}" for kind, n in found["done"].items())
    lines = [f"store {found['store']}", f"  done         {counts or 'nothing yet'}"]
    for each in found["running"]:
        since = "" if each["since"] is None else f", since {each['since']}"
        what = each["label"] or f"{each['kind']}/{each['key']}"
        lines.append(
            f"  {'running' if each['alive'] else 'silent':12} {what}: {each['host']}, process "
            f"{each['pid']}{since}, heard of {clock(each['silent_seconds'])} ago"
            + ("" if each["alive"] else "; taken over when another worker has watched it")
        )
        lines += _logs(each)
    for each in found["failed"]:
        lines.append(f"  failed       {each['label']}: {each['reason']} (see {each['record']})")
        lines += _logs(each)
    for each in found["interrupted"]:
        what = each["label"] or f"{each['kind']}/{each['key']}"
        lines.append(f"  interrupted  {what}: the next sweep that asks for it goes on from there")
    for path in found["set_aside"]:
        lines.append(f"  set aside    {path}")
    beside = {"batches": "batches of cluster jobs", "converted": "models converted to safetensors"}
    if counted := [f"{found[name]:,} {what}" for name, what in beside.items() if found[name]]:
        lines.append(f"  beside       {', '.join(counted)}")
    for each in found["studies"]:
        left = each["seconds_left"]
        more = f", {each['later']} more to become known" if each["later"] else ""
        lines.append(
            f"  {each['study']}: {each['done']} of {each['asked']} done, {each['running']} running, "
            f"{each['waiting']} waiting, {each['failed']} failed{more}"
            + (f"; about {clock(left)} left on {each['workers']} workers" if left else "")
        )
    if not found["studies"]:
        lines.append(
            "  no study has a plan here yet: a sweep keeps one, and so does repro store status PROFILE"
        )
    return "\n".join(lines)


def _logs(each: dict[str, Any]) -> list[str]:
    """Where the last job that held a result prints, and its errors."""
    return [f"               log {path}" for path in each["logs"][-2:]]


def _study(
    plan: Plan,
    done: dict[str, set[str]],
    held: dict[Place, dict[str, Any]],
    failed: list[dict[str, Any]],
) -> dict[str, Any]:
    """How far a study is; its failures include what needs a failed result."""
    missing = {place: each for place, each in plan.asked.items() if place[1] not in done[place[0]]}
    lost = {(each["kind"], each["key"]) for each in failed} & missing.keys()
    lost |= {place for place, each in missing.items() if each.after in lost}
    running = missing.keys() & held.keys()
    waiting = missing.keys() - running - lost
    seconds = [missing[place].seconds for place in waiting]
    for place in running:
        since = held[place]["running_seconds"]
        seconds.append(max(0.0, missing[place].seconds - since))
    stages = [seconds, list(plan.later_seconds)]
    return {
        "study": plan.study,
        "asked": len(plan.asked),
        "done": len(plan.asked) - len(missing),
        "running": len(running),
        "waiting": len(waiting),
        "failed": len(lost),
        "later": len(plan.later_seconds),
        "workers": plan.workers,
        "seconds_left": sum(makespan(stage, plan.workers) for stage in stages),
        "missing": [
            {
                "kind": place[0],
                "key": place[1],
                "label": each.label,
                "state": "running"
                if place in running
                else "failed"
                if place in lost
                else "waiting",
            }
            for place, each in missing.items()
        ],
    }


def _running(store: Store, kind: str, labels: dict[Place, str]) -> list[dict[str, Any]]:
    """Who holds a lease on a result of this kind; the dead of this host are left out."""
    folder = store.root / kind / ".lease"
    paths = sorted(folder.glob("[!.]*"))
    now = lease.clock(folder) if paths else 0.0
    found = []
    for path in paths:
        holder = lease.look(path, now)
        if holder is None or (holder.here and not holder.alive):
            continue
        since = holder.since
        found.append({
            "kind": kind,
            "key": path.name,
            "label": labels.get((kind, path.name), ""),
            "host": holder.host,
            "pid": holder.pid,
            "since": None if since is None else _utc(since),
            "running_seconds": 0.0 if since is None else max(0.0, time.time() - since),
            "silent_seconds": round(holder.silent_seconds, 1),
            "alive": holder.alive,
        })  # fmt: skip
    return found


def _failed(store: Store, kind: str) -> list[dict[str, Any]]:
    """The records of what was given up."""
    found = []
    for path in sorted((store.root / kind / ".failed").glob("[!.]*.json")):
        try:
            record = read_json(path)
            label, attempts = str(record.get("label") or path.stem), int(record.get("attempts", 0))
            error = str(record.get("error") or "")
        except (OSError, ValueError, AttributeError, TypeError, OverflowError):
            label, attempts, error = path.stem, 0, "its record cannot be read"
        if error or attempts >= MAX_ATTEMPTS:
            reason = error.splitlines()[0] if error else f"the worker died {attempts} times"
            found.append(_failure(kind, path, label, reason, attempts))
    return found


def _failure(kind: str, path: Path, label: str, reason: str, attempts: int) -> dict[str, Any]:
    return {
        "kind": kind,
        "key": path.stem,
        "label": label,
        "reason": reason,
        "attempts": attempts,
        "record": str(path),
    }


def _utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
