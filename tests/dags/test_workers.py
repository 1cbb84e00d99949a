"""What the services know of Airflow's workers."""

from __future__ import annotations

import inspect

from airflow.executors import local_executor

import service


def test_idle_workers__are_called_as_the_services_look_for_them() -> None:
    """Airflow's own code makes the title by which those of a killed scheduler are ended."""
    prefix = local_executor._get_executor_process_title_prefix(None)
    assert 'team_name)} <idle>"' in inspect.getsource(local_executor._run_worker)
    assert service.IDLE_WORKER.match(f"{prefix} <idle>\0".encode())
    assert not service.IDLE_WORKER.match(f"{prefix} navaids.ingest\0".encode())
