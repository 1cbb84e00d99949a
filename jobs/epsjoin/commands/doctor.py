"""The command ``epsjoin doctor``: checks whether the machine has what epsjoin needs, a line for each thing.

It imports the standard library only, and runs on any Python from 3.7 on, so that it can run before anything
is installed: ``python3 jobs/epsjoin/commands/doctor.py``.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
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
"""Folder of the project; not imported, as ``epsjoin.paths`` cannot be when this file runs as a script."""

IS_INSTALLED = (Path(__file__).resolve().parents[1] / "data_contracts").is_dir()
"""Whether this is the wheel's, without a project around it."""

PYTHONS = ((3, 11), (3, 12), (3, 13))
"""Versions of Python that the lock files hold for; the Makefile looks for the newest."""

MIN_JAVA = 17
"""Lowest version of Java that Spark runs on."""

MIN_FREE_BYTES = 2 * 10**9
"""Minimum number of free bytes on the disk of the lake, and on the disk of Spark's temporary files."""

PYTHON_WORKER_BYTES = 10**9
"""Bytes of memory that the Python workers of a job need in addition to its JVM."""

MIN_OPEN_FILES = 1024
"""Lowest hard limit of open files: on two cores a job ends in a Java error with 256, with none with 384."""

TIMEOUT = 60.0
"""Seconds after which the program that asks Airflow, or the lake, is stopped."""

CONNECTION = "AIRFLOW_CONN_SPARK_DEFAULT"
LOCAL_CONNECTION = '{"conn_type":"spark","host":"local[2]","extra":{"deploy-mode":"client"}}'


class Finding(NamedTuple):
    """The result of one check.

    Parameters
    ----------
    what : name of the thing that was checked.
    is_well : whether it is as epsjoin needs it.
    text : what was found, followed by the remedy if it is not well.
    """

    what: str
    is_well: bool
    text: str


def check_machine() -> Iterator[Finding]:
    """Check what must be there before ``make setup``: Python, Java and three programs."""
    yield _check_python()
    yield _check_java()
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


def _check_python() -> Finding:
    found = "{}.{}.{}".format(*sys.version_info)
    if sys.version_info[:2] not in PYTHONS:
        names = [".".join(map(str, version)) for version in PYTHONS]
        wanted = f"{', '.join(names[:-1])} or {names[-1]}"
        return Finding("python", False, f"{found}; install Python {wanted}, or run make PYTHON=<its path>")
    if importlib.util.find_spec("ensurepip") is None:  # Debian has it in a package of its own
        package = "python{}.{}-venv".format(*sys.version_info)
        return Finding("python", False, f"{found} cannot make environments; install {package}")
    return Finding("python", True, found)


def _check_java() -> Finding:
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    remedy = f"install a JDK {MIN_JAVA}, and set JAVA_HOME to its folder if it is not on the PATH"
    if home and not Path(f"{home}/bin/java").is_file():
        return Finding("java", False, f"JAVA_HOME is {home}, which has no bin/java; {remedy}")
    if java is None:
        return Finding("java", False, f"no java on the PATH and no JAVA_HOME; {remedy}")
    try:
        answer = _run(java, "-version")
    except OSError as error:
        return Finding("java", False, f"{java} cannot be run: {error.strerror}; {remedy}")
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)  # Java 8 says 1.8
    if match is None:
        return Finding("java", False, f"{java} -version prints no version; {remedy}")
    if int(match[1]) < MIN_JAVA:
        return Finding("java", False, f"{java} is Java {match[1]}; {remedy}")
    if "jdk.incubator.vector" not in _run(java, "--list-modules").stdout:
        return Finding(
            "java", False, f"{java} lacks the module jdk.incubator.vector, which Spark loads; {remedy}"
        )
    return Finding("java", True, f"Java {match[1]} ({java})")


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def check_installation() -> Iterator[Finding]:
    """Check what the installed package needs, and say which of its extras are there."""
    from epsjoin.errors import EXTRAS  # there only where the package is installed

    yield _check_python()
    for what in ("numpy", "numba"):
        is_there = importlib.util.find_spec(what) is not None
        yield Finding(
            what, is_there, "found" if is_there else "missing; pip install --force-reinstall epsjoin"
        )
    for extra, modules in EXTRAS.items():
        missing = [module for module in modules.split() if importlib.util.find_spec(module) is None]
        text = f"{', '.join(missing)} not installed; where you need it: pip install 'epsjoin[{extra}]'"
        yield Finding(f"extra {extra}", True, text if missing else "installed")
    if importlib.util.find_spec("pyspark") is not None:
        yield _check_java()


