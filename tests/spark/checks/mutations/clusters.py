"""Ways in which ``clusters`` may be wrong."""

from __future__ import annotations

from tests.spark.checks.mutations.tables import POINT, Change, Seen, Tables


def two_clusters_merged(tables: Tables) -> None:
    one, other = sorted(tables.names()[:2])
    for row in tables.cluster(other):
        row["cluster_id"] = one


def a_cluster_merged_with_a_core_point_alone(tables: Tables) -> None:
    cores = set(tables.ids("core"))
    alone = next(id_ for id_ in sorted(cores)[::-1] if not cores.intersection(tables.near[id_]))
    for row in tables.cluster(alone):
        row["cluster_id"] = min(name for name in tables.names())


def a_cluster_split(tables: Tables) -> None:
    """Its core points with larger ids than one of them are another cluster of that name."""
    name = tables.names()[0]
    cores = [row for row in tables.cluster(name) if row["role"] == "core"]
    second = sorted(row["id"] for row in cores)[1]
    for row in cores:
        row["cluster_id"] = min(max(row["id"], name), second) if row["id"] >= second else name


def a_cluster_named_by_another_core_point(tables: Tables) -> None:
    rows = tables.cluster(tables.names()[0])
    new = sorted(row["id"] for row in rows if row["role"] == "core")[1]
    for row in rows:
        row["cluster_id"] = new


def a_cluster_named_by_a_number_of_its_own(tables: Tables) -> None:
    for row in tables.cluster(tables.names()[0]):
        row["cluster_id"] = 1_000_000


def two_clusters_with_each_others_names(tables: Tables) -> None:
    one, other = tables.names()[:2]
    rows = tables.cluster(one), tables.cluster(other)
    for row in rows[0]:
        row["cluster_id"] = other
    for row in rows[1]:
        row["cluster_id"] = one


def a_core_point_called_border(tables: Tables) -> None:
    id_ = next(id_ for id_ in tables.ids("core") if tables.labels[id_]["cluster_id"] != id_)
    tables.labels[id_]["role"] = "border"


def a_border_point_called_core(tables: Tables) -> None:
    tables.labels[tables.ids("border")[0]]["role"] = "core"


def a_border_point_in_a_cluster_without_a_core_point_near(tables: Tables) -> None:
    id_ = tables.ids("border")[0]
    near = {tables.labels[other]["cluster_id"] for other in tables.near[id_]}
    tables.labels[id_]["cluster_id"] = next(name for name in tables.names() if name not in near)


def a_border_point_in_the_cluster_of_a_farther_core_point(tables: Tables) -> None:
    cores = set(tables.ids("core"))
    for id_ in tables.ids("border"):
        own = tables.labels[id_]["cluster_id"]
        others = {tables.labels[each]["cluster_id"] for each in cores.intersection(tables.near[id_])} - {own}
        if others:
            tables.labels[id_]["cluster_id"] = min(others)
            return
    raise AssertionError("no border point is between two clusters")


def a_border_point_called_noise(tables: Tables) -> None:
    tables.labels[tables.ids("border")[0]].update(role="noise", cluster_id=-1)
    tables.say_noise_anew()


def noise_called_border(tables: Tables) -> None:
    tables.labels[tables.ids("noise")[0]].update(role="border", cluster_id=tables.names()[0])
    tables.say_noise_anew()


def noise_in_a_cluster(tables: Tables) -> None:
    tables.labels[tables.ids("noise")[0]]["cluster_id"] = tables.names()[0]


def a_degree_off_in_both_tables(tables: Tables) -> None:
    for of in (tables.labels, tables.scores):
        of[tables.ids("noise")[0]]["degree"] += 1


def a_label_missing(tables: Tables) -> None:
    tables.clusters.remove(tables.labels[tables.ids("noise")[0]])


def a_label_twice(tables: Tables) -> None:
    tables.clusters.append(dict(tables.labels[tables.ids("noise")[0]]))


def a_label_of_no_point(tables: Tables) -> None:
    tables.clusters.append(tables.labels[tables.ids("noise")[0]] | {"id": 5000, "degree": 1})


CLUSTERS: dict[Change, Seen] = {
    two_clusters_merged: Seen((), r"cluster \d+ is 2 clusters: no chain of core points connects \d+ and \d+"),
    a_cluster_merged_with_a_core_point_alone: Seen(
        (), POINT + r"it is core in cluster \d+, but no other core point is within eps"
    ),
    a_cluster_split: Seen((), r"pair \(\d+, \d+\): both are core points, but in the clusters \d+ and \d+"),
    a_cluster_named_by_another_core_point: Seen((), POINT + r"core point in cluster \d+, a larger id"),
    a_cluster_named_by_a_number_of_its_own: Seen(
        ("a_cluster_is_named_by_a_core_point_of_its_own",),
        POINT + "cluster 1000000 has no core point of that id",
    ),
    two_clusters_with_each_others_names: Seen(
        ("a_cluster_is_named_by_a_core_point_of_its_own",),
        POINT + r"cluster \d+ has no core point of that id",
    ),
    a_core_point_called_border: Seen(
        ("core_points_have_more_pairs_than_others",), POINT + r"role border is stored, its degree is \d+"
    ),
    a_border_point_called_core: Seen(
        ("core_points_have_more_pairs_than_others",), POINT + r"role core is stored, its degree is \d+"
    ),
    a_border_point_in_a_cluster_without_a_core_point_near: Seen(
        (), POINT + r"cluster \d+ is stored, its nearest core point \d+ is in \d+"
    ),
    a_border_point_in_the_cluster_of_a_farther_core_point: Seen(
        (), POINT + r"cluster \d+ is stored, its nearest core point \d+ is in \d+"
    ),
    a_border_point_called_noise: Seen((), POINT + r"it is noise, but core point \d+ is within eps"),
    noise_called_border: Seen((), POINT + "it is border, but no core point is within eps"),
    noise_in_a_cluster: Seen(("noise_is_in_no_cluster",), POINT + r"role noise in cluster \d+"),
    a_degree_off_in_both_tables: Seen(
        ("degree_is_the_number_of_pairs",), POINT + r"degree \d+ is stored, its pairs make \d+"
    ),
    a_label_missing: Seen(
        ("every_point_has_a_label", "flows_end_in_all_points"), POINT + "it has no row in clusters"
    ),
    a_label_twice: Seen(
        ("rows differ in id", "flows_end_in_all_points"), POINT + "clusters has it more than once"
    ),
    a_label_of_no_point: Seen(
        ("every_label_is_of_a_point", "flows_end_in_all_points"),
        "point 5000: it is in pairs or clusters, but not in points",
    ),
}
