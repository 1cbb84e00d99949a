"""The command epsjoin: every command has its line, its help and its exit code."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from epsjoin.commands import cli
from epsjoin.errors import ArgumentError, BudgetError, DataRefusedError, EpsjoinError, TableError

REPO = Path(__file__).resolve().parents[2]
COMMANDS = (
    "clusters",
    "contract",
    "diff",
    "estimate",
    "history",
    "quarantine",
    "show",
    "trend",
    "verify",
    "doctor",
)


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["help"]])
def test_help__lists_every_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 0
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines() if line.startswith("  ")] == list(COMMANDS)


@pytest.mark.parametrize("command", [*(name for name in COMMANDS if name != "verify"), "contract new"])
def test_options__are_all_in_a_page(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([*command.split(), "--help"])
    options = re.findall(r"^  (--[a-z-]+)", capsys.readouterr().out, re.MULTILINE)
    assert options_without_a_page(options) == set()


def test_options_of_jobs__are_all_in_a_page() -> None:
    jobs = [*(REPO / "jobs").glob("*.py"), REPO / "jobs" / "epsjoin" / "spark" / "job" / "job.py"]
    added = [re.findall(r'add_argument\(\s*"(--[a-z-]+)"', job.read_text(encoding="utf-8")) for job in jobs]
    assert {"--points", "--stage", "--metrics-out"} <= {option for options in added for option in options}
    assert options_without_a_page(option for options in added for option in options) == set()


def options_without_a_page(options: Iterable[str]) -> set[str]:
    pages = "".join(page.read_text(encoding="utf-8") for page in (REPO / "docs").glob("*.md"))
    return {option for option in options if not re.search(rf"{option}(?![\w-])", pages)}


@pytest.mark.parametrize("arguments", [[], ["cluster"]])
def test_anything_else__is_answered_by_the_list_and_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    said = capsys.readouterr().err
    assert "usage: epsjoin COMMAND" in said
    assert said.endswith("\nepsjoin: there is no command 'cluster'\n") == bool(arguments)


@pytest.mark.parametrize("command", [*cli.COMMANDS, "doctor"])
def test_help_of_a_command__names_it(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    assert ended.value.code == 0
    assert f"usage: epsjoin {command}" in capsys.readouterr().out


def test_help__says_what_the_exit_codes_mean(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["--help"])
    _, _, told = capsys.readouterr().out.partition("exit codes: ")
    for error in (EpsjoinError, ArgumentError, TableError, DataRefusedError, BudgetError):
        assert f"{error.exit_code} " in told


COMMANDS_OF_A_LAKE = {
    "clusters": [],
    "diff": ["--from", "2023-01-01", "--to", "2023-02-01"],
    "estimate": ["--run", "2023-01-01"],
    "history": ["--table", "points"],
    "quarantine": ["--run", "2023-01-01"],
    "show": ["--run", "2023-01-01"],
    "trend": [],
}


@pytest.mark.parametrize("command", COMMANDS_OF_A_LAKE)
def test_a_command__says_that_the_folder_of_the_lake_is_not_there(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [command, "--lake", f"{tmp_path}/a b", "--dataset", "navaids", *COMMANDS_OF_A_LAKE[command]]
    assert cli.main(given) == 2
    assert capsys.readouterr().err == f"epsjoin {command}: --lake: there is no folder {tmp_path}/a b\n"
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a b").write_text("no folder")
    assert cli.main(given) == 2
    assert capsys.readouterr().err == f"epsjoin {command}: --lake: {tmp_path}/a b is a file, not a folder\n"


@pytest.mark.parametrize("command", ["estimate", "quarantine", "show"])
def test_a_command__refuses_a_run_that_is_no_date(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [command, "--lake", str(tmp_path), "--dataset", "navaids", "--run", "2025-13-01"]
    assert cli.main(given) == 2
    assert "--run must be a date like 2023-06-01, not '2025-13-01'" in capsys.readouterr().err


def test_verify__is_not_run_without_spark(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["verify"]) == 2
    assert "bin/epsjoin verify" in capsys.readouterr().err


def test_bin_epsjoin__hands_verify_to_spark_submit(tmp_path: Path) -> None:
    """A copy of the script beside a spark-submit that says what it was given."""
    (tmp_path / "bin").mkdir()
    scripts = Path(__file__).resolve().parents[2] / "bin"
    for name, text in (
        *((name, (scripts / name).read_text()) for name in ("epsjoin", "utf-8")),
        ("spark-submit", '#!/bin/sh\nprintf "%s\\n" "$@"; exit 3\n'),
    ):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    command = [str(tmp_path / "bin" / "epsjoin"), "verify", "--lake", "/a b"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stdout.splitlines() == [str(tmp_path / "jobs" / "verify.py"), "--lake", "/a b"]


def test_an_error__becomes_one_sentence_and_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from epsjoin.commands import show

    def broken(_: list[str]) -> int:
        raise TableError("no slice")

    monkeypatch.setattr(show, "main", broken)
    assert cli.main(["show"]) == 1
    assert capsys.readouterr().err == "epsjoin show: no slice\n"


def test_what_the_system_refuses__is_one_sentence_with_the_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: list[str]) -> int:
        raise PermissionError(13, "Permission denied", "/lake/trend.png")

    monkeypatch.setattr("epsjoin.commands.trend.main", refuse)
    assert cli.main(["trend"]) == 1
    assert capsys.readouterr().err == "epsjoin trend: [Errno 13] Permission denied: '/lake/trend.png'\n"


def test_doctor__needs_no_package_of_ours() -> None:
    """Nor may the usage: what the other commands import is loaded when they are called."""
    code = "import sys; from epsjoin.commands import cli; cli.main(['--help']); print('numpy' in sys.modules)"
    jobs = str(Path(cli.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": jobs}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    "arguments",
    [["diff", *["tests/data/navaids/2022-12-25.csv.gz"] * 2], ["doctor"], ["--help"]],
    ids=" ".join,
)
def test_a_command_whose_output_nobody_reads_any_more__ends_in_silence(arguments: list[str]) -> None:
    code = "import sys; from epsjoin.commands import cli; sys.exit(cli.main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
        assert done.stdout is not None
        assert done.stderr is not None
        done.stdout.close()  # before the command says anything
        assert done.stderr.read() == b""
    assert done.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("is_buffered", [True, False])
def test_a_command_whose_output_meets_a_full_disk__says_so_in_one_line(is_buffered: bool) -> None:
    code = "import sys; from epsjoin.commands import cli; sys.exit(cli.main(sys.argv[1:]))"
    command = [sys.executable, *([] if is_buffered else ["-u"]), "-c", code, "--help"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment
        )
    why = "[Errno 28] No space left on device"
    assert done.stderr == f"epsjoin: the output cannot be written ({why}); make room, and try again\n"
    assert done.returncode == 1


def test_a_command_whose_output_has_not_all_letters__escapes_those(tmp_path: Path) -> None:
    for day, name in (("1", "Gruyère"), ("2", "Zürich ∞ 城")):
        (tmp_path / f"{day}.csv").write_text(f"id,name\n1,{name}\n", encoding="utf-8")
    command = [sys.executable, "-m", "epsjoin", "diff", "--key", "id", "1.csv", "2.csv"]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONPATH": str(REPO / "jobs")}
    done = subprocess.run(command, capture_output=True, check=False, env=environment, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "id 1: name Gruyère \\u2192 Zürich \\u221e \\u57ce" in done.stdout.decode("latin-1")


def test_a_command_without_an_output__does_its_work() -> None:
    code = "import sys; from epsjoin.commands import cli; sys.stdout = None; sys.exit(cli.main(['--help']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["show", "doctor", "contract", "diff"])
def test_a_command_that_is_interrupted__says_so_and_ends_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    def interrupt(_: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"epsjoin.commands.{command}.main", interrupt)
    assert cli.main([command]) == 130
    assert capsys.readouterr().err == f"epsjoin {command}: interrupted\n"


def test_a_command_that_is_interrupted_in_a_kernel__says_so_and_one_that_breaks_does_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python makes a SystemError of what is raised while numba hands a result over, or one of another one."""

    masked = SystemError("unpickled a result")
    masked.__cause__ = KeyboardInterrupt()
    causes: list[BaseException | None] = [ValueError(), None, masked]

    def interrupt(_: list[str]) -> int:
        raise SystemError("returned a result") from causes.pop()

    monkeypatch.setattr("epsjoin.commands.diff.main", interrupt)
    assert cli.main(["diff"]) == 130
    assert capsys.readouterr().err == "epsjoin diff: interrupted\n"
    for _ in range(2):
        with pytest.raises(SystemError, match="returned a result"):
            cli.main(["diff"])


