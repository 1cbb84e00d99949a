"""Requests for runs by REST and by the forms: a name that is no parameter is refused before there is a run.

Airflow checks only the values of the parameters that a DAG has, and takes every other name as one more.
"""

from __future__ import annotations

import json
import re
from typing import Any

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import requires_access_backfill, requires_access_dag
from airflow.models.dag import DagTag
from airflow.utils.session import create_session
from fastapi import Depends, FastAPI, HTTPException, Request
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from project import TAG
from run_params import name_unknown

_OF_DAG = re.compile("/api/v2/dags/([^/]+)/dagRuns$")


async def answer(airflow: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request for runs: refuse it, or let Airflow answer."""
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())
    body = b"".join(message.get("body", b"") for message in messages)

    async def receive_again() -> Message:
        return messages.pop(0) if messages else await receive()

    unknown = await run_in_threadpool(_find_unknown, scope["path"], body)
    if unknown is None:
        await airflow(scope, receive_again, send)
    else:
        await _refusals({**scope, "epsjoin.unknown": unknown}, receive_again, send)


def _find_unknown(path: str, body: bytes) -> str | None:
    """Say which names of a request are no parameters, if it asks for runs of a data set."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return None  # Airflow says what is wrong with it
    if not isinstance(asked, dict):
        return None
    of_dag = _OF_DAG.search(path)
    dag_id = of_dag[1] if of_dag else asked.get("dag_id")
    conf = asked.get("conf" if of_dag else "dag_run_conf")
    if not isinstance(dag_id, str) or not isinstance(conf, dict):
        return None
    unknown = name_unknown(conf)
    if unknown is None:
        return None
    tagged = select(DagTag.dag_id).where(DagTag.dag_id == dag_id, DagTag.name == TAG)
    with create_session() as session:
        return None if session.scalar(tagged) is None else unknown


# The paths and rights of Airflow's own routes: only who may ask for a run is told why there is none.
_refusals = FastAPI(openapi_url=None)


@_refusals.post(
    "/api/v2/dags/{dag_id}/dagRuns", dependencies=[Depends(requires_access_dag("POST", DagAccessEntity.RUN))]
)
@_refusals.post("/api/v2/backfills", dependencies=[Depends(requires_access_backfill("POST"))])
@_refusals.post("/api/v2/backfills/dry_run", dependencies=[Depends(requires_access_backfill("POST"))])
def _refuse(request: Request) -> Any:
    raise HTTPException(400, request.scope["epsjoin.unknown"])
