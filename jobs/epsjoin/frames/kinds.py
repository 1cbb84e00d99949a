"""The packages of frames: whose a frame is, how its rows are taken, and how a frame is made of columns."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epsjoin.errors import ArgumentError, EpsjoinError, needing_extra
from epsjoin.kernels.arrays import Ints


class Kind(NamedTuple):
    """A package of frames: its class of frames, how it takes rows, and how it makes a frame of columns."""

    package: str
    frame: str
    take: Callable[[Any, Ints], Any]
    make: str


def _take_of_arrow(values: Any, rows: Ints) -> Any:
    if hasattr(values, "columns"):  # a table
        for place, column in enumerate(values.columns):
            plain = _plain(column)
            if plain is not column:
                values = values.set_column(place, values.column_names[place], plain)
        return values.take(rows)
    return _plain(values).take(rows)


def _plain(values: Any) -> Any:
    """A column of Arrow whose rows can be taken: it cannot take views and repeated values."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_run_end_encoded(values.type):
        return _plain(compute.run_end_decode(values))
    plain = without_views(values.type, pa.large_string(), pa.large_binary())
    return values if plain == values.type else values.cast(plain)


def without_views(kind: Any, text: Any, data: Any) -> Any:
    """Return a type of Arrow with ``text`` and ``data`` for views of texts and of bytes, also within others.

    Views of lists stay, for their rows can be taken.
    """
    import pyarrow as pa

    def plain(field: Any) -> Any:
        return field.with_type(without_views(field.type, text, data))

    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, without_views(kind.value_type, text, data), kind.ordered)
    if pa.types.is_struct(kind):
        return pa.struct([plain(kind.field(place)) for place in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(plain(kind.key_field), plain(kind.item_field), kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(plain(kind.value_field), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(plain(kind.value_field))
    if pa.types.is_list(kind):
        return pa.list_(plain(kind.value_field))
    return {pa.string_view(): text, pa.binary_view(): data}.get(kind, kind)


def _take_of_pandas(values: Any, rows: Ints) -> Any:
    taken = values.take(rows)
    if hasattr(taken, "columns"):
        return taken
    if hasattr(taken, "to_series"):  # an index
        taken = taken.to_series()
    return taken.reset_index(drop=True)


def _take_by_brackets(values: Any, rows: Ints) -> Any:
    return values[rows]


_KINDS = (
    Kind("pandas", "DataFrame", _take_of_pandas, "DataFrame"),
    Kind("polars", "DataFrame", _take_by_brackets, "DataFrame"),
    Kind("pyarrow", "Table", _take_of_arrow, "table"),
)


def _polars_to_arrow(ids: Any) -> Any:
    with needing_extra("a frame of pandas or Arrow with such ids of polars"):
        import pyarrow  # noqa: F401  # so that polars does not say in its own words that it is missing
    return ids.to_arrow()


def _arrow_to_pandas(ids: Any) -> Any:
    return ids.to_pandas(integer_object_nulls=True)


def _arrow_to_polars(ids: Any) -> Any:
    """Decimals of 256 bits become those of 128, if they fit: polars has no others, and panics."""
    import pyarrow as pa

    if pa.types.is_decimal256(ids.type):
        return ids.cast(pa.decimal128(38, ids.type.scale))
    if _has_decimals_of_256_bits(ids.type):
        raise TypeError(f"polars has no {ids.type}")
    return ids


def _has_decimals_of_256_bits(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _has_decimals_of_256_bits(kind.value_type)
    inner = (kind.field(place).type for place in range(kind.num_fields))
    return bool(pa.types.is_decimal256(kind) or any(map(_has_decimals_of_256_bits, inner)))


def _polars_to_pandas(ids: Any) -> Any:
    if not ids.null_count() and (plain := np.asarray(ids)).ndim == 1 and plain.dtype.kind in "fiub":
        return plain  # which needs no pyarrow
    return _arrow_to_pandas(_polars_to_arrow(ids))


_CONVERSIONS = {
    ("polars", "pyarrow"): _polars_to_arrow,
    ("pyarrow", "pandas"): _arrow_to_pandas,
    ("pyarrow", "polars"): _arrow_to_polars,
    ("polars", "pandas"): _polars_to_pandas,
}
"""How ids of one package become those of another that would round or refuse some of them as they are."""


def find_kind(name: str, frame: Any) -> tuple[Kind, Any]:
    """Find the package of a frame; what only hands out an Arrow stream becomes an Arrow table."""
    for kind in _KINDS:
        module = sys.modules.get(kind.package)
        if module is not None and isinstance(frame, getattr(module, kind.frame)):
            return kind, frame
    if hasattr(frame, "__arrow_c_stream__"):
        with needing_extra(f"{name}, an Arrow stream,"):
            import pyarrow
        try:
            return _KINDS[-1], pyarrow.table(frame)
        except pyarrow.ArrowInvalid:  # one of a single column, such as a Series
            pass
    raise ArgumentError(
        f"{name} must be a DataFrame of pandas or polars, or an Arrow table or stream, not "
        f"{type(frame).__name__}; join takes arrays"
    )


def _of_kind(kind: Kind, other: Kind, ids: Any) -> Any:
    """The ids of one kind of frames for another kind."""
    convert = _CONVERSIONS.get((other.package, kind.package))
    if convert is None or isinstance(ids, np.ndarray):
        return ids
    if other.package == "polars" and str(ids.dtype) == "Object":
        objects = np.empty(len(ids), object)
        objects[:] = ids.to_list()  # Arrow and NumPy would get their addresses
        return objects
    return convert(ids)


def make_frame(kind: Kind, other: Kind, ids: tuple[Any, Any], others: dict[str, NDArray[Any]]) -> Any:
    """Make the frame of the left ids, the right ones, which may be of another kind, and more columns."""
    make = getattr(sys.modules[kind.package], kind.make)
    try:
        return make({"left_id": ids[0], "right_id": _of_kind(kind, other, ids[1]), **others})
    except (EpsjoinError, MemoryError):
        raise
    except Exception as error:
        if kind is other:
            raise
        raise ArgumentError(  # each package has errors of its own
            f"the right ids, of {other.package}, cannot stand in a frame of {kind.package}; cast them, for "
            f"example to texts ({error})"
        ) from error
