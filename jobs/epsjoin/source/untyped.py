"""What the reader of a format yields: records whose fields have no type of the contract yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from epsjoin.contracts.sources import SourceContract
from epsjoin.errors import DataRefusedError
from epsjoin.source import bounds
from epsjoin.source.delimiters import Header


class UntypedRecord(NamedTuple):
    r"""One record of a file, split into fields.

    Parameters
    ----------
    line : line (CSV, JSON) or row (Parquet) where the record begins; 1 is the first.
    raw : the record as it stands in the file (Parquet: the contract's columns of it); bytes that are not
        UTF-8 as ``\xNN``.
    fields : one field per column of the contract, in its order; ``None`` where there is a problem.
    problem : why the record cannot be split into fields; ``None`` where it can.
    """

    line: int
    raw: str
    fields: Sequence[Any] | None
    problem: str | None = None


@dataclass(frozen=True)
class Block:
    """Records of a file that follow one another, as columns; some of them are odd.

    Parameters
    ----------
    odd : of every record: whether it is odd, that is whether the definition must decide.
    values : typed values of the records that are not odd.
    read_again : reads the records with these numbers, by the definition; the block's first is 0.
    """

    odd: NDArray[np.bool_]
    values: pa.Table
    read_again: Callable[[NDArray[np.int64]], Iterator[UntypedRecord]]


OTHER_ENCODING = "it seems to be UTF-16 or UTF-32: store it as UTF-8"
"""What is said of a file of text whose columns have names with NULs."""


class FoundColumns:
    """The columns that a file has, as far as it has been read.

    Parameters
    ----------
    file : the file's name for messages.
    """

    def __init__(self, file: str) -> None:
        self.names: list[str] = []
        self._file = file
        self._n_characters = 0

    def add(self, names: Iterable[str]) -> None:
        """Add names of columns.

        Raises
        ------
        DataRefusedError
            All names together are longer than ``MAX_NAMES``.
        """
        n = len(self.names)
        self.names += names
        self._n_characters += sum(len(name) + 1 for name in self.names[n:])
        if self._n_characters > bounds.MAX_NAMES:
            raise DataRefusedError(
                f"{self._file}: the names of its columns have more than {bounds.MAX_NAMES:,} characters "
                "together"
            )

    def _remedy(self, missing: Sequence[str], header: Header | None) -> str:
        """Say what separates the fields of CSV where that makes missing columns of its header.

        Or that the file has another encoding, in which every second byte of such names is 0.
        """
        if "\x00" in "".join(self.names):
            return f"; {OTHER_ENCODING}"
        return header.remedy(missing) if header else ""

    def require_all(self, source: SourceContract, header: Header | None = None) -> None:
        """Refuse the file unless it has each column of the contract exactly once; see :meth:`require`."""
        optional = {c.in_file for c in source.columns if not c.required and c.name not in source.coordinates}
        self.require([column.in_file for column in source.columns], optional=optional, header=header)

    def require(
        self, wanted: Sequence[str], *, optional: Container[str] = (), header: Header | None = None
    ) -> None:
        """Refuse the file unless it has each wanted column exactly once.

        Parameters
        ----------
        wanted : names in the file.
        optional : those of them that may be empty.
        header : of CSV: where the names come from.

        Raises
        ------
        DataRefusedError
            A column is missing or occurs more than once.
        """
        counts = Counter(self.names)
        missing = [name for name in dict.fromkeys(wanted) if name not in counts]
        if missing:
            are_optional = all(name in optional for name in missing)
            advice = "; one that is not required must be there, too, and may be empty" if are_optional else ""
            bare = {name.strip() for name in missing}
            others = [repr(name) for name in self.names if name.strip() in bare and name not in wanted]
            advice = f"; blanks belong to the name, as in {', '.join(others)}" if others else advice
            raise DataRefusedError(
                f"{self._file}: {'columns' if missing[1:] else 'column'} {', '.join(map(repr, missing))} "
                f"{'are' if missing[1:] else 'is'} missing; "
                f"the file has {', '.join(self.names) or 'none'}{self._remedy(missing, header) or advice}"
            )
        for name in wanted:
            if counts[name] > 1:
                raise DataRefusedError(f"{self._file}: column {name!r} occurs more than once in the header")

    def places(self, source: SourceContract) -> list[int]:
        """Where the columns of the contract are among those of a file that has each once."""
        place_of = {name: place for place, name in enumerate(self.names)}
        return [place_of[column.in_file] for column in source.columns]
