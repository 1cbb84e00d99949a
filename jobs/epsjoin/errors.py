"""All errors that epsjoin raises on purpose, each with the exit code of a job that ends with it.

The exit code tells the orchestrator what to do: after 1 another try may help, after 2 to 4 it does not,
5 means that there was nothing to do, and 130 that Ctrl-C ended it.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from epsjoin.console import printable

INTERRUPTED = 128 + signal.SIGINT
"""Exit code of a job or a command that Ctrl-C ended, as shells have it."""

CLOSED_PIPE = 128 + 13
"""Exit code of a command whose output nobody reads any more, as shells have it for SIGPIPE."""

MAX_MESSAGE = 2000
"""Maximum number of characters of a message that are shown."""


class EpsjoinError(Exception):
    """The base of all errors; raised itself, it means that something broke and that another try may help.

    Its text is one line of printable characters, ``MAX_MESSAGE`` of them at most.
    """

    exit_code = 1

    def __str__(self) -> str:
        """Return the text as one line, whatever characters the names in it hold."""
        text = printable(super().__str__())
        return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}... ({len(text):,} characters)"


class ArgumentError(EpsjoinError, ValueError):
    """An argument or a parameter is wrong; the message names it, its value and what is allowed."""

    exit_code = 2


class ContractError(ArgumentError):
    """A contract file is missing, or holds a value that is not allowed; the message names file and key."""


class DataRefusedError(EpsjoinError):
    """The data breaks its contract: a file is broken, a column is missing, or too many rows are bad."""

    exit_code = 3


class BudgetError(EpsjoinError):
    """The result would be larger than a limit allows; the message has the number and what fits."""

    exit_code = 4


class NothingToDoError(EpsjoinError):
    """No snapshot lies in the run's interval."""

    exit_code = 5


class TableError(EpsjoinError):
    """A stored table violates an invariant.

    Rows were lost or duplicated, or its schema differs from its contract.
    """


class UnfitTableError(TableError):
    """A stored table is missing, does not belong to the others, or asks for what the jobs cannot do.

    The message names the job to run first. Until then another try ends in the same way.
    """

    exit_code = 3


class MissingSliceError(UnfitTableError):
    """A stored table is missing, or has no rows of the run: no job has written them yet."""


class MissingPackageError(EpsjoinError, ImportError):
    """A package is not installed that only a part of epsjoin needs; the message says how to install it."""

    exit_code = 2


EXTRAS = {
    "commands": "deltalake jsonschema open_data_contract_standard pyarrow sqlglot yaml",
    "spark": "delta pandas py4j pyspark",
    "report": "jinja2 matplotlib",
    "pipeline": "great_expectations",
    "sklearn": "joblib sklearn",
    "progress": "tqdm",
}
"""Extras of the package ``epsjoin``, and the modules that come with each."""


@contextmanager
def needing_extra(what: str) -> Iterator[None]:
    """Within, an import that fails says which extra holds the missing module.

    Parameters
    ----------
    what : what needs the module.

    Raises
    ------
    MissingPackageError
        The module comes with an extra; the import of any other fails as ever.
    """
    try:
        yield
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        for extra, modules in EXTRAS.items():
            if missing in modules.split():
                remedy = f"pip install 'epsjoin[{extra}]'"
                raise MissingPackageError(f"{what} needs {missing}: {remedy}", name=missing) from error
        raise


def to_one_line(error: Exception) -> str:
    """Return the text of a library's error on one line, without its colours, arrows and advice."""
    lines = [re.sub(r"\x1b\[\d*m|↳", "", line).strip(" .") for line in str(error).splitlines()]
    return ": ".join(line for line in lines if line and not line.startswith("Help:"))


_FORBIDDEN = re.compile("Permission denied|Access ?Denied|ACCESS_DENIED|AccessControlException")
"""What systems, stores and Hadoop say of a file that this user may not read."""


def is_forbidden(error: Exception | str) -> bool:
    """Whether an error says that this user may not read a file."""
    return isinstance(error, PermissionError) or _FORBIDDEN.search(str(error)) is not None


def remedy_of_unreadable(error: Exception | str, remake: str) -> str:
    """Say what to do about a file that could not be read; a sound file is not made again.

    Parameters
    ----------
    error : what reading it raised, or its text.
    remake : how the file is made again, for one that is broken or gone.
    """
    if is_forbidden(error):
        return "let this user read it"
    if isinstance(error, MemoryError):  # a broken file, too, may ask for more than there is
        return f"there was too little memory: try again; if that does not help, {remake}"
    # of bytes that are wrong, pyarrow raises an OSError without a number
    is_of_system = isinstance(error, OSError) and (error.errno is not None or "AWS Error" in str(error))
    if is_of_system and not isinstance(error, FileNotFoundError):
        return f"try again; if that does not help, {remake}"
    return remake
