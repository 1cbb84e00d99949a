"""``bin/airflow standalone``, as Airflow has it; but however it is asked to end, its services end with it.

Airflow's own stops them at Ctrl-C alone. What ``kill`` and systemd send, and a terminal that is closed, would
leave them running.
"""

from __future__ import annotations

import signal

from airflow.__main__ import main

for number in (signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
        signal.signal(number, signal.default_int_handler)
main()  # type: ignore[no-untyped-call]  # of Airflow
