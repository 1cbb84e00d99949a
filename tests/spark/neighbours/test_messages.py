"""Messages of cells: what is sent arrives whole, by kind, at its cell."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from epsjoin.errors import TableError
from epsjoin.spark.neighbours import messages, scores
from epsjoin.spark.neighbours.messages import MESSAGES, Message, by_kind, exchange, write_messages


def received(sent: Iterator[pa.RecordBatch]) -> list[Message]:
    return list(messages._messages(sent))


@pytest.mark.parametrize(
    ("n", "together", "most", "lengths"),
    [
        (10, 1, None, [4, 4, 2]),
        (9, 3, None, [3, 3, 3]),
        (10, 5, None, [5, 5]),
        (5, 1, 2, [2, 2, 1]),
        (5, 1, 9, [4, 1]),
    ],
)
def test_write_messages__part_rows_that_are_too_many_but_not_those_of_one_query(
    monkeypatch: pytest.MonkeyPatch, n: int, together: int, most: int | None, lengths: list[int]
) -> None:
    monkeypatch.setattr(messages, "_MAX_BYTES", 4 * 8)
    got = received(write_messages(7, 2, 5, pa.table({"id": range(n)}), together, most))
    assert [len(message.read()) for message in got] == lengths
    assert pa.concat_tables([message.read() for message in got])["id"].to_pylist() == list(range(n))
    assert {(message.kind, message.sender) for message in got} == {(2, 5)}
    assert not received(write_messages(7, 2, 5, pa.table({"id": []})))


def test_exchange__gives_each_cell_its_messages_by_kind_and_those_that_it_passes_on(
    spark: SparkSession,
) -> None:
    def send(_: object) -> Iterator[pa.RecordBatch]:
        for cell, kind in ((2, 1), (0, 1), (2, 0)):
            yield from write_messages(cell, kind, 9, pa.table({"id": [10 * cell + kind]}))

    def pass_on(cell: int, got: Iterator[Message]) -> Iterator[pa.RecordBatch]:
        for message in got:
            yield message.pass_on(cell + 1)

    def tell(cell: int, got: Iterator[Message]) -> Iterator[pa.RecordBatch]:
        found = [(message.kind, message.sender, *message.read()["id"].to_pylist()) for message in got]
        yield pa.record_batch({"text": [f"{cell}: {found}"]})

    sent = spark.range(0, 1, 1, 1).mapInArrow(send, MESSAGES)
    rows = exchange(exchange(sent, 3, pass_on), 4, tell, "text string").collect()
    assert sorted(row["text"] for row in rows) == ["1: [(1, 9, 1)]", "3: [(0, 9, 20), (1, 9, 21)]"]


def test_scores__are_told_once_to_a_cell_that_asked_twice() -> None:
    asked = (pa.table({"id": ids}) for ids in ([3, 5], [5, 7]))
    wanted = [message for rows in asked for message in received(write_messages(0, 4, 1, rows))]
    sent = list(scores._tell(0, np.array([3, 5, 7, 9]), np.array([0.3, 0.5, 0.7, 0.9]), wanted))
    assert [batch["cell"][0].as_py() for batch in sent] == [0, 1], "itself, and who asked"
    told = received(iter(sent[1:]))
    assert scores._look_up(told, np.array([7, 3, 5])).tolist() == [0.7, 0.3, 0.5]


def test_scores__of_a_point_with_an_unknown_neighbour_are_refused() -> None:
    told = pa.table({"id": [3, 5], "value": [0.5, 1.5]})
    known = by_kind(received(write_messages(0, 5, 1, told)))[5]
    assert scores._look_up(known, np.array([[5, 3], [3, 3]])).tolist() == [[1.5, 0.5], [0.5, 0.5]]
    with pytest.raises(TableError, match="nothing is known of point 4, which is a neighbour"):
        scores._look_up(known, np.array([[3, 4]]))
