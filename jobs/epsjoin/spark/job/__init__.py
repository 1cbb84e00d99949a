"""The frame of every job: its session, its parameters, its exit code."""

from epsjoin.garbage import look_for_garbage_rarely

look_for_garbage_rarely()  # before all further imports