def check_environments() -> Iterator[Finding]:
    """Check what ``make setup`` makes: both environments, at the versions of their lock files, and jars."""
    environments = (("SPARK_JOB_VENV", ".venv", "jobs.txt"), ("AIRFLOW_VENV", ".venv-airflow", "airflow.txt"))
    for variable, default, lock in environments:
        folder = os.environ.get(variable) or default
        wanted = _read_pins(PROJECT / "requirements" / lock)
        place = PROJECT / default if folder == default else Path(folder)
        found = _list_installed(place)
        wrong = sorted(name for name, versions in wanted.items() if found.get(name) not in versions)
        if not found:
            yield Finding(folder, False, "missing; run make setup")
        elif not os.access(str(place / "bin" / "python"), os.X_OK):  # as after an upgrade of the system
            text = "its bin/python leads nowhere or cannot be run; delete this folder and run make setup"
            yield Finding(folder, False, text)
        elif wrong:
            name = wrong[0]
            versions = " or ".join(sorted(filter(None, wanted[name])))
            text = f"{name} is {found.get(name, 'missing')}, {lock} has {versions}"
            yield Finding(folder, False, f"{text} ({len(wrong)} packages differ); run make setup")
        else:
            yield Finding(folder, True, f"{len(wanted.keys() & found.keys())} packages as in {lock}")
    yield _check_jars()
    yield _check_class_archive()
    own = os.environ.get("EPSJOIN_CONF")
    if own:
        text = own if Path(own).is_file() else f"it names {own}, which is no file; correct or unset it"
        yield Finding("EPSJOIN_CONF", Path(own).is_file(), text)


def _check_jars() -> Finding:
    folder = Path(os.environ.get("DELTA_JARS") or PROJECT / ".cache" / "jars")
    sums = [line.split() for line in (PROJECT / "conf" / "delta-jars.sha256").read_text().splitlines()]
    for digest, name in sums:
        jar = folder / name
        if not jar.is_file():
            return Finding("delta jars", False, f"{name} is missing; run make setup")
        if hashlib.sha256(jar.read_bytes()).hexdigest() != digest:
            return Finding(
                "delta jars", False, f"{name} has the wrong checksum; delete it and run make setup"
            )
    return Finding("delta jars", True, f"{len(sums)} jars, checksums right")


def _check_class_archive() -> Finding:
    # not needed, so nothing is wrong without it
    try:
        answer = _run(str(PROJECT / "bin" / "class-archive"), "check")
    except OSError as error:
        return Finding("class archive", True, f"not checked: {error.strerror}")
    remedy = "; jobs take longer to start without it: run bin/class-archive make" if answer.returncode else ""
    return Finding("class archive", True, (answer.stdout + answer.stderr).strip() + remedy)


def check_connection() -> Iterator[Finding]:
    """Check Airflow's connection ``spark_default`` if there is an Airflow; its values are never printed."""
    airflow = Path(os.environ.get("AIRFLOW_VENV") or PROJECT / ".venv-airflow") / "bin" / "airflow"
    if not airflow.is_file():
        return
    settings = (PROJECT / "conf" / "airflow.env").read_text()
    default = re.search(rf"^{CONNECTION}=(.*)$", settings, re.MULTILINE)
    text = os.environ.get(CONNECTION) or (default[1] if default else "")
    fault = _find_fault(text) if text else _find_fault_in_airflow()
    remedy = f"; for one machine: {CONNECTION}='{LOCAL_CONNECTION}'"
    yield Finding("spark_default", fault is None, f"{fault}{remedy}" if fault else "Spark, in client mode")


def _find_fault(text: str) -> str | None:
    """Find what is wrong with a connection in one of Airflow's two notations: a JSON object or a URI."""
    if text.lstrip().startswith("{"):
        try:
            body = json.loads(text)
            extra = body.get("extra") or {}
            extra = json.loads(extra) if isinstance(extra, str) else extra
        except ValueError:
            return f"{CONNECTION} begins like JSON, but is not valid JSON"
        return _find_fault_of(body.get("conn_type"), extra)
    try:
        url = urlsplit(text)
    except ValueError:  # as of the brackets of spark://local[2]
        return f"{CONNECTION} is no valid URI, and JSON takes any master"
    return _find_fault_of(url.scheme, {name: values[-1] for name, values in parse_qs(url.query).items()})


