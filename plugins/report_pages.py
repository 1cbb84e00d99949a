"""The pages that show reports inside Airflow: lists of runs, a run's report, and its pictures.

Whoever may read a DAG's runs may read its reports, nobody else; the look of a page is in
``report_pages.html.j2``. Nothing is written anywhere.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard
from urllib.parse import quote

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from airflow.models.dag import DagTag
from airflow.models.dagrun import DagRun
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException as StarletteHTTPException

import report_files
from project import DATA_SET, TAG
from report_files import LakeError

MAX_RUNS, MAX_RUNS_OF_EACH = 100, 12
"""How many runs of a data set its own list shows, and the list of all data sets: each is a file to read."""

THEME = Path(__file__).with_name("report_theme.js").read_text(encoding="utf-8")
"""The one script of our pages: it makes them light or dark as the user made Airflow."""

_THEME_HASH = base64.b64encode(hashlib.sha256(THEME.encode()).digest()).decode()

HEADERS = {
    # A report is one file that holds its style and pictures. No script runs but the one with this hash.
    "Content-Security-Policy": (
        f"default-src 'none'; script-src 'sha256-{_THEME_HASH}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""Every answer has these headers."""


class DataSet(NamedTuple):
    """A data set in the list of runs.

    Parameters
    ----------
    name, title : as in its contract; the title as the newest run has it.
    n_runs : runs that have a report, listed or not.
    rows : run, its summary, and why its last snapshot was refused ("" if it was not), newest first.
    more : whether the data set has a list of its own that shows more.
    """

    name: str
    title: str
    n_runs: int
    rows: list[tuple[str, dict[str, Any], str]]
    more: bool


