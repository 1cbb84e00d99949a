"""What ``bin/airflow`` checks before it starts anything: database, DAG, parameters of its runs, lake."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from airflow.exceptions import ParamValidationError
from airflow.sdk import DAG
from airflow.utils.session import create_session
from sqlalchemy import inspect
from sqlalchemy.exc import DatabaseError

from project import AIRFLOW, TAG, check_lake_uri, find_lake_uri
from run_params import name_unknown


class Refusal(ValueError):  # noqa: N818  # the command is right to refuse
    """One sentence that says what is wrong and what to do about it."""


def read_conf(text: str | None) -> dict[str, Any]:
    """Read the parameters of a run; without a text there are none.

    Raises
    ------
    Refusal
        The text is no JSON object, or has a parameter twice.
    """
    try:
        conf = json.loads(text or "{}", object_pairs_hook=_to_object, parse_constant=_refuse_constant)
    except Refusal:
        raise
    except ValueError:
        conf = None
    if not isinstance(conf, dict):
        raise Refusal(f"""the parameters must be a JSON object, as '{{"eps": 20}}', not {text}""")
    return conf


def _to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise Refusal(f"the parameters have {twice[0]!r} more than once")  # Python would take the last one
    return dict(pairs)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")  # Python takes NaN and Infinity, no schema refuses NaN


def check_database() -> None:
    """Check that Airflow's database is there: Airflow's own message would name a wrong way to make it.

    Raises
    ------
    Refusal
        It cannot be opened, or ``bin/airflow setup`` did not make one there.
    """
    with create_session() as session:
        engine = session.get_bind().engine
        database = engine.url.render_as_string(hide_password=True)
        try:
            is_made = inspect(engine).has_table("dag_run")
        except DatabaseError as error:
            remedy = "start it, or correct AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"
            if database == f"sqlite:///{os.environ['AIRFLOW_HOME']}/airflow.db":  # of bin/airflow
                remedy = "set AIRFLOW_HOME to another folder, in which this user may write"
            why = " ".join(str(error.orig).split())  # PostgreSQL's are several lines
            raise Refusal(f"Airflow's database {database} cannot be opened ({why}); {remedy}") from None
    if not is_made:
        raise Refusal(
            f"Airflow has no tables yet in {database}; make them by {AIRFLOW} setup, or unset "
            "AIRFLOW_HOME where it is set for another Airflow"
        )


def check_lake() -> None:
    """Check where the runs of this shell would write.

    Raises
    ------
    Refusal
        ``EPSJOIN_LAKE`` is no URI, or holds a password.
    """
    try:
        check_lake_uri(find_lake_uri())
    except ValueError as error:
        raise Refusal(str(error)) from None


def describe_missing(dag_id: str, known: Iterable[str]) -> str:
    """Say that there is no such DAG, and which there are."""
    return (
        f"there is no DAG {dag_id}, or its page in dags/ cannot be read; there are {', '.join(sorted(known))}"
    )


def check_names(tags: Iterable[str], conf: Mapping[str, Any]) -> None:
    """Check that all names are those of parameters, if the DAG with these tags is one of a data set.

    Raises
    ------
    Refusal
        One is not.
    """
    if TAG in tags and (unknown := name_unknown(conf)):
        raise Refusal(unknown)


def check_params(dag: DAG, conf: Mapping[str, Any]) -> None:
    """Check the parameters of a DAG's runs.

    Raises
    ------
    Refusal
        One is unknown, or has a value that is not allowed.
    """
    check_names(dag.tags, conf)
    params = deepcopy(dag.params)
    try:
        params.update(conf)
        params.validate()
    except ParamValidationError as error:
        raise Refusal(str(error).splitlines()[0]) from None  # the whole schema would follow
