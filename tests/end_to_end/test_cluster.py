"""A real cluster: a master and two workers, the same tables as on one machine, and no process left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from deltalake import DeltaTable
from tests.end_to_end.supervised import pids
from tests.ports import free_ports

from epsjoin.pipeline import jobs_of

REPO = Path(__file__).resolve().parents[2]
RUN = "2023-06-01"
TABLES = (
    *("snapshots", "quarantine", "guard", "digests", "value_counts", "points", "epsilon", "epsilon_curve"),
    *("join_plan", "replicas", "pairs", "clusters", "outliers", "quality"),
    *("changes", "cluster_flows", "cluster_names", "cluster_events"),
)
# the first run compiles the kernels that are shipped, and a machine may be busy
pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(2400)]


class Cluster(NamedTuple):
    folder: Path
    port: int

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        own = {
            name: value for name, value in os.environ.items() if not name.startswith(("EPSJOIN_", "NUMBA_"))
        }
        return own | {"EPSJOIN_CLUSTER_DIR": str(self.folder), "EPSJOIN_CLUSTER_PORT": str(self.port)}

    def say(self, word: str) -> subprocess.CompletedProcess[str]:
        # a daemon that held on to the pipe would keep this from ending
        return subprocess.run(
            [str(REPO / "bin" / "spark-cluster"), word],
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )

    def submit(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(REPO / "bin" / "spark-submit"), *arguments],
            cwd=self.folder,
            env=self.environment() | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def processes(self) -> list[str]:
        """Command lines of what runs in, or speaks of, the cluster's folder."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                command = (process / "cmdline").read_text().replace("\0", " ")
                folder = str((process / "cwd").readlink())
            except OSError:
                continue
            if str(self.folder) in folder or f"{self.folder}/" in command:
                found.append(command)
        return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), free_ports(3))
    try:
        up = cluster.say("up")
        assert up.returncode == 0, up.stderr
        yield cluster
    finally:
        cluster.say("down")
    assert cluster.processes() == []


def arguments_for(lake: Path) -> list[str]:
    return ["--lake", str(lake), "--dataset", "navaids", "--run", RUN]


def rows_of(tables: Path, table: str) -> list[str]:
    rows = DeltaTable(tables / table).to_pyarrow_table()
    return sorted(map(repr, rows.select(sorted(rows.column_names)).to_pylist()))


def counters_of(tables: Path) -> list[str]:
    """What was counted and is not the machine's."""
    rows = DeltaTable(tables / "job_metrics").to_pyarrow_table().to_pylist()
    return sorted(repr(row) for row in rows if not re.search("seconds|bytes$", row["counter"]))


def test_cluster__up_twice_is_one_cluster_and_its_secret_is_told_to_nobody(cluster: Cluster) -> None:
    before = sorted(cluster.processes())
    assert len(before) == 4, "and supervisord"
    again = cluster.say("up")
    assert again.returncode == 0, again.stderr
    assert again.stdout.splitlines()[0] == f"services: {cluster.master}, two workers", "nothing was started"
    assert sorted(cluster.processes()) == before
    assert cluster.say("status").returncode == 0

    secret = (cluster.folder / "secret.conf").read_text().split()[-1]
    assert len(secret) > 64
    for file in ("secret.conf", "spark-master.conf", "spark-worker-1.conf"):
        assert stat.S_IMODE((cluster.folder / file).stat().st_mode) == 0o600
    said = before + [log.read_text() for log in (cluster.folder / "logs").iterdir()]
    assert not any(secret in text for text in said)


def test_cluster__mends_what_has_died_and_leaves_the_rest_alone(cluster: Cluster) -> None:
    before = pids(cluster.folder)
    assert set(before) == {"spark-master", "spark-worker-1", "spark-worker-2"}
    os.kill(before["spark-worker-1"], signal.SIGKILL)  # as the kernel does when memory is short
    up = cluster.say("up")
    assert up.returncode == 0, up.stderr
    after = pids(cluster.folder)
    assert after.pop("spark-worker-1") != before.pop("spark-worker-1")
    assert after == before


def test_cluster__whose_supervisord_was_killed_begins_anew(cluster: Cluster) -> None:
    before = set(pids(cluster.folder).values())
    os.kill(int((cluster.folder / "session").read_text().split()[0]), signal.SIGKILL)
    up = cluster.say("up")
    assert up.returncode == 0, up.stderr
    after = set(pids(cluster.folder).values())
    assert len(after) == 3
    assert not before & after
    assert len(cluster.processes()) == 4, "nobody of the old ones is left"


def test_cluster__gives_the_tables_of_one_machine(
    cluster: Cluster, demo: tuple[Path, str], tmp_path: Path
) -> None:
    chain = [str(REPO / "tests" / "survival" / "several.py"), json.dumps(jobs_of("join"))]
    done = cluster.submit(*chain, *arguments_for(tmp_path / "lake"), EPSJOIN_MASTER=cluster.master)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    tables = tmp_path / "lake" / "navaids"
    one_machine, _ = demo
    for table in TABLES:
        assert rows_of(tables, table) == rows_of(one_machine, table), table
    assert counters_of(tables) == counters_of(one_machine)
    assert (tables / "reports" / f"run={RUN}" / "report.html").is_file()


