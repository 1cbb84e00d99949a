import dataclasses

import numpy as np
import pytest

from epsjoin.findings import Findings, to_number


def test_findings__refuse_arrays_of_different_length(example: Findings) -> None:
    with pytest.raises(ValueError, match="map_points, map_cluster_ids must have one length"):
        dataclasses.replace(example, map_cluster_ids=example.map_cluster_ids[1:])
    with pytest.raises(ValueError, match="curve_radius, curve_pairs, curve_in_fit must have one length"):
        dataclasses.replace(example, curve_in_fit=example.curve_in_fit[1:])
    with pytest.raises(ValueError, match="k_distance, k_distance_fraction must have one length"):
        dataclasses.replace(example, k_distance_fraction=example.k_distance_fraction[1:])
    with pytest.raises(ValueError, match="cluster_sizes, cluster_size_counts must have one length"):
        dataclasses.replace(example, cluster_sizes=example.cluster_sizes[1:])


def test_findings__refuse_map_points_without_two_columns(example: Findings) -> None:
    with pytest.raises(ValueError, match="two columns"):
        dataclasses.replace(example, map_points=np.zeros((len(example.map_points), 3)))


def test_findings__sum_the_refused_records_of_all_files(example: Findings) -> None:
    two = dataclasses.replace(
        example, snapshots=[{"rows_quarantined": 3}, {"rows_quarantined": 4}, {"source": "x"}]
    )
    assert two.n_quarantined == 7


def test_to_number__reads_null_nan_and_infinity_as_none() -> None:
    assert [to_number(value) for value in (None, float("nan"), float("inf"), 0, np.float32(2.5))] == [
        None,
        None,
        None,
        0.0,
        2.5,
    ]
