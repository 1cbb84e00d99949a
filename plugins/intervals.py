"""The timetable of every data set: a run is named by the first day of its interval, whoever asks for it."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from airflow.exceptions import AirflowTimetableInvalid
from airflow.sdk.timezone import coerce_datetime, utcnow
from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable
from pendulum import UTC, DateTime, FixedTimezone, Timezone, duration

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun  # with all of Airflow's tables; tasks import this file, too

GRACE = duration(hours=1)
"""How long after the end of an interval a schedule without a run may still begin with that interval's run."""

YEARS = range(100, 9901)
"""Years of the dates around which intervals are looked for: Python's calendar, and cron's, has 1 to 9999."""

A_YEAR = duration(days=366)
"""How long a time is searched for intervals: every rule of cron comes round in it, except 29 February."""


class NoIntervalError(ValueError):
    """No interval begins at the logical date of a run, or it has none; to REST a bad request."""


class IntervalTimetable(CronDataIntervalTimetable):
    """Airflow's timetable of intervals, with four differences.

    * The interval of a run by hand begins at its logical date; Airflow's own would take the one before. Where
      none begins, nobody gets a run: not by the form, whose default is the present time, nor by REST. Nor is
      there a run of an interval that is not over: the schedule would make none of it any more, or the run
      would wait for its end. Nor of one before the first, of which no task would run.
    * Runs by schedule or by hand are called ``2023-06-01``; Airflow's own would have the time of the request.
    * Of a range of dates, a back-fill makes the runs of intervals that are over, from the first on.
    * A schedule begins with the interval in which its DAG is unpaused, so that unpausing starts no run. From
      the first scheduled run on, the last one that was missed is made up, as ``catchup=False`` says.

    Parameters
    ----------
    cron : cron expression of the midnights (UTC) at which intervals begin.
    timezone : time zone of the expression.
    first : when the first interval may begin, as the ``start_date`` of the DAG says.
    """

    def __init__(
        self, cron: str, timezone: str | Timezone | FixedTimezone, first: datetime | None = None
    ) -> None:
        super().__init__(cron, timezone)
        self._first = None if first is None else coerce_datetime(first)

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> IntervalTimetable:
        """Make the timetable that :meth:`serialize` wrote, or an earlier version, which knew no first one."""
        plain: Any = super().deserialize(data)
        if data.get("first"):
            plain._first = coerce_datetime(datetime.fromisoformat(data["first"]))
        return plain  # type: ignore[no-any-return]  # of this class

    def serialize(self) -> dict[str, Any]:
        """What Airflow keeps in its database."""
        first = {} if self._first is None else {"first": self._first.isoformat()}
        return super().serialize() | first

    def validate(self) -> None:
        """Refuse intervals that begin at other times: the jobs read a run as whole days.

        Raises
        ------
        AirflowTimetableInvalid
            The expression is none, or is not about midnights.
        """
        super().validate()
        if self._expression.split()[:2] != ["0", "0"]:
            raise AirflowTimetableInvalid(
                f"intervals begin at midnight, so the schedule must begin with '0 0', as in '0 0 1 * *', "
                f"not {self._expression!r}"
            )

    def infer_manual_data_interval(self, *, run_after: DateTime) -> DataInterval:
        """Return the interval that begins at a logical date; Airflow calls the date ``run_after`` here.

        Raises
        ------
        NoIntervalError
            No interval begins then, or it is not over yet, or is before the first.
        """
        interval = self.find_begun(run_after)
        self._check_is_late_enough(interval.start)
        self._check_is_over(interval.start, interval.end)
        return interval

    def find_begun(self, at: DateTime) -> DataInterval:
        """Return the interval that begins at a date, whether it is over or not.

        Raises
        ------
        NoIntervalError
            No interval begins then.
        """
        _check_year(at)
        begin = self._align_to_prev(at)
        end = self._get_next(begin)
        if begin != at:
            last, before = end.subtract(days=1), self._get_prev(begin)
            raise NoIntervalError(
                f"a run is named by the first day of its interval, and none begins at "
                f"{at.in_timezone('UTC'):%Y-%m-%d %H:%M:%S} UTC; give the logical date "
                f"{begin:%Y-%m-%d} 00:00 for {begin:%Y-%m-%d} to {last:%Y-%m-%d}, "
                f"or {before:%Y-%m-%d} 00:00 for the interval before"
            )
        return DataInterval(begin, end)

    def _check_is_late_enough(self, begin: DateTime) -> None:
        if self._first is not None and begin < self._first:
            raise NoIntervalError(
                f"the first run is that of {self._align_to_next(self._first):%Y-%m-%d} (start_date), "
                f"not {begin:%Y-%m-%d}"
            )

    def find_interval(self, first: DateTime, last: DateTime) -> DataInterval:
        """Return the first interval that begins from ``first`` to ``last``, both included.

        Raises
        ------
        NoIntervalError
            None begins then, or it is not over yet.
        """
        if self._first is not None and last < self._first:
            self._check_is_late_enough(last)
        first = first if self._first is None else max(first, self._first)
        _check_year(first)
        before = self._align_to_prev(first)
        begin = before if before == first else self._get_next(before)
        end = self._get_next(begin)
        if begin > last:
            raise NoIntervalError(
                f"no interval begins from {first:%Y-%m-%d} to {last:%Y-%m-%d}; a run is named by the first "
                f"day of its interval, as {before:%Y-%m-%d} or {begin:%Y-%m-%d}"
            )
        self._check_is_over(begin, end)
        return DataInterval(begin, end)

    def _check_is_over(self, begin: DateTime, end: DateTime) -> None:
        if end > utcnow():
            raise NoIntervalError(
                f"the interval that begins on {begin:%Y-%m-%d} is not over before {end:%Y-%m-%d}; "
                f"the last one that is over began on {self._find_last():%Y-%m-%d}"
            )

    def count_ends_within(self, span: timedelta) -> int:
        """Return the largest number of intervals that may end while a run waits for ``span``."""
        begins = [self._align_to_next(DateTime(2001, 1, 1, tzinfo=UTC))]
        while begins[-1] - begins[0] < A_YEAR:
            begins.append(self._get_next(begins[-1]))
        shortest = min(end - begin for begin, end in pairwise(begins))
        return math.ceil(span / shortest)

    def _find_last(self) -> DateTime:
        """Return the first day of the last interval that is over."""
        return self._get_prev(self._align_to_prev(coerce_datetime(utcnow())))

    def generate_run_id(self, *, data_interval: DataInterval | None, **_: Any) -> str:
        """Name a run by the first day of its interval.

        Raises
        ------
        NoIntervalError
            The run has no logical date, and so no interval.
        """
        if data_interval is None:
            raise NoIntervalError(
                "a run needs a logical date, the first day of its interval; "
                f"the last interval that is over began at {self._find_last():%Y-%m-%d} 00:00 UTC"
            )
        return f"{data_interval.start:%Y-%m-%d}"

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """Return the next run by schedule: the first is that of the interval which is not over yet.

        A back-fill asks in the same way for all runs of its range. It gets none before the first interval, of
        which no task would run, and none of an interval that is not over.
        """
        is_backfill = restriction.catchup  # our schedules never catch up
        if is_backfill and self._first is not None:
            earliest = max(restriction.earliest or self._first, self._first)
            restriction = TimeRestriction(earliest, restriction.latest, catchup=True)
        if last_automated_data_interval is None and not restriction.catchup:
            # Airflow asks again whenever it reads the DAG. Without the grace, one that reads it just after
            # the end of the interval, before the scheduler looks, would pass over the run that is due.
            begin = self._align_to_prev(coerce_datetime(utcnow()) - GRACE)
            earliest = begin if restriction.earliest is None else max(begin, restriction.earliest)
            restriction = TimeRestriction(earliest, restriction.latest, catchup=True)
        info = super().next_dagrun_info(
            last_automated_data_interval=last_automated_data_interval, restriction=restriction
        )
        if is_backfill and info and info.data_interval and info.data_interval.end > utcnow():
            return None  # Airflow would leave it out, too, but look at all after it, to 9999 if that is asked
        return info

    def run_info_from_dag_run(self, *, dag_run: DagRun) -> DagRunInfo | None:  # type: ignore[override]  # the only caller takes None
        """Return what the next run by schedule follows; a back-fill of older intervals begins no schedule."""
        info = super().run_info_from_dag_run(dag_run=dag_run)
        last_end = self._align_to_prev(coerce_datetime(utcnow()))
        # one of the schedule that a back-fill has made again is of the type of back-fills, too
        is_backfill = dag_run.run_type == "backfill" and dag_run.creating_job_id is None
        return None if is_backfill and info.data_interval and info.data_interval.end < last_end else info


def _check_year(at: DateTime) -> None:
    if at.year not in YEARS:
        raise NoIntervalError(f"no run is of {at.date()}: its year must be from {YEARS[0]} to {YEARS[-1]}")
