"""What a machine must have: every line one thing, found or with its remedy.

Knows the standard library only, so that it can run before anything is installed:
``python3.11 jobs/epsjoin/commands/doctor.py``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

PROJECT = Path(__file__).resolve().parents[3]
PYTHON = (3, 11)
JAVA = 17
LEAST_FREE = 2 * 10**9
"""Bytes that the disk must have for tables, and for what Spark writes while it works."""

BESIDE_JVM = 10**9
"""Bytes of memory for the Python workers of a job, beside its JVM."""

TIMEOUT = 60.0
"""Seconds that a question to another program may take."""

CONNECTION = "AIRFLOW_CONN_SPARK_DEFAULT"
LOCAL_CONNECTION = '{"conn_type":"spark","host":"local[2]","extra":{"deploy-mode":"client"}}'


class Finding(NamedTuple):
    """One thing that was looked at.

    Parameters
    ----------
    what : its name.
    is_well : whether it is as it must be.
    text : what was found; where it is not well, the remedy too.
    """

    what: str
    is_well: bool
    text: str


def machine() -> Iterator[Finding]:
    """What must be there before ``make setup``."""
    version = ".".join(map(str, sys.version_info[:3]))
    is_right = sys.version_info[:2] == PYTHON
    yield Finding(
        "python",
        is_right,
        version + ("" if is_right else "; install Python 3.11, or say make PYTHON=<its path>"),
    )
    yield _java()
    for tool in ("bash", "sha256sum"):
        found = shutil.which(tool)
        yield Finding(tool, found is not None, found or f"{tool} is not on the PATH; install it")
    if sys.platform == "linux":
        found = shutil.which("setpriv")
        yield Finding(
            "setpriv",
            True,
            found or "not found: a killed task may leave its Spark job running (util-linux has it)",
        )


def _java() -> Finding:
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    remedy = f"install a JDK {JAVA}, and set JAVA_HOME to it where it is not on the PATH"
    if home and not Path(f"{home}/bin/java").is_file():
        return Finding("java", False, f"JAVA_HOME is {home}, which has no bin/java; {remedy}")
    if java is None:
        return Finding("java", False, f"no java on the PATH and no JAVA_HOME; {remedy}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603 - the user's own java
    match = re.search(r'version "(\d+)', said.stderr + said.stdout)
    if match is None:
        return Finding("java", False, f"{java} -version does not say a version; {remedy}")
    if int(match[1]) < JAVA:
        return Finding("java", False, f"{java} is Java {match[1]}; {remedy}")
    modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=False)  # noqa: S603 - as above
    if "jdk.incubator.vector" not in modules.stdout:
        return Finding(
            "java", False, f"{java} lacks the module jdk.incubator.vector, which Spark loads; {remedy}"
        )
    return Finding("java", True, f"Java {match[1]} ({java})")


def environments() -> Iterator[Finding]:
    """What ``make setup`` makes: both environments at the versions of their lock files, and the jars."""
    for folder, lock in ((".venv", "jobs.txt"), (".venv-airflow", "airflow.txt")):
        wanted = _pinned(PROJECT / "requirements" / lock)
        found = _installed(PROJECT / folder)
        wrong = sorted(name for name, version in wanted.items() if found.get(name) != version)
        if not found:
            yield Finding(folder, False, "missing; run make setup")
        elif wrong:
            name = wrong[0]
            text = (
                f"{name} is {found.get(name, 'missing')}, {lock} wants {wanted[name]} ({len(wrong)} differ)"
            )
            yield Finding(folder, False, f"{text}; run make setup")
        else:
            yield Finding(folder, True, f"{len(wanted)} packages as in {lock}")
    yield _jars()


def _jars() -> Finding:
    folder = PROJECT / ".cache" / "jars"
    sums = [line.split() for line in (PROJECT / "conf" / "delta-jars.sha256").read_text().splitlines()]
    for digest, name in sums:
        jar = folder / name
        if not jar.is_file():
            return Finding("delta jars", False, f"{name} is missing; run make setup")
        if hashlib.sha256(jar.read_bytes()).hexdigest() != digest:
            return Finding(
                "delta jars", False, f"{name} is not the file it should be; delete it and run make setup"
            )
    return Finding("delta jars", True, f"{len(sums)} jars, checksums right")


def connection() -> Iterator[Finding]:
    """Airflow's connection ``spark_default``, where there is an Airflow; its values are never shown."""
    airflow = Path(os.environ.get("AIRFLOW_VENV", PROJECT / ".venv-airflow")) / "bin" / "airflow"
    if not airflow.is_file():
        return
    settings = (PROJECT / "conf" / "airflow.env").read_text()
    given = re.search(rf"^{CONNECTION}=(.*)$", settings, re.MULTILINE)
    text = os.environ.get(CONNECTION) or (given[1] if given else "")
    fault = _fault_of_connection(text) if text else _ask_airflow()
    remedy = f"; for one machine: {CONNECTION}='{LOCAL_CONNECTION}'"
    yield Finding("spark_default", fault is None, f"{fault}{remedy}" if fault else "Spark, in client mode")


