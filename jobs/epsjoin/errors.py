"""Every error that epsjoin raises on purpose, with the exit code a job ends with.

The exit code tells the orchestrator what to do: 1 is worth another try, 2 to 4 are not,
5 means there was nothing to do.
"""

from __future__ import annotations

from epsjoin.console import printable

MAX_MESSAGE = 2000
"""Characters of a message that are shown."""


class EpsjoinError(Exception):
    """Base of all errors; on its own: something broke, another try may help.

    Its text is one line of what can be printed, of ``MAX_MESSAGE`` characters at most.
    """

    exit_code = 1

    def __str__(self) -> str:
        """One line, whatever the names in it hold."""
        text = printable(super().__str__())
        return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}... ({len(text):,} characters)"


class ArgumentError(EpsjoinError, ValueError):
    """An argument or a parameter is wrong; the message names it, its value and what is allowed."""

    exit_code = 2


class ContractError(ArgumentError):
    """A contract file is missing or says something that cannot be; the message names file and key."""


class DataRefusedError(EpsjoinError):
    """The data breaks its contract: a broken file, a missing column, too many bad rows."""

    exit_code = 3


class BudgetError(EpsjoinError):
    """The result would be larger than a limit allows; the message has the number and what fits."""

    exit_code = 4


class NothingToDoError(EpsjoinError):
    """No snapshot lies in the run's interval."""

    exit_code = 5


class TableError(EpsjoinError):
    """A table is not as it must be: rows lost or doubled, a schema that broke its contract."""
