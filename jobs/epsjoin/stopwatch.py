"""Seconds by the clock on the wall: of a block, and of what an iterator takes for its items."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


@contextmanager
def add_seconds(counters: MutableMapping[str, Any], name: str) -> Iterator[None]:
    """Add the seconds of the block to a counter, also where it raises."""
    began = time.perf_counter()
    try:
        yield
    finally:
        counters[name] = counters.get(name, 0.0) + time.perf_counter() - began


def each_within(items: Iterable[T], block: Callable[[], AbstractContextManager[None]]) -> Iterator[T]:
    """Yield the same items, each taken within a block of its own; what is done with them lies outside."""
    following = iter(items)
    while True:
        with block():
            try:
                item = next(following)
            except StopIteration:
                return
        yield item
