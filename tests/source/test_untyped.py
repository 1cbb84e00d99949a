"""The names of a file's columns, of which there may be very many."""

from __future__ import annotations

from epsjoin.source.untyped import FoundColumns

N = 1000


class Counted(str):
    """A name that counts how often it is measured or compared."""

    __slots__ = ()
    uses = 0

    def __len__(self) -> int:
        Counted.uses += 1
        return super().__len__()

    def __eq__(self, other: object) -> bool:
        Counted.uses += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


def test_found_columns__add_looks_at_a_name_once() -> None:
    """Records of JSON may each bring one."""
    found, before = FoundColumns("a.jsonl"), Counted.uses
    for number in range(N):
        found.add([Counted(number)])
    assert 0 < Counted.uses - before < 3 * N


def test_found_columns__require_looks_for_a_name_once() -> None:
    found = FoundColumns("a.csv")
    found.add(map(Counted, range(N)))
    before = Counted.uses
    found.require([Counted(number) for number in range(N)])
    assert 0 < Counted.uses - before < 10 * N
