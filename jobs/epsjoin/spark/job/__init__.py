"""The frame of every job: its session, its parameters, its exit code."""
