"""A jobs' environment whose spark-submit notes its command and ends as it is told."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

INGEST = str(REPOSITORY / "jobs" / "ingest.py")
REPORT = str(REPOSITORY / "jobs" / "report.py")

SPARK_SUBMIT = """#!/bin/sh
here={root}
for argument; do
    case $argument in */jobs/*.py) job=$(basename "$argument" .py) ;; esac
    [ "${{previous:-}}" = --metrics-out ] && metrics=$argument
    previous=$argument
done
number=$(ls "$here/calls" | wc -l)
for argument; do printf '%s\\n' "$argument"; done > "$here/calls/$(printf %03d "$number")-$job"
env > "$here/environment"
echo "$job: some lines"
if [ -f "$here/ends/$job" ]; then . "$here/ends/$job"; fi
[ -f "$here/no-metrics" ] || echo "{{\\"job\\": \\"$job\\", \\"rows\\": 11020}}" > "$metrics"
"""

SHA256SUM = """#!/bin/sh
# a fake jar is as it should be while it is empty
[ "${1:-}" = --check ] || exec REAL "$@"
while read -r _ jar; do [ -f "$jar" ] && [ ! -s "$jar" ] || { echo "$jar: FAILED"; exit 1; }; done < "$3"
"""


def write_script(file: Path, text: str) -> None:
    """Write an executable."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


class FakeSpark:
    """The folder of a fake jobs' environment with fake Delta jars.

    Parameters
    ----------
    root : an empty place for it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.venv = root / "venv"
        self.jars = root / "jars"
        for folder in ("calls", "ends", "jars"):
            (root / folder).mkdir(parents=True)
        write_script(self.venv / "bin" / "python", "#!/bin/sh\nexec sleep 300\n")
        self.script(SPARK_SUBMIT.format(root=root))
        real = shutil.which("sha256sum") or "sha256sum"
        write_script(root / "tools" / "sha256sum", SHA256SUM.replace("REAL", real))
        for line in (REPOSITORY / "conf" / "delta-jars.sha256").read_text().splitlines():
            (self.jars / line.split()[1]).touch()

    def put_in_place(self, patch: pytest.MonkeyPatch) -> None:
        """Have the project's own wrapper start it instead of the jobs' environment."""
        patch.setenv("SPARK_JOB_VENV", str(self.venv))
        patch.setenv("DELTA_JARS", str(self.jars))
        patch.setenv("PATH", f"{self.root / 'tools'}:{os.environ['PATH']}")

    def script(self, text: str) -> None:
        """Replace what spark-submit does."""
        spark_submit = self.venv / "lib" / "python3.11" / "site-packages" / "pyspark" / "bin" / "spark-submit"
        write_script(spark_submit, text)

    def ends(self, job: str, code: int, last_line: str = "epsjoin: the last word") -> None:
        """Let a job say ``last_line`` and end with ``code``."""
        (self.root / "ends" / job).write_text(f"echo '{last_line}' >&2\nexit {code}\n")

    def dies(self, job: str) -> None:
        """Let a job be killed, as by the kernel when memory is short."""
        (self.root / "ends" / job).write_text("kill -KILL $$\n")

    def writes_no_metrics(self) -> None:
        """Let jobs end well without a metrics file."""
        (self.root / "no-metrics").touch()

    @property
    def jobs(self) -> list[str]:
        """Names of the jobs that were started, in order."""
        return [call.name.split("-", 1)[1] for call in sorted((self.root / "calls").iterdir())]

    def command(self, job: str) -> list[str]:
        """The arguments that Spark got for a job, without those that the wrapper adds."""
        call = next(call for call in (self.root / "calls").iterdir() if call.name.endswith(f"-{job}"))
        arguments = call.read_text().splitlines()
        return arguments[arguments.index("--master") :]

    @property
    def environment(self) -> dict[str, str]:
        """The environment that Spark got in its latest call."""
        lines = (self.root / "environment").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def calls_text(self) -> str:
        """All that was on any command line."""
        return os.linesep.join(call.read_text() for call in (self.root / "calls").iterdir())