def _find_fault_of(kind: object, extra: Any) -> str | None:
    if kind != "spark":
        return f"the connection spark_default is of type {kind!r}, it must be 'spark'"
    if not isinstance(extra, dict) or extra.get("deploy-mode", "client") != "client":
        return "the connection spark_default asks for deploy-mode cluster; exit codes and metrics need client"
    return None


def _find_fault_in_airflow() -> str | None:
    command = [str(PROJECT / "bin" / "airflow"), "connections", "get", "spark_default", "--output", "json"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return f"Airflow did not answer within {TIMEOUT:g} s whether the connection spark_default exists"
    if answer.returncode:
        return "the connection spark_default is missing"
    found = re.search(r"^\[\s*\{.*\]", answer.stdout, re.MULTILINE | re.DOTALL)
    try:
        body = json.loads(found[0])[0] if found else {}
    except ValueError:
        return "Airflow's answer about the connection spark_default is not JSON"
    return _find_fault_of(body.get("conn_type"), body.get("extra_dejson") or {})


def check_resources(lake: str) -> Iterator[Finding]:
    """Check free space on the disks and memory; the space of a remote lake cannot be checked."""
    spark = os.environ.get("SPARK_LOCAL_DIRS") or os.environ.get("TMPDIR") or tempfile.gettempdir()
    # one of several is enough for Spark
    usable = [Path(folder) for folder in spark.split(",") if folder and _can_have_files(Path(folder))]
    if not usable:
        text = f"temporary files cannot be written to {spark}; set SPARK_LOCAL_DIRS to a folder for them"
        yield Finding("disk of Spark", False, text)
    folders = {"disk of the lake": _local_folder(lake), "disk of Spark": usable[0] if usable else None}
    for what, folder in folders.items():
        if folder is None:
            continue
        free = shutil.disk_usage(_existing_part(folder)).free
        text = f"{free / 1e9:.1f} GB free at {folder}"
        remedy = f"; jobs need {MIN_FREE_BYTES / 1e9:g} GB, make room" + (
            "" if what == "disk of the lake" else ", or set SPARK_LOCAL_DIRS"
        )
        yield Finding(what, free >= MIN_FREE_BYTES, text if free >= MIN_FREE_BYTES else text + remedy)
    yield from _check_memory()
    yield _check_open_files()


def _existing_part(folder: Path) -> Path:
    # where this user may not look, pathlib's own would raise
    return next(parent for parent in (folder, *folder.parents) if os.path.exists(parent))  # noqa: PTH110  # as above


def _can_have_files(folder: Path) -> bool:
    """Whether this user can write to a folder, or make it."""
    existing = _existing_part(folder)
    return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)


def _check_open_files() -> Finding:
    import resource  # not on Windows, where the installed command runs, too

    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]  # Java takes as many as it may
    if limit == resource.RLIM_INFINITY:
        return Finding("open files", True, "no limit")
    remedy = f"; jobs need {MIN_OPEN_FILES}: raise the hard limit (ulimit -Hn, or LimitNOFILE of a service)"
    is_enough = limit >= MIN_OPEN_FILES
    return Finding("open files", is_enough, f"{limit:,} at most{'' if is_enough else remedy}")


def _check_memory() -> Iterator[Finding]:
    profile = PROJECT / "conf" / f"{os.environ.get('EPSJOIN_PROFILE') or 'small'}.conf"
    if not profile.is_file():
        yield Finding("memory", False, f"EPSJOIN_PROFILE must be small or large, not {profile.stem!r}")
        return
    jvm = re.search(r"^spark\.driver\.memory\s+(\d+)g", profile.read_text(), re.MULTILINE)
    needed = (int(jvm[1]) << 30 if jvm else 0) + PYTHON_WORKER_BYTES
    meminfo = Path("/proc/meminfo")
    text = meminfo.read_text() if meminfo.is_file() else ""
    available = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    if available is None:
        return  # not Linux
    free = int(available[1]) * 1024
    text = f"{free / 1e9:.1f} GB available"
    remedy = f"; a job of the profile {profile.stem} needs {needed / 1e9:.1f} GB: end other programs"
    yield Finding("memory", free >= needed, text if free >= needed else text + remedy)


