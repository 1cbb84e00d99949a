"""The default differential: both snapshots are read in step, and rows that stand at one place are compared.

Two snapshots mostly have the same rows in the same order. So their columns are compared whole, a step of rows
at a time; single values are looked at only in a column that differs somewhere. Where keys differ in a step,
its keys are digested and matched; a row without a partner there is digested as a whole and goes through the
window and the hash join of :mod:`epsjoin.local.differ.window_then_hash`, so the result is exact whatever the
order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from epsjoin.differ.columns import Compared
from epsjoin.differ.found import Found, Tally
from epsjoin.differ.keys import NOTHING, SeenKeys
from epsjoin.differ.snapshots import Snapshot, conform
from epsjoin.digests import UNKEYED, digest_table, to_fields
from epsjoin.kernels.arrays import Bools, Ints, Words
from epsjoin.kernels.differ import find_keys
from epsjoin.kernels.fields import order_rows
from epsjoin.local.differ.disk import Disk
from epsjoin.local.differ.entries import ENTRY, Entries, Matched, to_entries
from epsjoin.local.differ.window_then_hash import Window

STEP_ROWS = 1 << 14
"""Number of rows of each snapshot that are compared at a time."""


def compare_in_step(
    sides: tuple[Snapshot, Snapshot], compared: Compared, digest_bits: int, disk: Disk
) -> Found:
    """Find what differs between two snapshots with keys.

    Parameters
    ----------
    sides, compared : the old and the new snapshot, and what of them is compared.
    digest_bits, disk : for the rows that are not compared in step.

    Raises
    ------
    DataRefusedError
        A record has no key, or a key comes twice.
    """
    old, new = (_Reader(side, compared) for side in sides)
    rest = _WithoutPartner(Window(disk), compared, digest_bits)
    try:
        tally = Tally()
        _match(old, new, compared, rest, tally)
    except ValueError:  # a double, which was met as a digest and cannot be named
        _refuse_doubles(old, new)
        raise
    _refuse_doubles(old, new)
    disk.count(read=(old.place + new.place) * disk.row_bytes)
    return tally.settle(old.place, new.place)


def _refuse_doubles(*readers: _Reader) -> None:
    for reader in readers:
        while reader.fill():
            reader.take(len(reader.rows))
        reader.keys.refuse_doubles()


class _Reader:
    """The rows of a snapshot that have been read, and not yet taken."""

    def __init__(self, snapshot: Snapshot, compared: Compared) -> None:
        self._batches = snapshot.batches()
        self._compared, self._label = compared, snapshot.label
        self.keys = SeenKeys(snapshot, compared)
        self.rows = pa.Table.from_batches([], compared.schema)
        self.place = 0  # of the first of them
        self._digested = NOTHING  # the keys of the last of them

    def fill(self) -> bool:
        """Read on until there are enough rows for a step; False if there is none."""
        while len(self.rows) < STEP_ROWS and (batch := next(self._batches, None)) is not None:
            rows = conform(batch, self._compared.schema, self._label)
            digested = self.keys.add(rows, self.place + len(self.rows))
            self._digested = np.concatenate([self._digested, digested])
            self.rows = pa.concat_tables([self.rows, pa.table(rows)])
        return len(self.rows) > 0

    def take(self, n: int) -> None:
        """Go on by n rows."""
        self.rows, self.place = self.rows[n:], self.place + n
        self._digested = self._digested[max(0, len(self._digested) - len(self.rows)) :]

    def digest_keys(self, n: int) -> Words:
        """The digests of the keys of the next n rows, which may be there already."""
        if len(self._digested) == len(self.rows):
            return self._digested[:n]
        return digest_table(self.rows[:n].select(self._compared.key), UNKEYED)


class _WithoutPartner:
    """Rows without a partner in their step, as entries on their way to the window."""

    def __init__(self, window: Window, compared: Compared, digest_bits: int) -> None:
        self._window, self._compared, self._bits = window, compared, digest_bits
        self._fresh: tuple[list[Entries], list[Entries]] = [], []

    def add(self, side: int, rows: pa.Table, places: Ints, keys: Words) -> None:
        """Add rows of the old (0) or the new (1) snapshot.

        Parameters
        ----------
        rows, places, keys : the rows, their places in the snapshot, and the digests of their keys.
        """
        rest = self._compared.rest
        digests = digest_table(rows.select(rest), UNKEYED) if rest else np.zeros_like(keys)
        entries = to_entries(keys, digests, 0, self._bits)
        entries["place"] = places
        self._fresh[side].append(entries)

    def match(self, tally: Tally) -> None:
        """Hand them to the window once there are enough."""
        if max(sum(map(len, entries)) for entries in self._fresh) >= self._window.step_rows:
            tally.add(self._meet())

    def finish(self, tally: Tally) -> None:
        """Match all that are left."""
        tally.add(self._meet())
        for matched in self._window.match_rest():
            tally.add(matched)

    def _meet(self) -> Matched:
        fresh = [np.concatenate([np.empty(0, ENTRY), *entries]) for entries in self._fresh]
        self._fresh = [], []
        return self._window.meet(*fresh)


def _match(old: _Reader, new: _Reader, compared: Compared, rest: _WithoutPartner, tally: Tally) -> None:
    """Match the rows step by step, and in the end those without a partner in their step."""
    while all([old.fill(), new.fill()]):
        n = min(STEP_ROWS, len(old.rows), len(new.rows))
        if _differing(old.rows[:n], new.rows[:n], compared.key).any():
            tally.add(_match_keys(old, new, n, compared, rest))
            rest.match(tally)
            continue
        tally.add_run(old.place, new.place, _differing(old.rows[:n], new.rows[:n], compared.rest))
        old.take(n)
        new.take(n)
    for side, reader in enumerate((old, new)):
        while reader.fill():
            keys = reader.digest_keys(len(reader.rows))
            rest.add(side, reader.rows, reader.place + np.arange(len(keys)), keys)
            reader.take(len(keys))
            rest.match(tally)
    rest.finish(tally)


def _match_keys(old: _Reader, new: _Reader, n: int, compared: Compared, rest: _WithoutPartner) -> Matched:
    """Match the next n rows of both by their keys, and go on to the first rows after the last that matched.

    What comes later in one of them has its partners in the next step, if rows were inserted or deleted.
    """
    parts = old.rows[:n], new.rows[:n]
    keys = [reader.digest_keys(n) for reader in (old, new)]
    partners = find_keys(*keys)
    is_met = partners >= 0
    rows = partners[is_met], np.flatnonzero(is_met)
    before, now = (part.take(pa.array(mine)) for part, mine in zip(parts, rows, strict=True))
    found = Matched(old.place + rows[0], new.place + rows[1], ~_differing(before, now, compared.rest))
    for side, reader in enumerate((old, new)):
        end = int(rows[side].max(initial=-1)) + 1 or n
        is_left = np.ones(end, bool)
        is_left[rows[side]] = False
        left = np.flatnonzero(is_left)
        rest.add(side, parts[side].take(pa.array(left)), reader.place + left, keys[side][left])
        reader.take(end)
    return found


def _differing(old: pa.Table, new: pa.Table, names: Sequence[str]) -> Bools:
    """Which rows of two tables of one length differ in any of the columns."""
    differs = np.zeros(len(old), bool)
    for name in names:
        if not old[name].equals(new[name]):
            has_nulls = any(table[name].null_count for table in (old, new))
            fields = (to_fields(_batch(table.select([name])), has_nulls=has_nulls) for table in (old, new))
            differs |= order_rows(len(old), *fields) != 0
    return differs


def _batch(table: pa.Table) -> pa.RecordBatch:
    return table.combine_chunks().to_batches()[0]