def _fault_of_connection(text: str) -> str | None:
    """What is wrong with a connection as Airflow writes it: a JSON object, or a URI."""
    if text.lstrip().startswith("{"):
        try:
            body = json.loads(text)
            extra = body.get("extra") or {}
            extra = json.loads(extra) if isinstance(extra, str) else extra
        except ValueError:
            return f"{CONNECTION} begins as JSON, but is none"
        return _fault_of_kind(body.get("conn_type"), extra)
    url = urlsplit(text)
    return _fault_of_kind(url.scheme, {name: values[-1] for name, values in parse_qs(url.query).items()})


def _fault_of_kind(kind: object, extra: Any) -> str | None:
    if kind != "spark":
        return f"the connection spark_default is of type {kind!r}, it must be 'spark'"
    if not isinstance(extra, dict) or extra.get("deploy-mode", "client") != "client":
        return "the connection spark_default asks for deploy-mode cluster; exit code and metrics need client"
    return None


def _ask_airflow() -> str | None:
    command = [str(PROJECT / "bin" / "airflow"), "connections", "get", "spark_default", "--output", "json"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT)  # noqa: S603 - the project's own script
    except subprocess.TimeoutExpired:
        return f"Airflow did not say within {TIMEOUT:g} s whether the connection spark_default is there"
    if asked.returncode:
        return "the connection spark_default is missing"
    found = re.search(r"^\[\s*\{.*\]", asked.stdout, re.MULTILINE | re.DOTALL)
    try:
        body = json.loads(found[0])[0] if found else {}
    except ValueError:
        return "Airflow's answer about the connection spark_default is not JSON"
    return _fault_of_kind(body.get("conn_type"), body.get("extra_dejson") or {})


def resources(lake: str) -> Iterator[Finding]:
    """Room on the disks, and memory; a remote lake's room cannot be seen."""
    folders = {"disk of the lake": _local_folder(lake)}
    spark = os.environ.get("SPARK_LOCAL_DIRS") or tempfile.gettempdir()
    folders |= {"disk of Spark": Path(spark.split(",")[0])}
    for what, folder in folders.items():
        if folder is None:
            continue
        there = next(parent for parent in (folder, *folder.parents) if parent.exists())
        free = shutil.disk_usage(there).free
        text = f"{free / 1e9:.1f} GB free at {folder}"
        remedy = f"; jobs need {LEAST_FREE / 1e9:g} GB, make room" + (
            "" if what == "disk of the lake" else ", or set SPARK_LOCAL_DIRS"
        )
        yield Finding(what, free >= LEAST_FREE, text if free >= LEAST_FREE else text + remedy)
    yield from _memory()


