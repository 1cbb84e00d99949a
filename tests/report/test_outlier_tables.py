"""The tables of clusters and outliers: how points are named, and which ranks are tied."""

from __future__ import annotations

import dataclasses
import math

from epsjoin.findings import Findings
from epsjoin.report import page, sentences
from tests.html_reader import Reader


def test_page__lists_clusters_and_outliers(reader: Reader, example: Findings) -> None:
    row = example.largest_clusters[1]
    north, east = row["centre"]
    apart = "longitude_deg +1.3, latitude_deg -0.4"
    assert (
        f"PL1 Place 1 60 {row['core']} {row['border']} {north:.6g}, {east:.6g} {apart} 1000" in reader.words
    )
    near = "3.42 km: LYR ( Lyra ), 57 km: X1 ( – )"
    assert f"1 PEG Pegasus latitude_deg -4.2 {near} 61.2 km 17.2 1 power HIGH , id 96088" in reader.words
    assert "2 X2 – – – 2.01 km 3.22 5 power – , id 96089" in reader.words
    assert "is_noise" not in reader.words


def test_page__says_of_which_points_the_medians_of_clusters_are(mapless: Findings) -> None:
    text, sampled = Reader(page.render(mapless)).words, "Medians are those of random points:"
    assert "what deviates : the coordinates in which the median of a cluster is furthest from" in text
    assert sampled not in text
    assert sampled not in sentences.deviations(dataclasses.replace(mapless, n_usual=mapless.n_points))
    few = dataclasses.replace(mapless, n_usual=700, n_of_cluster=60)
    both = f"{sampled} 700 of all points and at most 60 of each cluster."
    assert both in Reader(page.render(few)).words
    assert f"{sampled} 700 of all points." in sentences.deviations(dataclasses.replace(few, n_of_cluster=120))
    assert f"{sampled} at most 119 of" in sentences.deviations(dataclasses.replace(mapless, n_of_cluster=119))


def test_page__of_a_point_beside_equal_ones_has_an_infinite_factor(mapless: Findings) -> None:
    first, second, *rest = mapless.outliers
    tied = [{**row, "lof": math.inf, "k_distance": 1.0, "tied": (1, 2)} for row in (first, second)]
    found = dataclasses.replace(mapless, outliers=[*tied, *rest])
    assert "∞ 1 power HIGH" in Reader(page.render(found)).words
    assert "ranks 1 to 2 (LOF ∞, k-distance 1)" in sentences.ties(found)


def test_page__shows_no_coordinates_of_64_dimensions(mapless: Findings) -> None:
    names = tuple(f"f{i}" for i in range(64))
    rows = [{**row, "columns": {**row["columns"], **dict.fromkeys(names, 1.0)}} for row in mapless.outliers]
    wide = dataclasses.replace(mapless, coordinates=names, outliers=rows, is_geographic=False)
    found = page.render(wide)
    assert "The 64 coordinates are not shown; they are in the table <code>points</code>." in found
    text = Reader(found).words
    assert "f0 1" not in text
    assert "power HIGH" in text


def test_tables__name_points_by_the_key_of_the_source(mapless: Findings) -> None:
    """The 64-bit id of a key means nothing to a person; it stands last, for those who ask the tables."""
    hashed = [{**row, "id": -5764689424205364170} for row in mapless.outliers]
    two = dataclasses.replace(
        mapless,
        key=("country", "code"),
        outliers=[{**row, "key": ["NO", *row["key"]], "nearest": []} for row in hashed],
        largest_clusters=[{**row, "key": ["NO", *row["key"]]} for row in mapless.largest_clusters],
    )
    text = Reader(page.render(two)).words
    assert "rank country code name what deviates" in text
    assert "1 NO PEG Pegasus latitude_deg -4.2" in text
    assert "country code name size core border" in text
    assert "NO PL1 Place 1 60" in text


def test_tables__name_points_by_their_ids_where_the_source_has_no_key(mapless: Findings) -> None:
    none = dataclasses.replace(
        mapless,
        key=(),
        label="",
        outliers=[{**row, "key": [], "label": None, "tied": None} for row in mapless.outliers],
        largest_clusters=[{**row, "key": [], "label": None} for row in mapless.largest_clusters],
    )
    text = Reader(page.render(none)).words
    assert "rank id what deviates" in text
    assert "1 96088 latitude_deg -4.2" in text
    assert "cluster_id size core border" in text
    assert "1000 60 " in text


def test_tables__name_a_point_once_where_its_label_is_its_key(mapless: Findings) -> None:
    text = Reader(page.render(dataclasses.replace(mapless, key=("name",)))).words
    assert "rank name what deviates" in text
    assert "record 1 PEG latitude_deg -4.2" in text


def test_page__says_which_ranks_only_the_ids_order(mapless: Findings, reader: Reader) -> None:
    assert "Tied are" not in reader.words
    alone, known = mapless.outliers
    rows = [
        *({**alone, "rank": rank, "tied": (1, 3)} for rank in (1, 2, 3)),
        {**alone, "rank": 4, "tied": (4, 4), "k_distance": 60.0},
        {**known, "rank": 5, "tied": (5, 5420)},
    ]
    assert sentences.ties(dataclasses.replace(mapless, outliers=rows)) == (
        "Tied are ranks 1 to 3 (LOF 17.2, k-distance 61.2); ranks 5 to 5,420 (LOF 3.22, k-distance 2.01): "
        "among them the smaller id comes first, so their order says nothing."
    )
    row = {**known, "lof": None, "k_distance": None, "tied": (1, 2)}
    assert "(no LOF)" in sentences.ties(dataclasses.replace(mapless, outliers=[row]))
