"""How snapshots are named: where its date stands in the name of a file or folder, and in which form."""

from __future__ import annotations

import re
from datetime import date
from typing import NamedTuple
from urllib.parse import unquote

from epsjoin.contracts.times import pattern_of

ISO = "yyyy-MM-dd"
"""The form of a date whose form is not given."""

DATE = re.compile(r"\{date(?::([^{}]+))?\}")
"""The date of a snapshot in a path: ``{date}``, or with its form ``{date:yyyyMMdd}``."""


class SnapshotName(NamedTuple):
    """The name of each snapshot of a data set.

    Parameters
    ----------
    before, after : what stands before the date, and after it.
    form : how the date is written, see :func:`epsjoin.contracts.times.pattern_of`.
    """

    before: str
    form: str
    after: str

    @classmethod
    def in_path(cls, path: str) -> SnapshotName | None:
        """The name in a contract's path; None where no date stands in it, so that it is that of all runs."""
        leaf = path.rpartition("/")[2]
        found = DATE.search(leaf)
        if found is None:
            return None
        around = leaf[: found.start()], leaf[found.end() :]
        before, after = map(unquote, around) if "://" in path else around  # URIs are percent-encoded
        return cls(before, found[1] or ISO, after)

    def date_in(self, name: str) -> date | None:
        """The date of the snapshot of this name; None where it is none, or has a date that does not exist."""
        pattern = f"{re.escape(self.before)}{pattern_of(self.form).pattern}{re.escape(self.after)}"
        found = re.fullmatch(pattern, name)
        if found is None:
            return None
        try:
            return date(*(int(found[part]) for part in ("year", "month", "day")))
        except ValueError:  # such as June 31
            return None
