"""Airflow's own commands ``dags test``, which is also ``bin/airflow run``, and ``dags trigger``.

What they refuse, they say in one sentence. And a run that is triggered has the interval of its own date:
Airflow 3.3 would ask for that of the present time (https://github.com/apache/airflow/pull/64740).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from airflow import __main__ as airflow
from airflow.api.client import local_client
from airflow.api.common.trigger_dag import trigger_dag
from airflow.exceptions import ParamValidationError

from intervals import NoIntervalError


def main(argv: Sequence[str]) -> int:
    """Run ``airflow dags`` with these arguments; return its exit code."""
    # Airflow's own has no such parameter: its name in the command's module is the only place to give it one
    local_client.trigger_dag = SimpleNamespace(trigger_dag=_trigger)  # type: ignore[assignment, attr-defined]
    sys.argv = ["airflow", "dags", *argv]
    try:
        airflow.main()  # type: ignore[no-untyped-call]  # of Airflow
    except (NoIntervalError, ParamValidationError) as error:
        print(f"airflow: {str(error).splitlines()[0]}", file=sys.stderr)  # the whole schema would follow
        return 2
    return 0


def _trigger(*, logical_date: Any, **asked: Any) -> Any:
    return trigger_dag(logical_date=logical_date, run_after=logical_date, **asked)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
