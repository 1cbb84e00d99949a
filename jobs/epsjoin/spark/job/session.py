"""The Spark session of a job; all of its settings stand in ``conf/``."""

from __future__ import annotations

import atexit
import gc
import logging
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

_interrupted = threading.Event()


def get_session(name: str) -> SparkSession:
    """Get the session that spark-submit configured, or the one that already runs.

    It ends with the process.
    """
    on_interrupt = signal.getsignal(signal.SIGINT)
    spark = SparkSession.builder.appName(name).getOrCreate()
    # PySpark's own handler of Ctrl-C would call the JVM in the middle of another call, which breaks both
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, on_interrupt)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def heed_interrupt(sentence: str) -> None:
    """From now on Ctrl-C (SIGINT) says this sentence on stderr and raises KeyboardInterrupt, once.

    It is said at once: Ctrl-C also ends Spark's JVM, and with it this process while it is still cleaning up.
    """

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is ending already
        logging.disable()  # Py4J writes a trace of every call that does not end
        _interrupted.set()
        os.write(2, f"{sentence}\n".encode())  # print may be in use
        raise KeyboardInterrupt

    _interrupted.clear()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupt)


def say_if_interrupted(sentence: str) -> bool:
    """Whether this process or Spark's JVM was told to end, so that an error only follows from that.

    Ctrl-C ends both, and the sentence was printed at once. A signal to spark-submit ends only the JVM; then
    the sentence has not been printed yet, so it is printed here.
    """
    active = SparkContext._active_spark_context
    if not _interrupted.is_set() and active is not None:
        disabled = logging.root.manager.disable
        logging.disable()  # as above, if the JVM is gone
        try:
            spark: Any = active._jvm.org.apache.spark  # type: ignore[union-attr]  # it has been started
            is_ending = bool(spark.util.ShutdownHookManager.inShutdown())
        except (Py4JError, OSError):
            is_ending = True
        if is_ending:
            _interrupted.set()
            print(sentence, file=sys.stderr)
        else:
            logging.disable(disabled)
    return _interrupted.is_set()


@atexit.register
def _end() -> None:
    """Stop the session: PySpark would otherwise leave the file of its socket in the temporary folder."""
    try:
        spark = SparkSession.getActiveSession()
        if spark is not None:
            spark.stop()
    except (Py4JError, OSError):
        if not _interrupted.is_set():  # otherwise the JVM has stopped it already, and may be gone
            raise
    gc.freeze()  # Python's last garbage collections would look through all that was imported, for nothing