def _memory() -> Iterator[Finding]:
    profile = PROJECT / "conf" / f"{os.environ.get('EPSJOIN_PROFILE') or 'small'}.conf"
    if not profile.is_file():
        yield Finding("memory", False, f"EPSJOIN_PROFILE must be small or large, not {profile.stem!r}")
        return
    jvm = re.search(r"^spark\.driver\.memory\s+(\d+)g", profile.read_text(), re.MULTILINE)
    needed = (int(jvm[1]) << 30 if jvm else 0) + BESIDE_JVM
    facts = Path("/proc/meminfo")
    available = re.search(r"^MemAvailable:\s+(\d+) kB", facts.read_text() if facts.is_file() else "", re.M)
    if available is None:
        return  # not Linux
    free = int(available[1]) * 1024
    text = f"{free / 1e9:.1f} GB available"
    remedy = f"; a job of the profile {profile.stem} takes {needed / 1e9:.1f} GB: end other programs"
    yield Finding("memory", free >= needed, text if free >= needed else text + remedy)


def _local_folder(lake: str) -> Path | None:
    url = urlsplit(lake)
    return Path(unquote(url.path)) if url.scheme in ("", "file") else None


def lake_rights(lake: str) -> Iterator[Finding]:
    """Whether files and tables can be written and deleted in the lake, by trying it."""
    python = Path(os.environ.get("SPARK_JOB_VENV", PROJECT / ".venv")) / "bin" / "python"
    if not python.is_file():
        yield Finding("lake", False, f"not tried, there is no {python}; run make setup")
        return
    environment = os.environ | {"PYTHONPATH": str(PROJECT / "jobs")}
    command = [str(python), "-m", "epsjoin.lake.probe", lake]
    try:
        tried = subprocess.run(  # noqa: S603 - the project's own Python
            command, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        yield Finding("lake", False, f"{lake} did not answer within {TIMEOUT:g} s; is its address right?")
        return
    is_well = tried.returncode == 0
    said = (tried.stdout if is_well else tried.stderr).strip().splitlines() or ["no answer"]
    remedy = "" if is_well else "; give this user the right to write there, or name another --lake"
    yield Finding("lake", is_well, said[-1] + remedy)


def _pinned(lock: Path) -> dict[str, str]:
    pins = re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\\n]+)([^\n]*)", lock.read_text(), re.MULTILINE)
    return {_normal(name): version for name, version, marker in pins if ";" not in marker}


def _installed(venv: Path) -> dict[str, str]:
    found = {}
    for folder in venv.glob("lib/python3*/site-packages/*.dist-info"):
        name, _, version = folder.name.removesuffix(".dist-info").partition("-")
        found[_normal(name)] = version
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main(argv: Sequence[str] | None = None) -> int:
    """Print every finding; exit code 1 if one is not well."""
    parser = argparse.ArgumentParser(prog="epsjoin doctor", description="Look for what epsjoin needs.")
    parser.add_argument("--machine", action="store_true", help="only what must be there before make setup")
    parser.add_argument(
        "--lake",
        default=os.environ.get("EPSJOIN_LAKE"),
        help="also try to write there: a URI or an absolute path (default: EPSJOIN_LAKE, if set)",
    )
    parser.add_argument("--quiet", action="store_true", help="only what is not well")
    arguments = parser.parse_args(argv)
    findings = list(machine())
    if not arguments.machine:
        findings += [*environments(), *connection(), *resources(arguments.lake or str(PROJECT / "lake"))]
        findings += lake_rights(arguments.lake) if arguments.lake else ()
    for finding in findings:
        if not finding.is_well or not arguments.quiet:
            print(f"{'ok   ' if finding.is_well else 'WRONG'} {finding.what}: {finding.text}")
    return 0 if all(finding.is_well for finding in findings) else 1


if __name__ == "__main__":
    raise SystemExit(main())