class Pages(FastAPI):
    """The application; it sets the headers itself, because a middleware does not see every answer (500)."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await super().__call__(scope, receive, send_with_headers)


def require_right_to_read(request: Request, user: GetUserDep) -> None:
    """Refuse users who may not read the runs of the DAG in the path, or no runs at all where it names none.

    Airflow's own routes for DAG runs make the same check: a report says no less than logs and XComs of its
    run, so the right to see the documentation of the API (``AccessView.DOCS``) would not be enough.
    """
    dag_id = request.path_params.get("dag_id")
    if dag_id is not None and not DATA_SET.fullmatch(dag_id):
        raise _explain_foreign_dag(dag_id)
    requires_access_dag("GET", DagAccessEntity.RUN, dag_id)(request, user)


app = Pages(
    title="Reports of the runs",
    dependencies=[Depends(require_right_to_read)],
    # these routes of FastAPI would be open to everyone
    openapi_url=None,
)


@app.get("/")
def show_runs(user: GetUserDep, session: SessionDep) -> HTMLResponse:
    """Show the data sets whose DAGs the user may read, with their runs, the newest first."""
    readable = get_auth_manager().get_authorized_dag_ids(user=user, method="GET", session=session)
    ours = session.scalars(select(DagTag.dag_id).where(DagTag.name == TAG))
    found = (_read_dataset(name, MAX_RUNS_OF_EACH) for name in sorted(readable.intersection(ours)))
    datasets = [dataset for dataset in found if dataset is not None]
    datasets.sort(key=lambda dataset: dataset.rows[0][0], reverse=True)
    of_what = "data sets whose DAGs you may read"
    return HTMLResponse(_render(heading="Reports", datasets=datasets, of_what=of_what))


@app.get("/dags/{dag_id}")
def show_runs_of_dag(dag_id: str, session: SessionDep) -> HTMLResponse:
    """Show the runs of one data set, the newest first."""
    _refuse_foreign_dag(dag_id, session)
    dataset = _read_dataset(dag_id, MAX_RUNS)
    datasets = [] if dataset is None else [dataset]
    return HTMLResponse(_render(heading="Reports", datasets=datasets, of_what=dag_id, root=".."))


@app.get("/runs/{dag_id}/{run_id}")
def show_report_of_dag_run(dag_id: str, run_id: str, session: SessionDep) -> Response:
    """Show the report of a DAG run: the one of its logical date."""
    _refuse_foreign_dag(dag_id, session)
    found = None
    if run_id.isprintable():  # databases refuse some of the characters that are not
        dag_run = select(DagRun.logical_date).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)
        found = session.execute(dag_run).one_or_none()
    if found is None:
        raise HTTPException(404, f"{dag_id} has no run {run_id}.")
    if found.logical_date is None:
        raise HTTPException(
            404,
            "This run has no logical date, so no snapshot belongs to it, and no report. Trigger the DAG with "
            "a logical date, the first day of the snapshot's interval.",
        )
    # the date is in UTC, as in the template variable ds, which tells the jobs their run
    run = f"{found.logical_date:%Y-%m-%d}"
    return _dress(_send_file(dag_id, run, report_files.PAGE), dag_id, root="../..")


@app.get("/reports/{dag_id}/{run}/{name}")
def show_file(dag_id: str, run: str, name: str, request: Request, session: SessionDep) -> Response:
    """Show a file of a report: the page, a picture, or the summary."""
    answer = _send_file(dag_id, run, name)
    if name != report_files.PAGE:
        return answer
    # Airflow shows us in a frame that may not open its own pages: they would nest, or nothing would happen
    is_framed = request.headers.get("Sec-Fetch-Dest") == "iframe"
    run_id = None if is_framed else _find_dag_run(dag_id, run, session)
    return _dress(answer, dag_id, root="../../..", run_id=run_id)


@app.exception_handler(StarletteHTTPException)
def explain_error(_: Request, error: StarletteHTTPException) -> Response:
    """Say on a page what went wrong, because it is shown inside a page of Airflow."""
    heading = {401: "Log in first", 403: "Not allowed", 404: "No report"}.get(error.status_code, "Sorry")
    return HTMLResponse(
        _render(heading=heading, message=error.detail), status_code=error.status_code, headers=error.headers
    )


@app.exception_handler(LakeError)
def explain_lake_error(_: Request, error: LakeError) -> Response:
    """Say on a page why the lake cannot be read."""
    return HTMLResponse(_render(heading="No lake", message=str(error)), status_code=503)


def _send_file(dataset: str, run: str, name: str) -> Response:
    content = report_files.read_file(dataset, run, name)
    if content is not None:
        return Response(content, media_type=report_files.MEDIA_TYPES[name])
    if name == report_files.PAGE and report_files.RUN.fullmatch(run):
        refusal = report_files.read_refusal(dataset, run)
        if refusal:
            raise HTTPException(
                404, f"There is no report of {dataset}, run {run}: its snapshot was refused. {refusal}"
            )
        raise HTTPException(
            404,
            f"There is no report of {dataset}, run {run}. The run's last task, report, writes it; a run "
            "that was skipped, since there was no snapshot, has none.",
        )
    raise HTTPException(404, "No report has such a file.")


def _dress(answer: Response, dataset: str, *, root: str, run_id: str | None = None) -> Response:
    """Add to a report what it needs inside Airflow: the theme, and links to the other pages.

    The file itself has neither, so that it can be sent to somebody who has no Airflow. What is replaced
    stands in it before anything that came from the data.

    Parameters
    ----------
    root : relative path from the page to the list of all runs.
    run_id : the DAG run that the page links to; none if ``None``.
    """
    links = _TEMPLATES.get_template("report_links.html.j2").render(
        root=root, dataset=dataset, run_id=None if run_id is None else quote(run_id, safe="")
    )
    page = bytes(answer.body)
    page = page.replace(b"<head>", f"<head>\n<script>{THEME}</script>".encode(), 1)
    page = page.replace(b"<body>", f"<body>\n{links}".encode(), 1)
    return Response(page, media_type=answer.media_type)


def _read_dataset(name: str, max_runs: int) -> DataSet | None:
    """Read the newest runs of a data set; return ``None`` if no run has a report."""
    runs = report_files.list_runs(name)
    if not runs:
        return None
    rows = [
        (run, report_files.read_summary(name, run), report_files.read_refusal(name, run))
        for run in runs[:max_runs]
    ]
    # a run whose first snapshot is refused has no summary yet
    title = next((str(summary["title"]) for _, summary, _ in rows if summary.get("title")), name)
    return DataSet(name, title, len(runs), rows, max_runs < MAX_RUNS)


def _find_dag_run(dag_id: str, run: str, session: Session) -> str | None:
    """Find the id of the DAG run whose logical date is this day; the run may be gone from the database."""
    try:
        day = datetime.strptime(run, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None
    of_day = DagRun.logical_date >= day, DagRun.logical_date < day + timedelta(days=1)
    found = select(DagRun.run_id).where(DagRun.dag_id == dag_id, *of_day).order_by(DagRun.logical_date)
    return session.scalars(found).first()


def _refuse_foreign_dag(dag_id: str, session: Session) -> None:
    """Refuse a DAG that is not that of a data set."""
    if session.scalar(select(DagTag.name).where(DagTag.dag_id == dag_id, DagTag.name == TAG)) is None:
        raise _explain_foreign_dag(dag_id)


def _explain_foreign_dag(dag_id: str) -> HTTPException:
    return HTTPException(404, f"{dag_id} is not the DAG of a data set, so its runs have no reports.")


def _format_count(value: object) -> str:
    return f"{value:,.0f}" if _is_number(value) else "–"


def _format_measure(value: object, unit: object) -> str:
    if not _is_number(value):
        return "–"
    # ε has at most the digits that somebody set: they are shown, as on the report
    text = f"{value:,}".removesuffix(".0")
    return f"{text} {unit or ''}".rstrip()


def _format_percent(value: object) -> str:
    return f"{value:.1%}".replace("%", " %") if _is_number(value) else "–"


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _describe_quality(summary: dict[str, Any]) -> tuple[str, str]:
    """Say how many expectations of the contracts hold, and how bad that is: good, warning, error."""
    counts = summary.get("quality")
    if not isinstance(counts, dict):
        return "not checked" if "quality" in summary else "no summary", ""
    numbers = (counts.get(key) for key in ("held", "warnings", "errors"))
    held, warnings, errors = (number if isinstance(number, int) else 0 for number in numbers)
    broken = [
        f"{number} {name}{'s' if number > 1 else ''}"
        for number, name in ((errors, "error"), (warnings, "warning"))
        if number
    ]
    text = ", ".join([f"{held} of {held + warnings + errors} expectations hold", *broken])
    return text, "error" if errors else "warning" if warnings else "good"


_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters.update(
    count=_format_count, measure=_format_measure, percent=_format_percent, quality=_describe_quality
)


def _render(
    *,
    heading: str,
    datasets: list[DataSet] | None = None,
    of_what: str = "",
    message: str = "",
    root: str = ".",
) -> str:
    return _TEMPLATES.get_template("report_pages.html.j2").render(
        heading=heading,
        datasets=datasets,
        of_what=of_what,
        message=message,
        root=root,
        script=Markup(THEME),  # noqa: S704  # a file of this folder
        page=report_files.PAGE,
    )
