"""``make kill-loop``: every round kills one process of one job at a drawn moment and runs the job again."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from epsjoin.commands.show import summarise
from epsjoin.contracts.load_source import load_source
from epsjoin.errors import TableError
from epsjoin.lake.lake import Lake, Slice
from epsjoin.lake.slices import read_counters, read_row
from epsjoin.pipeline import STAGES, writer_of
from survival import chain
from survival.processes import Started, Victim, daemon, driver, jvm, kill, task, worker, wrapper

OLD_PARAMS = {"neighbours": 6, "min_pts": 8}
OTHER_RUN = "2022-12-01"
CLUSTER = chain.REPO / "bin" / "spark-cluster"
GONE_WITHIN = 5.0
EXECUTOR = "executor's JVM"
AIRFLOW = "Airflow's task"
OF_TASKS = ("Python worker", "pyspark.daemon", EXECUTOR)
"""Victims whose death the driver survives: Spark fails the job, or tries the task again."""
VICTIMS: dict[str, Victim] = {
    "driver's Python": driver,
    "Spark's JVM": jvm,
    "Python worker": worker,
    "pyspark.daemon": daemon,
    "bin/spark-submit": wrapper,
    "its parent": task,
    AIRFLOW: task,
}


Sight = list[tuple[str, str]] | None
"""What ``epsjoin show`` says of the run, times left out; nothing if it refuses."""


class Undisturbed(NamedTuple):
    """The undisturbed runs.

    Parameters
    ----------
    lakes : where a round's chain begins: ``empty``, or ``has slices``: an earlier run's in every table, of
        which this run then is an increment, and those of this run made with other parameters.
    content : what the tables hold at the end, by lake.
    seconds : how long each job takes.
    commits : versions of tables that each job makes on an empty lake.
    with_tasks : by lake, the jobs whose tasks ran in Python workers; in any other there is none to kill.
    sights : what a reader may see: this run whole, or made with the other parameters.
    """

    lakes: dict[str, Path]
    content: dict[str, chain.Content]
    seconds: dict[str, float]
    commits: dict[str, int]
    with_tasks: dict[str, frozenset[str]]
    sights: list[Sight]


def prepare(folder: Path) -> Undisturbed:
    """Run the chain undisturbed, and make a lake that has slices already."""
    lakes = {"empty": folder / "empty", "has slices": folder / "earlier"}
    seconds, commits = {}, {}
    lakes["empty"].mkdir()
    for job in chain.JOBS:
        before = commits_in(folder / "undisturbed")
        seconds[job] = chain.timed(job, folder / "undisturbed")
        commits[job] = commits_in(folder / "undisturbed") - before
        print(f"undisturbed: {job} took {seconds[job]:.0f} s, {commits[job]} commits", flush=True)
    for run, params in ((OTHER_RUN, {}), (chain.RUN, OLD_PARAMS)):
        chain.submit_several(chain.JOBS, lakes["has slices"], run, params)
    ends = {"empty": folder / "undisturbed", "has slices": folder / "increment"}
    shutil.copytree(lakes["has slices"], ends["has slices"])
    for job in chain.JOBS:
        chain.timed(job, ends["has slices"])
    plan = read_row(lake_in(ends["has slices"]), Slice("join_plan", chain.RUN))
    assert (plan["kind"], plan["base"]) == ("increment", OTHER_RUN)
    sights = [summary(lake) for lake in (*ends.values(), lakes["has slices"])]
    assert None not in sights
    contents = {name: chain.content(lake) for name, lake in ends.items()}
    with_tasks = {name: with_workers(lake) for name, lake in ends.items()}
    return Undisturbed(lakes, contents, seconds, commits, with_tasks, sights)


def with_workers(lake: Path) -> frozenset[str]:
    """The jobs of the run that had tasks in Python workers."""
    counters = read_counters(lake_in(lake), chain.RUN)
    return frozenset(job for job, of_job in counters.items() if of_job["cpu_seconds_workers"])


def commits_in(lake: Path) -> int:
    """The versions of all tables together."""
    return sum(1 for _ in (lake / chain.DATASET).glob("*/_delta_log/*.json"))


class Round(NamedTuple):
    """What is done in one round, and what came of it.

    Parameters
    ----------
    number, job, base, victim : of the round, what is killed on which lake.
    share : of the job's time that passes before; where ``commit`` is 0.
    commit : the kill follows this commit of the job, the first is 1.
    outcome, equal : what came of it.
    """

    number: int
    job: str
    base: str
    victim: str
    share: float
    commit: int
    outcome: str = ""
    equal: bool = False


def draw(
    rng: random.Random, number: int, victims: Sequence[str], killed: Counter[str], undisturbed: Undisturbed
) -> Round:
    """Jobs and lakes take turns; the victim is drawn of those killed least so far, and its moment.

    Tables change in the last moments of a job, which drawn times hardly meet: every other round has one of
    the job's commits drawn instead.
    """
    job = chain.JOBS[number % len(chain.JOBS)]
    base = ("has slices", "empty")[number // len(chain.JOBS) % 2]
    able = [v for v in victims if v not in OF_TASKS or job in undisturbed.with_tasks[base]]
    least = min(killed[victim] for victim in able)
    victim = rng.choice([victim for victim in able if killed[victim] == least])
    share, commit = rng.random(), rng.randint(1, undisturbed.commits[job])
    return Round(number, job, base, victim, share, commit if number % 2 else 0)


def play(planned: Round, undisturbed: Undisturbed, lake: Path, master: str) -> Round:
    """Kill, look, run again, compare what the job has written; after the chain's last job, everything."""
    if planned.job == chain.JOBS[0]:
        shutil.rmtree(lake, ignore_errors=True)
        shutil.copytree(undisturbed.lakes[planned.base], lake)
    final = undisturbed.content[planned.base]
    begun, known = chain.versions(lake), chain.content(lake)

    killed, problems = strike(planned, undisturbed.seconds[planned.job], lake, master)
    sight = summary(lake)
    if sight is not None and sight not in undisturbed.sights:
        problems.append(f"a reader sees a mix: {sight}")
    half_way = chain.content(lake)
    changed = sorted({place[0] for place, rows in half_way.items() if known.get(place) != rows})

    done = chain.submit(planned.job, lake, master)
    if done.returncode:
        problems.append(f"the retry ended with {done.returncode}: {done.stdout.strip().splitlines()[-1]}")
    problems += half_slices(lake, begun, final)
    found = chain.content(lake)
    whole = planned.job == chain.JOBS[-1]
    problems += [
        f"{' '.join(place)} differs"
        for place in sorted({*final, *found})
        if (whole or is_written_by(planned.job, place)) and final.get(place) != found.get(place)
    ]
    said = f"{killed}; {', '.join(changed) or 'nothing'} changed by then"
    return planned._replace(outcome=said + "".join(f"; **{p}**" for p in problems), equal=not problems)


