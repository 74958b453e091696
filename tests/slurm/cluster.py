"""A Slurm of one node on this host: munged, slurmctld and slurmd of the test's own, without systemd.

It needs root and the Debian packages slurm-wlm and munge.  Ports, keys, sockets and folders are its
own; every daemon is ended by its process id.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "srun", "scancel", "scontrol")
START_SECONDS = 30.0

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
KillWait=5
SchedulerParameters=sched_min_interval=200000,sched_interval=2,bf_interval=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory={memory} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """Why there can be no cluster here; an empty text where there can."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    lacking = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if lacking:
        return f"{', '.join(lacking)} not found (Debian: apt-get install slurm-wlm munge)"
    return "" if os.geteuid() == 0 else "the daemons of Slurm are started as root"


def until(true: Callable[[], object], seconds: float, what: str) -> None:
    """Wait until that is true; fails after so many seconds."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.1)


class Cluster:
    """The three daemons; their clients need `environment`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("state", "spool"):
            (folder / name).mkdir(parents=True)
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        self.host = socket.gethostname().split(".")[0]
        text = CONFIGURATION.format(
            host=self.host,
            folder=folder,
            controller_port=_free_port(),
            node_port=_free_port(),
            memory=psutil.virtual_memory().total // 2**20 * 3 // 4,
        )
        (folder / "slurm.conf").write_text(text)
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}

    def start(self) -> None:
        """Start all three and wait until the node is idle."""
        munge = ["munged", "--foreground", "--force", "--key-file", f"{self.folder}/munge.key"]
        for name in ("socket", "pid", "log", "seed"):
            option = {"socket": "--socket", "pid": "--pid-file"}.get(name, f"--{name}-file")
            munge += [option, f"{self.folder}/munge.{name}"]
        self._start("munged", *munge)
        until((self.folder / "munge.socket").exists, START_SECONDS, "munged listens")
        self.start_controller()
        self._start("slurmd", "slurmd", "-D", "-f", f"{self.folder}/slurm.conf")
        until(lambda: self.run("sinfo", "-h", "-o", "%T").strip() == "idle", START_SECONDS, "idle")

    def start_controller(self) -> None:
        """Start slurmctld and wait until it answers."""
        self._start("slurmctld", "slurmctld", "-D", "-f", f"{self.folder}/slurm.conf")
        until(lambda: self.run("sinfo", "-h"), START_SECONDS, "slurmctld answers")

    def stop_controller(self) -> None:
        """End slurmctld alone."""
        _end(self.daemons.pop("slurmctld"))

    def stop(self) -> None:
        """End the jobs, then every daemon, and see that none is left."""
        if "slurmctld" in self.daemons:
            self.run("scancel", "--me")
            until(lambda: not self.run("squeue", "-h"), START_SECONDS, "no job is left")
        for name in ("slurmd", "slurmctld", "munged"):
            if name in self.daemons:
                _end(self.daemons.pop(name))
        for process in self.steps():
            process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def steps(self) -> list[psutil.Process]:
        """What slurmd started and is still there."""
        found = []
        for process in psutil.process_iter(["name"]):
            try:
                mine = process.environ().get("SLURM_CONF") == self.environment["SLURM_CONF"]
            except psutil.Error:
                continue
            if mine and (process.info["name"] or "").startswith("slurmstepd"):
                found.append(process)
        return found

    def run(self, *command: str) -> str:
        """What a client of Slurm prints; an empty text where it fails."""
        done = subprocess.run(
            command, env={**os.environ, **self.environment}, capture_output=True, text=True
        )
        return done.stdout if done.returncode == 0 else ""

    def _start(self, name: str, program: str, *arguments: str) -> None:
        path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
        with (self.folder / f"{name}.out").open("ab") as out:
            self.daemons[name] = subprocess.Popen(
                [str(shutil.which(program, path=path)), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, **self.environment, "PATH": path},
                start_new_session=True,
            )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