def _local_folder(lake: str) -> Path | None:
    url = urlsplit(lake)
    return Path(unquote(url.path)) if url.scheme in ("", "file") else None


def check_lake(lake: str) -> Iterator[Finding]:
    """Check whether files and tables can be written to the lake and deleted there, by doing it."""
    python = Path(os.environ.get("SPARK_JOB_VENV") or PROJECT / ".venv") / "bin" / "python"
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "jobs")}
    if IS_INSTALLED:
        python, environment = Path(sys.executable), dict(os.environ)
    if not python.is_file():
        yield Finding("lake", False, f"not checked, as there is no {python}; run make setup")
        return
    command = [str(python), "-m", "epsjoin.lake.probe", lake]
    try:
        answer = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        yield Finding("lake", False, f"{lake} did not answer within {TIMEOUT:g} s; is its address right?")
        return
    is_well = answer.returncode == 0
    lines = (answer.stdout if is_well else answer.stderr).strip().splitlines() or ["no answer"]
    yield Finding("lake", is_well, lines[-1] + ("" if is_well else f"; {_lake_remedy(lines[-1])}"))


def _lake_remedy(fault: str) -> str:
    """Say what to do about a lake that cannot be written, by the last line of the fault."""
    for words, remedy in _LAKE_REMEDIES.items():
        if words in fault:
            return remedy
    return "allow this user to write there, or name another --lake"


_LAKE_REMEDIES = {
    "--lake": "correct it",
    "No module named": "run make setup, which installs what this asks with",
    "No space left": "free some there, or name another --lake",
}


def _read_pins(lock: Path) -> dict[str, set[str | None]]:
    """Read the versions that a lock file allows of each package; None where a condition may leave it out."""
    pins = re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\\n]+)([^\n]*)", lock.read_text(), re.MULTILINE)
    allowed: dict[str, set[str | None]] = {}
    for name, version, marker in pins:
        allowed.setdefault(_normalise(name), set()).update([version, None] if ";" in marker else [version])
    return allowed


def _list_installed(venv: Path) -> dict[str, str]:
    found = {}
    for folder in venv.glob("lib/python3*/site-packages/*.dist-info"):
        name, _, version = folder.stem.partition("-")
        found[_normalise(name)] = version
    return found


def _normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main(argv: Sequence[str] | None = None) -> int:
    """Print every finding; return 1 if one is not well, otherwise 0."""
    parser = argparse.ArgumentParser(
        prog="epsjoin doctor", description="Check whether this machine has what epsjoin needs."
    )
    parser.add_argument(
        "--machine", action="store_true", help="check only what must be there before make setup"
    )
    parser.add_argument(
        "--lake",
        default=os.environ.get("EPSJOIN_LAKE"),
        help="also check whether this lake (URI or absolute path; default: EPSJOIN_LAKE) can be written to",
    )
    parser.add_argument("--quiet", action="store_true", help="print only what is wrong")
    arguments = parser.parse_args(argv)
    is_tried = arguments.lake and not arguments.machine
    if is_tried and "://" not in arguments.lake and not arguments.lake.startswith("/"):
        parser.error(
            f"--lake must be a URI (file:///..., s3a://...) or an absolute path, not '{arguments.lake}'"
        )
    try:
        urlsplit(arguments.lake or "")
    except ValueError:  # whose text may have a part of a password
        parser.error(
            "--lake has a character that no host may have, such as a [, between :// and the next /; "
            "correct it"
        )
    findings = list(check_installation() if IS_INSTALLED else check_machine())
    if not arguments.machine and not IS_INSTALLED:
        findings += [*check_environments(), *check_connection()]
        findings += check_resources(arguments.lake or str(PROJECT / "lake"))
    if is_tried:
        findings += check_lake(arguments.lake)
    for finding in findings:
        if not finding.is_well or not arguments.quiet:
            print(f"{'ok   ' if finding.is_well else 'WRONG'} {finding.what}: {finding.text}")
    return 0 if all(finding.is_well for finding in findings) else 1


if __name__ == "__main__":
    raise SystemExit(main())
