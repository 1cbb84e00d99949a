"""The command ``epsjoin``: runs one of its commands and turns errors into exit codes."""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from epsjoin.commands import doctor
from epsjoin.errors import CLOSED_PIPE, INTERRUPTED, EpsjoinError, needing_extra

USAGE = """usage: epsjoin COMMAND ...

  clusters    print the clusters of all runs by the names that they keep, or with --name the history of one
  contract    new FILE: draft a contract of a data set from a file; check and publish: versions of contracts
  diff        OLD NEW: print what differs between two snapshots: inserted, updated, deleted, rekeyed rows
  estimate    predict what a join will yield and cost: pairs, memory, time; suggest an eps
  history     print since when a record is as it is, two are a pair, or one is in a cluster, over all runs
  quarantine  print the records of a run that were refused, and why
  show        print the result of a run in a few lines
  trend       print the results of all runs as a table, and draw them over time
  verify      check a run's stored pairs, clusters and outliers by brute force (a Spark job)
  doctor      check whether this machine has what epsjoin needs, and print what to do if it lacks something

epsjoin COMMAND --help explains the arguments of a command.

exit codes: 0 done; 1 something broke, and another try may help (contract check, doctor: something is wrong);
2 an argument or a contract is wrong; 3 a table or the data was refused (verify: something is wrong in them);
4 the result would be larger than a limit
"""
"""Text of ``epsjoin --help``."""

COMMANDS = ("clusters", "contract", "diff", "estimate", "history", "quarantine", "show", "trend")
"""Commands that need the jobs' packages, each a module of this package."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (see ``errors.py``)."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # Latin-1, or a pipe on Windows, has no ∞ and no Chinese
        sys.stdout.reconfigure(errors="backslashreplace")  # as Python has it for stderr
    try:
        try:
            with _ending_tidily():
                return _run(list(sys.argv[1:] if argv is None else argv))
        finally:
            if sys.stdout is not None:  # as it is where it was closed
                sys.stdout.flush()
    except BrokenPipeError:  # its reader has seen enough, as head has
        _drop_output()
        return CLOSED_PIPE
    except OSError as error:  # any other OSError was told where it was raised
        _drop_output()
        print(f"epsjoin: the output cannot be written ({error}); make room, and try again", file=sys.stderr)
        return 1


def _drop_output() -> None:
    """Let Python's last flush write to nowhere, which would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _ending_tidily() -> Iterator[None]:
    """Within, ``kill`` or a closed terminal ends the command after its temporary files are deleted."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP
            number = getattr(signal, name, None)
            if number and signal.getsignal(number) is signal.SIG_DFL:  # nohup lets it go on
                before[number] = signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)  # as shells have it


@contextmanager
def _unmasked() -> Iterator[None]:
    """Raise what a signal raised while numba handed a result over, where a ``SystemError`` was made of it."""
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if isinstance(cause, (KeyboardInterrupt, SystemExit)):
            raise cause from None
        raise


def _run(arguments: Sequence[str]) -> int:
    command = arguments[0] if arguments else ""
    if command in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0
    if command == "verify":
        print(
            "epsjoin verify is a Spark job: run bin/epsjoin verify in the project's folder", file=sys.stderr
        )
        return 2
    if command not in COMMANDS and command != "doctor":
        print(USAGE, end="", file=sys.stderr)
        if command:
            print(f"\nepsjoin: there is no command {command!r}", file=sys.stderr)
        return 2
    try:
        if command == "doctor":
            return doctor.main(arguments[1:])
        # imported only now, as the doctor must run where the packages of the other commands are missing
        with needing_extra("the command"), _unmasked():
            return int(importlib.import_module(f"epsjoin.commands.{command}").main(arguments[1:]))
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        print(f"epsjoin {command}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except EpsjoinError as error:
        print(f"epsjoin {command}: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:  # a disk that is full, a folder that is another user's: it names the file
        print(f"epsjoin {command}: {error}", file=sys.stderr)
        return 1
