"""What a run found, as plain Python and NumPy: everything that a report page needs and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Row = Mapping[str, Any]
"""A row of a table: column name to value; a null is ``None`` (a NaN and a missing key are read the same)."""

NOISE = -1
"""The cluster id of noise."""


@dataclass(frozen=True, eq=False)
class Findings:
    """One run's result; the page and its plots read nothing but this.

    Row keys are the column names of the table contracts, so that a row can be handed on as it was read;
    keys that are not named here are ignored.

    Parameters
    ----------
    dataset, title : the data set's name and title, as in its contract.
    run : logical date, ISO.
    metric, unit : the metric's name and the unit of its distances ("" where there is none).
    coordinates : names of the coordinate columns, in contract order.
    params : the parameters that the run used, name to value, in the order to show.
    n_points, n_pairs : rows of ``points`` and of ``pairs``.
    n_clusters, n_core, n_border, n_noise : clusters, and points per role; the roles add up to ``n_points``.
    snapshots : rows of ``snapshots``: source, bytes, sha256, rows_read, rows_ok, rows_quarantined.
    unknown_columns : columns of the files that the contract does not name; they were not read.
    quarantine_reasons : refused records by reason, in the order to show (most frequent first). Where
        reasons carry a value, the caller groups them and bounds their number.
    quarantine_examples : a few rows of ``quarantine``: source, line, reason, raw.
    epsilon : the row of ``epsilon``; empty where there is none.
    curve_radius, curve_pairs, curve_in_fit : (m,) float64, float64, bool; ``epsilon_curve`` by ascending
        radius. m may be 0.
    plan : the row of ``join_plan`` (kind, split_rule, n_parts, sample_rows, expected_rows,
        expected_candidates, expected_pairs) and what follows from it: expected_part_rows (of the largest
        part), expected_worker_bytes (at most), expected_seconds (of one core); empty where there is none.
    n_replicas, n_candidates : the measured sides of the plan's expectations; ``None`` where
        they were not counted.
    counters : job to counter to value, all of ``job_metrics``; ``seconds`` is the job's wall-clock time.
    map_points : (n, 2) float64, x and y of a bounded sample of the points, in the coordinates' own unit.
        On a geographic map x is the longitude and y the latitude. With a single coordinate y is 0.
    map_cluster_ids : (n,) int64, ``NOISE`` for noise.
    map_roles : (n,) str: core, border or noise.
    map_axes : names of x and y; the second is "" with a single coordinate.
    is_geographic : whether x and y are degrees of longitude and latitude.
    largest_clusters : the largest clusters first, as many as the page shall list: cluster_id, size, core,
        border, centre (one number per coordinate, contract order), and
        label (a few words that tell the cluster to a person, or ``None``).
    cluster_sizes, cluster_size_counts : (s,) int64 each: the distinct cluster sizes, ascending, and how
        many clusters have each.
    outliers : the first rows of ``outliers`` by rank: rank, id, k_distance, k_distance_above, lof, degree,
        dimensions, and nearest, the nearest points (id, label, distance each); every other key but run and
        is_noise is shown as a column of the source.
    label : the column of the source that tells a point to a person; "" where there is none.
    quality : rows of ``quality``: table, expectation, severity, success, observed; none: not checked.
    k : neighbours that the k-distance looks at.
    k_distance, k_share, k_is_counted : (c,) float64, float64, bool; rising distances, and the share of the
        points whose k-th neighbour lies within each: counted on all points, or estimated on the sample.
    other_eps : what other ε would give, by rising eps: eps, pairs, neighbours, share (of the points, with
        their k-th neighbour within it), is_chosen, is_knee (of the k-distance curve), is_measured (whether
        the sample's curve goes so far); each number may be ``None``.
    difference : to the run before: run, is_keyed, added, removed, changed, same (rows of ``points``; the last
        two ``None`` without a key) and examples: a few rows of what, id, label and columns (name, before,
        now); empty where there is no run before.
    trends : the last runs, oldest first, this one the last: run, points, pairs, eps, clusters, noise,
        refused, errors (expectations of that severity that do not hold), seconds (of all steps but the
        report); each may be ``None``.
    seconds_before : job to seconds in the run before.

    Raises
    ------
    ValueError
        Arrays that belong together differ in length.
    """

    dataset: str
    title: str
    run: str
    metric: str
    unit: str
    coordinates: tuple[str, ...]
    params: Mapping[str, Any]
    n_points: int
    n_pairs: int
    n_clusters: int
    n_core: int
    n_border: int
    n_noise: int
    snapshots: Sequence[Row]
    unknown_columns: tuple[str, ...]
    quarantine_reasons: Mapping[str, int]
    quarantine_examples: Sequence[Row]
    epsilon: Row
    curve_radius: NDArray[np.float64]
    curve_pairs: NDArray[np.float64]
    curve_in_fit: NDArray[np.bool_]
    plan: Row
    n_replicas: int | None
    n_candidates: int | None
    counters: Mapping[str, Mapping[str, float]]
    map_points: NDArray[np.float64]
    map_cluster_ids: NDArray[np.int64]
    map_roles: NDArray[np.str_]
    map_axes: tuple[str, str]
    is_geographic: bool
    largest_clusters: Sequence[Row]
    cluster_sizes: NDArray[np.int64]
    cluster_size_counts: NDArray[np.int64]
    outliers: Sequence[Row]
    label: str
    quality: Sequence[Row]
    k: int
    k_distance: NDArray[np.float64]
    k_share: NDArray[np.float64]
    k_is_counted: NDArray[np.bool_]
    other_eps: Sequence[Row]
    difference: Row
    trends: Sequence[Row]
    seconds_before: Mapping[str, float]

    def __post_init__(self) -> None:
        n = len(self.map_points)
        if self.map_points.shape != (n, 2):
            raise ValueError(f"map_points must have two columns, its shape is {self.map_points.shape}")
        for names in (
            ("map_points", "map_cluster_ids", "map_roles"),
            ("curve_radius", "curve_pairs", "curve_in_fit"),
            ("cluster_sizes", "cluster_size_counts"),
            ("k_distance", "k_share", "k_is_counted"),
        ):
            lengths = [len(getattr(self, name)) for name in names]
            if len(set(lengths)) > 1:
                raise ValueError(f"{', '.join(names)} must have one length, they have {lengths}")

    @property
    def eps(self) -> float | None:
        """The run's distance threshold in the metric's unit."""
        return known(self.epsilon.get("eps"))

    @property
    def broken(self) -> list[Row]:
        """The expectations that do not hold, errors first."""
        found = [row for row in self.quality if not row["success"]]
        return sorted(found, key=lambda row: (row["severity"], row["table"], row["expectation"]))

    @property
    def n_quarantined(self) -> int:
        """Records that went to quarantine, over all files."""
        return sum(int(row.get("rows_quarantined") or 0) for row in self.snapshots)


def known(value: object) -> float | None:
    """Read the number of a nullable column; ``None`` for null, NaN and infinity."""
    if value is None:
        return None
    number = float(value)  # type: ignore[arg-type]  # a column's value is a number or null
    return number if np.isfinite(number) else None
