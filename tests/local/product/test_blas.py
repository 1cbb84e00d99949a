"""One thread for BLAS while blocks of matrices are multiplied in threads of our own."""

from __future__ import annotations

import threading

from epsjoin.local.product import blas


def test_one_thread__is_for_as_long_as_somebody_multiplies():
    threads = blas._threads()
    assert threads is not None, "NumPy's wheels have OpenBLAS"
    before = threads.get()
    threads.set(2)
    try:
        inside, leave = threading.Event(), threading.Event()

        def multiply():
            with blas.one_thread():
                inside.set()
                leave.wait()

        other = threading.Thread(target=multiply)
        with blas.one_thread():
            assert threads.get() == 1
            other.start()
            inside.wait()
        assert threads.get() == 1, "the other thread still multiplies"
        leave.set()
        other.join()
        assert threads.get() == 2
    finally:
        threads.set(before)
