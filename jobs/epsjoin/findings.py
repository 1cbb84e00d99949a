"""The results of a run as plain Python and NumPy objects: all that its report page needs, nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Row = Mapping[str, Any]
"""A row of a table, column name to value; ``None``, NaN and a missing key all stand for null."""

TELLING = ("split", "merged", "dissolved", "gone", "born", "split_off", "grown", "shrunk")
"""The events of :data:`epsjoin.vocabulary.EVENTS`, the most telling first."""

ABSENT, OTHERS = "absent", "others"
"""Ends of a flow besides names and ``NOISE``: records that are not in a run, clusters that are not shown."""


def most_telling(events: Iterable[Row]) -> list[Row]:
    """Sort the events of a run, the most telling first; within a kind, the one with most members first."""
    return sorted(events, key=by_telling)


def by_telling(row: Row) -> tuple[int, int, int, int]:
    """By what :func:`most_telling` sorts."""
    return TELLING.index(row["event"]), -row["members"], row["name"], row["other"] or 0


@dataclass(frozen=True, eq=False)
class Comparison:
    """What the job ``compare`` found between a run and the one before; in the first run only its names.

    Parameters
    ----------
    against : the run before; "" in the first run.
    inserted, updated, deleted, moved : numbers of records; those that moved are among those updated.
    came, went : (n, 2) float64, places of records that were inserted and deleted, x and y as on the map.
    moves : (n, 4) float64, places before and now of records that moved. All three are bounded samples.
    examples : the first changes of each kind: what (inserted, updated, deleted), id, key, label, and columns
        (name, before, now of each that differs).
    flows : where records went, for clusters to which something happened and for the largest:
        before, now (names, ``NOISE``, ``ABSENT``, or ``OTHERS``), members.
    runs : the last runs with named clusters, oldest first, this run last.
    lives : sizes in these runs of names to which something happened, and of the largest: run, name, size.
    marks : what happened to these names: run, event, name.
    events : what happened since the run before, the most telling first, bounded: event, name, other, members.
    n_events : number of all of them by kind.
    labels : a few words for a name, as far as they are known.
    cluster_ids : cluster_id of the names in this run.
    """

    against: str
    inserted: int
    updated: int
    deleted: int
    moved: int
    came: NDArray[np.float64]
    went: NDArray[np.float64]
    moves: NDArray[np.float64]
    examples: Sequence[Row]
    flows: Sequence[Row]
    runs: tuple[str, ...]
    lives: Sequence[Row]
    marks: Sequence[Row]
    events: Sequence[Row]
    n_events: Mapping[str, int]
    labels: Mapping[int, str]
    cluster_ids: Mapping[int, int]

    def called(self, name: int) -> str:
        """What people call a cluster: the label of the record that named it, or its number."""
        return self.labels.get(name) or f"cluster {name}".replace("-", "−")

    @property
    def n_marks(self) -> int:
        """Number of records that the map of changes could show."""
        return self.inserted + self.deleted + self.moved


@dataclass(frozen=True, kw_only=True, eq=False)
class ValueChanges:
    """What is different in the values of a column, over the last runs.

    Parameters
    ----------
    column : its name.
    n_intervals, n_runs : intervals of the window, with the run's own, and how many of them have values.
    n_values : number of distinct values of the run.
    new : values that no earlier run of the window has: value, points; the most frequent first, bounded.
    gone : values that left the window with its last interval: value, points (in that interval); likewise.
    moved : values whose fraction of the points differs most from that in the earlier runs: value, points,
        fraction, fraction_before.
    n_new, n_gone : numbers of all of them.
    """

    column: str
    n_intervals: int
    n_runs: int
    n_values: int
    new: Sequence[Row]
    gone: Sequence[Row]
    moved: Sequence[Row]
    n_new: int
    n_gone: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Intake:
    """What a run took in from a data set.

    Parameters
    ----------
    dataset, title : name and title of the data set, as in its contract.
    key : names of the source's key columns, in key order; empty if it has no key. Rows that name a point to a
        person have its values as ``key``, in the same order.
    label : the column of the source that names a point to a person; "" if there is none.
    snapshots : rows of ``snapshots``: source, bytes, sha256, rows_read, rows_ok, rows_quarantined,
        rows_left_out, taken_where.
    unknown_columns : columns of the files that the contract does not name, and that were not read.
    quarantine_reasons : number of refused records by reason, in the order to show (most frequent first). The
        caller removes values from the reasons and bounds their number.
    quarantine_examples : a few rows of ``quarantine``: source, line, reason, raw.
    numbered_by : what the number of a record in its file counts: ``line`` or ``row``.
    values : what is different in the values of the columns that are windowed.
    """

    dataset: str
    title: str
    key: tuple[str, ...]
    label: str
    snapshots: Sequence[Row]
    unknown_columns: tuple[str, ...]
    quarantine_reasons: Mapping[str, int]
    quarantine_examples: Sequence[Row]
    numbered_by: str = "line"
    values: Sequence[ValueChanges] = ()

    @property
    def n_quarantined(self) -> int:
        """Number of records in quarantine, over all files."""
        return sum(int(row.get("rows_quarantined") or 0) for row in self.snapshots)

    @property
    def n_read(self) -> int:
        """Number of records that were read, over all files."""
        return sum(int(row.get("rows_read") or 0) for row in self.snapshots)

    @property
    def n_left_out(self) -> int:
        """Number of records that the contract leaves out, over all files."""
        return sum(int(row.get("rows_left_out") or 0) for row in self.snapshots)

    @property
    def taken_where(self) -> str:
        """The condition under which records were taken; empty if all were."""
        return next((str(row["taken_where"]) for row in self.snapshots if row.get("taken_where")), "")


@dataclass(frozen=True, kw_only=True, eq=False)
class RunFindings(Intake):
    """What every page shows of a run, whatever it was made for.

    Parameters
    ----------
    run : logical date of the run, ISO.
    params : the parameters that the run used, name to value, in the order to show.
    quality : rows of ``quality``: table, expectation, severity, success, observed; empty: not checked.
    counters : job to counter to value, from ``job_metrics``; ``seconds`` is the job's wall-clock time. A job
        of the other data set of matches has the name of its task in Airflow, as ``ingest_iscgem``.
    seconds_before : job to seconds in the run before.
    refusal : why a snapshot of this run was refused since its tables were made; empty if none was.
    """

    run: str
    params: Mapping[str, Any]
    quality: Sequence[Row]
    counters: Mapping[str, Mapping[str, float]]
    seconds_before: Mapping[str, float]
    refusal: str

    @property
    def broken(self) -> list[Row]:
        """The broken expectations, errors first."""
        found = [row for row in self.quality if not row["success"]]
        return sorted(found, key=lambda row: (row["severity"], row["table"], row["expectation"]))


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings(RunFindings):
    """The results of a run that joined its points, from which alone the page and its pictures are made.

    The keys of rows are the column names of the table contracts, so that rows can be passed on as they were
    read; keys that are not named here are ignored.

    Parameters
    ----------
    metric, unit : name of the metric and unit of its distances ("" if there is none).
    coordinates : names of the coordinate columns, in contract order.
    n_points, n_pairs : rows of ``points`` and of ``pairs``.
    n_clusters, n_core, n_border, n_noise : clusters, and points per role; the roles add up to ``n_points``.
    epsilon : the row of ``epsilon``; empty if there is none.
    curve_radius, curve_pairs, curve_in_fit : (m,) float64, float64, bool; ``epsilon_curve`` by ascending
        radius. m may be 0.
    plan : the row of ``join_plan`` (kind, split_rule, n_parts, sample_rows, expected_rows,
        expected_candidates, expected_pairs, base, generation, placed, gone, why) and what follows from it:
        expected_part_rows (of the largest part), expected_worker_bytes (upper bound), expected_seconds (on
        one core), none of them for an increment; empty if there is none.
    n_replicas, n_candidates : the measured numbers that the plan's expectations are compared with; ``None``
        if they were not counted.
    map_points : (n, 2) float64, x and y of a bounded sample of the points, in the coordinates' own unit.
        On a geographic map x is the longitude and y the latitude. With a single coordinate y is 0.
    map_cluster_ids : (n,) int64, ``NOISE`` for noise.
    map_axes : names of x and y; the second is "" with a single coordinate.
    is_geographic : whether x and y are degrees of longitude and latitude.
    largest_clusters : the clusters that the page lists, the largest first: cluster_id, size, core, border,
        centre (a number for each of the first coordinates), dimensions (in words, those in which it deviates
        most from all points; ``None`` for documents), key and label (a few words, or ``None``) of the core
        point with the smallest id, and called, by which all pictures call the cluster: the label of the
        record that named it when it was born, or its name (``None`` where these are label and id above).
    n_usual, n_of_cluster : maximum numbers of all points, and of points of a cluster, from which the medians
        behind its dimensions were taken; 0 for documents.
    cluster_sizes, cluster_size_counts : (s,) int64 each: the distinct cluster sizes, ascending, and how
        many clusters have each.
    outliers : the first rows of ``outliers`` by rank: rank, id, k_distance, lof, degree,
        dimensions; key and label; columns, the values of the source's columns by name; tied, the first and
        the last rank of the points that only their ids order; nearest, the nearest points (id, key, label,
        distance each).
    k : the number of the neighbour whose distance is the k-distance.
    k_distance, k_distance_fraction : (c,) float64 each: ascending distances, and the fraction of the points
        whose k-th neighbour lies within each.
    other_eps : what other ε would yield, by ascending eps: eps, pairs, neighbours, fraction (of the
        points, with their k-th neighbour within eps), is_chosen, is_knee (of the k-distance curve),
        is_measured (whether the sample has enough pairs to count); each number may be ``None``.
    run_before : the run before, that of ``comparison`` or, without one, the latest earlier run with points;
        "" if there is none.
    trends : rows of the last runs, oldest first, this run last: run, points, pairs, eps, min_pts, clusters,
        noise, refused, errors (broken expectations of that severity), born, ended (names of clusters since
        the run before), seconds (of all steps except the report; not known of a run that was stopped); each
        may be ``None``.
    comparison : what the job ``compare`` found; ``None`` if it has not run.
    guard : rows of ``guard``: check, observed, limit, verdict, against, words; empty: nothing was guarded.
    alike : for documents, two from each of the largest clusters: cluster_id, distance, left and right (id,
        key, label, text: the document, line by line), edits (a text each). Empty where points have
        coordinates.

    Raises
    ------
    ValueError
        Arrays that belong together have different lengths.
    """

    metric: str
    unit: str
    coordinates: tuple[str, ...]
    n_points: int
    n_pairs: int
    n_clusters: int
    n_core: int
    n_border: int
    n_noise: int
    epsilon: Row
    curve_radius: NDArray[np.float64]
    curve_pairs: NDArray[np.float64]
    curve_in_fit: NDArray[np.bool_]
    plan: Row
    n_replicas: int | None
    n_candidates: int | None
    map_points: NDArray[np.float64]
    map_cluster_ids: NDArray[np.int64]
    map_axes: tuple[str, str]
    is_geographic: bool
    largest_clusters: Sequence[Row]
    cluster_sizes: NDArray[np.int64]
    cluster_size_counts: NDArray[np.int64]
    outliers: Sequence[Row]
    k: int
    k_distance: NDArray[np.float64]
    k_distance_fraction: NDArray[np.float64]
    other_eps: Sequence[Row]
    run_before: str
    trends: Sequence[Row]
    comparison: Comparison | None
    guard: Sequence[Row]
    alike: Sequence[Row] = ()
    n_usual: int = 0
    n_of_cluster: int = 0

    def __post_init__(self) -> None:
        n = len(self.map_points)
        if self.map_points.shape != (n, 2):
            raise ValueError(f"map_points must have two columns, its shape is {self.map_points.shape}")
        for names in (
            ("map_points", "map_cluster_ids"),
            ("curve_radius", "curve_pairs", "curve_in_fit"),
            ("cluster_sizes", "cluster_size_counts"),
            ("k_distance", "k_distance_fraction"),
        ):
            lengths = [len(getattr(self, name)) for name in names]
            if len(set(lengths)) > 1:
                raise ValueError(f"{', '.join(names)} must have one length, they have {lengths}")

    @property
    def eps(self) -> float | None:
        """The distance threshold of the run, in the unit of the metric."""
        return to_number(self.epsilon.get("eps"))


@dataclass(frozen=True, kw_only=True, eq=False)
class MatchFindings(RunFindings):
    """The results of a run that matched its records, the left ones, with those of another data set.

    Parameters
    ----------
    partner : what came in of the other data set, the right one.
    how, take : as in the section ``match`` of the contract.
    criteria : what was compared, in the contract's order: name, eps, unit, lacking (the left and the right
        records without a match that lack it), edges and counts (how many of the matches have a distance from
        each edge to the next), median, largest (of the distances; ``None`` without matches).
    asked_from, asked_until : where runs follow one another, the times of the first left records that the run
        is about, and that the next run is about, as texts; "" where a run is a whole snapshot.
    n_left, n_right : records in the table, with a match and without: those that the run is about, or that are
        the match of one.
    n_left_alone, n_right_alone : those of them without a match.
    n_pairs, n_mutual : matches, and those that are best for both records.
    n_several : records that the run is about with more than one best match.
    map_pairs : (p, 4) float64, a bounded sample of the matches: longitude and latitude of the left and of the
        right record. (0, 4) where no criterion is a place.
    map_left, map_right : (n, 2) and (m, 2) float64, the same of records without a match.
    is_on_map : whether a criterion is a place.
    farthest, several, alone : a few matches with the largest distances in units of ε, of records with several
        matches, and records without one. Of matches: left and right (id, key and the compared values of
        each), distances (in the order of the criteria), best_for. Of records: side (left or right), id, key,
        values, lacking.
    trends : rows of the last runs, oldest first, this run last: run, records, matched, pairs, unmatched.
    """

    partner: Intake
    how: str
    take: str
    criteria: Sequence[Row]
    asked_from: str
    asked_until: str
    n_left: int
    n_right: int
    n_left_alone: int
    n_right_alone: int
    n_pairs: int
    n_mutual: int
    n_several: int
    map_pairs: NDArray[np.float64]
    map_left: NDArray[np.float64]
    map_right: NDArray[np.float64]
    is_on_map: bool
    farthest: Sequence[Row]
    several: Sequence[Row]
    alone: Sequence[Row]
    trends: Sequence[Row]


def to_number(value: object) -> float | None:
    """Convert a value of a nullable column to a number; null, NaN and infinity become ``None``."""
    if value is None:
        return None
    number = float(value)  # type: ignore[arg-type]  # a column's value is a number or null
    return number if np.isfinite(number) else None