def is_written_by(job: str, place: tuple[str, ...]) -> bool:
    """Whether this job makes this slice."""
    table, second = place[0], place[-1]
    if table == "quality":
        return second in STAGES.get(job.removeprefix("quality_"), ())
    return job == (second if table == "job_metrics" else writer_of(table))


def strike(planned: Round, seconds: float, lake: Path, master: str) -> tuple[str, list[str]]:
    """Start the job, kill the victim at its moment or, if it is not there yet, as soon as it is.

    A job that was faster than the undisturbed one, or commits less, and had ended, is started again, to be
    killed earlier.
    """
    before = commits_in(lake)
    started = start(planned, lake, master)
    try:
        began = time.monotonic()
        victims: list[int] = []
        if planned.commit:
            victims = await_commit(planned, started, lake, before)
        else:
            time.sleep(planned.share * seconds)
        while not victims and not started.is_over():
            victims = find(planned.victim, started)
            time.sleep(0 if victims else 0.02)
        passed = time.monotonic() - began
        at = f"at {passed:.1f} s"
        was_killed = bool(victims) and kill(victims[planned.number % len(victims)])
        if was_killed and planned.victim in OF_TASKS:
            started.task.wait(timeout=300)
            at += f", the job ended with {started.task.returncode}"
        if not was_killed:
            started.task.wait(timeout=60)
        gone = started.is_gone_within(GONE_WITHIN)
        left = "; ".join(process.command[:100] for process in started.processes())
        if gone and planned.victim == EXECUTOR and executors():
            time.sleep(GONE_WITHIN)
            gone, left = not executors(), EXECUTOR
    finally:
        started.end()
    if not was_killed:
        earlier = planned._replace(commit=max(planned.commit - 1, min(1, planned.commit)))
        return strike(earlier, min(passed, 0.9 * seconds), lake, master)
    return at, [] if gone else [f"left after {GONE_WITHIN:.0f} s: {left}"]


