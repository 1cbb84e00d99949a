"""The table ``digests``: two digests of every point, by which the points of two runs are compared."""

from __future__ import annotations

import json
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from epsjoin.contracts.sources import SourceContract
from epsjoin.contracts.trees import TREE
from epsjoin.digests import UNKEYED, digest_table
from epsjoin.errors import TableError
from epsjoin.kernels.arrays import Words
from epsjoin.kernels.digests import KEY_BYTES
from epsjoin.lake.arrow import to_binary
from epsjoin.local.snapshots import Digests

DIGEST_BYTES = 16
"""Length of a digest."""


def key_of(source: SourceContract) -> bytes:
    """The key of the records' digests: it differs if equal values would mean something else.

    That is so if columns have other names or types, or if the key columns differ. Ranges, allowed values,
    conditions and the format of the files decide which records there are, not what is in them.
    """
    meant = [[(column.name, column.type) for column in source.columns], source.key]
    return blake2b(json.dumps(meant).encode(), digest_size=KEY_BYTES).digest()


def digest_points(source: SourceContract, ids: pa.Array | pa.ChunkedArray, values: pa.Table) -> pa.Table:
    """Make rows of ``digests``.

    Parameters
    ----------
    ids : ids of the points.
    values : their values, in columns of the source's names; of documents also the trees.

    Returns
    -------
    The columns id, record and place.
    """
    records = digest_table(values.select([column.name for column in source.columns]), key_of(source))
    places = digest_table(pa.table(places_in(source, values)), UNKEYED)
    return pa.table({"id": ids, "record": to_binary(records), "place": to_binary(places)})


def places_in(source: SourceContract, values: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Columns that say where a point is: they are equal for points at distance 0 of one another.

    A document has not moved if only its white space or the order of its keys has changed.
    """
    if source.tree:
        from epsjoin.local.trees.points import find_places  # with kernels that only documents need

        return {TREE: pa.chunked_array([find_places(values[TREE].to_pylist()).view(np.int64)])}
    # a coordinate may be an integer, which in the point is a float64; and -0.0 is the same place as 0.0
    return {name: values[name].cast(pa.float64()) for name in source.coordinates}


def to_digests(rows: pa.Table) -> Digests:
    """The digests in rows of the table, as arrays.

    Raises
    ------
    TableError
        A digest is null or not ``DIGEST_BYTES`` long.
    """
    return Digests(rows["id"].to_numpy(), to_words(rows["record"]), to_words(rows["place"]))


def to_words(column: pa.ChunkedArray) -> Words:
    """The digests in a column of the table; see :func:`to_digests`."""
    found = [np.empty((0, 2), np.uint64)]
    for chunk in column.chunks:
        offsets = np.frombuffer(chunk.buffers()[1], np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        if chunk.null_count or not (np.diff(offsets) == DIGEST_BYTES).all():
            raise TableError(f"a digest is not {DIGEST_BYTES} bytes long; run ingest again")
        if len(chunk):
            data = np.frombuffer(chunk.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
            found.append(data.view("<u8").reshape(-1, 2).astype(np.uint64, copy=False))
    return np.concatenate(found)