@pytest.fixture(scope="module")
def application(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What ``application.py`` has found, once, since the start of driver and executors is most of it."""
    settings = {"spark.speculation": "true", "spark.speculation.interval": "100ms"}
    settings |= {"spark.speculation.quantile": "0.5", "spark.speculation.minTaskRuntime": "1s"}
    given = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    script = str(Path(__file__).with_name("application.py"))
    table = tmp_path_factory.mktemp("application") / "table"
    done = cluster.submit(*given, script, str(table), EPSJOIN_MASTER=cluster.master)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    found: dict[str, Any] = json.loads(done.stdout.split("found: ")[1].splitlines()[0])
    return found


def test_cluster__has_workers_that_see_what_was_shipped_and_compile_nothing(
    cluster: Cluster, application: dict[str, Any]
) -> None:
    """A worker sees an executor's folder, and nothing of this repository but what was shipped."""
    seen = application["seen"]
    folder = Path(seen["folder"])
    assert folder.is_relative_to(cluster.folder / "work")
    assert seen["package"] == str(folder / "shipped" / "epsjoin" / "__init__.py")
    assert not [path for path in seen["path"] if path.startswith(str(REPO)) and "site-packages" not in path]
    assert seen["settings"] == {"NUMBA_CACHE_LOCATOR_CLASSES": "InTreeCacheLocator", "OMP_NUM_THREADS": "1"}

    # both workers had work, and no kernel was compiled there
    kernels = {name for name in names_in_archive() if name.endswith((".nbi", ".nbc"))}
    assert len(kernels) > 50
    # the master may start another executor while an application ends: nothing was shipped to it
    shipped = list((cluster.folder / "work").glob("spark-worker-*/app-*/*/shipped"))
    assert {there.parts[-4] for there in shipped} == {"spark-worker-1", "spark-worker-2"}
    for there in shipped:
        assert {str(file.relative_to(there)) for file in there.rglob("*.nb[ic]")} == kernels


def test_cluster__leaves_nothing_of_failed_and_speculative_attempts_in_a_table(
    application: dict[str, Any],
) -> None:
    tried = {"fails within its file": 2, "fails after its file": 2, "is too slow": 2, "does well": 1}
    assert application["attempts"] == tried, "which attempt counts"
    rows = {"fails within its file": 1 << 22, "fails after its file": 3, "is too slow": 5, "does well": 7}
    assert application["rows"] == rows
    assert application["files in the log"] == len(rows)
    assert application["files"] == len(rows) + 2, "whole ones of the other attempts lie there, too"


def test_cluster__without_a_free_core_says_that_the_job_waits(cluster: Cluster) -> None:
    # as when another job has all cores: no worker has two
    script = Path(__file__).with_name("waiting.py")
    with subprocess.Popen(
        [REPO / "bin" / "spark-submit", "--conf", "spark.executor.cores=2", script],
        env=cluster.environment() | {"EPSJOIN_MASTER": cluster.master},
        stdout=subprocess.PIPE,  # spark-submit passes on a driver's stderr there
        stderr=subprocess.DEVNULL,
        text=True,
    ) as job:
        assert job.stdout
        try:
            said = next(line for line in job.stdout if line.startswith("  "))
        finally:
            job.kill()
    assert said == "  waits for cores: other jobs have all of the cluster's\n"


def names_in_archive() -> list[str]:
    made = max((REPO / ".cache" / "ship").glob("*.tar.gz"), key=lambda file: file.stat().st_mtime)
    with tarfile.open(made) as archive:
        return archive.getnames()


@pytest.mark.long
def test_cluster__takes_a_job_as_airflow_starts_it_with_a_packed_environment(
    cluster: Cluster, tmp_path: Path
) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexport PACKED=yes\nexec {REPO}/.venv/bin/python "$@"\n')
    python.chmod(0o755)
    with tarfile.open(tmp_path / "packed.tar.gz", "w:gz") as archive:
        archive.add(python, "bin/python")
    done = cluster.submit(
        *("--master", cluster.master, "--name", "navaids ingest", "--deploy-mode", "client"),
        *(str(REPO / "jobs" / "ingest.py"), *arguments_for(tmp_path / "lake")),
        EPSJOIN_ARCHIVES=f"{tmp_path}/packed.tar.gz#packed",
        EPSJOIN_EXECUTOR_PYTHON="./packed/bin/python",
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    assert "11,020 rows read" in done.stdout
    assert len(list((cluster.folder / "work").glob("spark-worker-*/app-*/*/packed/bin/python"))) == 2


def test_cluster__that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        cluster = Cluster(tmp_path, int(taken.getsockname()[1]))
        up = cluster.say("up")
    assert up.returncode == 1
    assert up.stderr == (
        f"services: port {cluster.port} is taken by another program; set EPSJOIN_CLUSTER_PORT to a free one\n"
    )
    assert cluster.processes() == []
    status = cluster.say("status")
    assert status.stdout == "".join(f"spark-{name}: down\n" for name in ("master", "worker-1", "worker-2"))