def await_commit(planned: Round, started: Started, lake: Path, before: int) -> list[int]:
    """Wait for the commit; the victims as they were a moment before, for finding them takes longer."""
    victims: list[int] = []
    looked = 0.0
    while commits_in(lake) - before < planned.commit and not started.is_over():
        if time.monotonic() - looked > 1:
            victims = find(planned.victim, started)
            looked = time.monotonic()
        time.sleep(0.001)
    return victims


def start(planned: Round, lake: Path, master: str) -> Started:
    log = lake.with_name("killed.log")
    if planned.victim != AIRFLOW:
        return Started(chain.command(planned.job, lake, master), log)
    airflow = [str(chain.REPO / "bin" / "airflow"), "tasks", "test", chain.DATASET, planned.job, chain.RUN]
    started = Started(airflow, log, below_task=False, EPSJOIN_LAKE=lake.as_uri())
    while not started.is_over() and not wrapper(started):  # the moment counts from the submit
        time.sleep(0.05)
    return started


def find(victim: str, started: Started) -> list[int]:
    return executors() if victim == EXECUTOR else VICTIMS[victim](started)


def executors() -> list[int]:
    """The executors of this project's cluster."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes()
            if b"CoarseGrainedExecutorBackend" in words and str(chain.REPO).encode() in words:
                found.append(int(folder.name))
    return found


def half_slices(lake: Path, begun: dict[str, int], final: chain.Content) -> list[str]:
    """Versions since the round began in which a slice is neither as it was nor as it must become."""
    wrong = []
    for folder in chain.tables(lake):
        newest = chain.DeltaTable(folder).version()
        first = begun.get(folder.name, 0)
        known = chain.content_of(chain.DeltaTable(folder, version=first), folder.name)
        for version in range(first + 1, newest + 1):
            found = chain.content_of(chain.DeltaTable(folder, version=version), folder.name)
            for place, rows in found.items():
                if rows not in (known.get(place), final.get(place)):
                    wrong.append(f"{' '.join(place)} is half a slice in version {version}")
    return wrong


def summary(lake: Path) -> Sight:
    try:
        rows = list(summarise(lake_in(lake), chain.RUN))
    except TableError:
        return None
    return [row for row in rows if row[0] not in ("seconds per step", "report", "picture")]


def lake_in(folder: Path) -> Lake:
    contracts = chain.REPO / "data_contracts"
    return Lake(folder.as_uri(), contracts, load_source(contracts, chain.DATASET))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m survival", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--victim", help="only this one")
    given = parser.parse_args()
    rng = random.Random(given.seed)
    victims = [given.victim] if given.victim else [*VICTIMS, EXECUTOR]
    with tempfile.TemporaryDirectory(prefix="survival-") as scratch:
        work = Path(scratch)
        if AIRFLOW in victims:
            os.environ["AIRFLOW_HOME"] = str(work / "airflow")
            os.environ["AIRFLOW__LOGGING__LOGGING_LEVEL"] = "ERROR"
            subprocess.run([chain.REPO / "bin" / "airflow", "setup"], check=True, capture_output=True)
        with_cluster = EXECUTOR in victims and CLUSTER.exists()
        if EXECUTOR in victims and not with_cluster:
            victims.remove(EXECUTOR)
            print("an executor's JVM is not killed: there is no bin/spark-cluster here", flush=True)
        undisturbed = prepare(work)
        rounds, killed = [], Counter[str]()
        for number in range(given.rounds):
            planned = draw(rng, number, victims, killed, undisturbed)
            killed[planned.victim] += 1
            master = cluster_up() if planned.victim == EXECUTOR else "local[2]"
            try:
                done = play(planned, undisturbed, work / "lake", master)
            finally:
                if planned.victim == EXECUTOR:
                    subprocess.run([CLUSTER, "down"], check=True, capture_output=True)
            rounds.append(done)
            print(row(done), flush=True)
    equal = sum(each.equal for each in rounds)
    print(f"{equal} of {len(rounds)} rounds gave the tables of the undisturbed run")
    return 0 if equal == len(rounds) else 1


def cluster_up() -> str:
    subprocess.run([CLUSTER, "up"], check=True, capture_output=True)
    return f"spark://127.0.0.1:{os.environ.get('EPSJOIN_CLUSTER_PORT', '7077')}"


def row(done: Round) -> str:
    moment = f"commit {done.commit}" if done.commit else f"{done.share:.0%} of its time"
    return (
        f"| {done.number + 1} | {done.job} | {done.base} | {done.victim} | {moment} "
        f"| {done.outcome} | {'equal' if done.equal else '**differs**'} |"
    )


if __name__ == "__main__":
    sys.exit(main())
