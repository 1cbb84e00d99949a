"""spark-submit listening.py: a driver that says at which port it listens, and waits to be stopped."""

from __future__ import annotations

import time

from epsjoin.spark.job.session import get_session

if __name__ == "__main__":
    print(f"listening: {get_session('listening').conf.get('spark.driver.port')}", flush=True)
    time.sleep(600)
