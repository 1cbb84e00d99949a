"""What a machine must have: every line one thing, found or with its remedy.

Knows the standard library only, so that it can run before anything is installed:
``python3.11 jobs/epsjoin/doctor.py``.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parents[2]
PYTHON = (3, 11)
JAVA = 17


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
    parser = argparse.ArgumentParser(prog="doctor", description="Look for what epsjoin needs.")
    parser.add_argument("--machine", action="store_true", help="only what must be there before make setup")
    parser.add_argument("--quiet", action="store_true", help="only what is not well")
    arguments = parser.parse_args(argv)
    findings = list(machine()) + ([] if arguments.machine else list(environments()))
    for finding in findings:
        if not finding.is_well or not arguments.quiet:
            print(f"{'ok   ' if finding.is_well else 'WRONG'} {finding.what}: {finding.text}")
    return 0 if all(finding.is_well for finding in findings) else 1


if __name__ == "__main__":
    raise SystemExit(main())