KILLED = """
import os, signal, sys, tempfile
from epsjoin.commands import cli, show

def work(_):
    with tempfile.TemporaryDirectory(dir=sys.argv[1]):
        os.kill(os.getpid(), int(sys.argv[2]))
        signal.pause()

show.main = work
sys.exit(cli.main(["show"]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_command_that_is_killed__deletes_its_temporary_files(tmp_path: Path, name: str) -> None:
    """Those of a comparison may be as large as its snapshots."""
    number = signal.Signals[name]
    before = signal.signal(number, signal.SIG_DFL)  # tests may run behind nohup
    try:
        command = [sys.executable, "-c", KILLED, str(tmp_path), str(int(number))]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    finally:
        signal.signal(number, before)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "")
    assert not list(tmp_path.iterdir())


def test_python_m_epsjoin__that_is_interrupted_while_it_is_loaded_says_so(tmp_path: Path) -> None:
    (tmp_path / "_interrupting.py").write_text(
        "import runpy, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'epsjoin.commands.doctor':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "runpy.run_module('epsjoin', run_name='__main__')\n"
    )
    command = [sys.executable, str(tmp_path / "_interrupting.py")]
    environment = {**os.environ, "PYTHONPATH": str(REPO / "jobs")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "epsjoin: interrupted\n")


def test_a_command__leaves_handlers_of_signals_as_they_were(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert cli.main(["--help"]) == 0
    assert signal.getsignal(signal.SIGTERM) is before
