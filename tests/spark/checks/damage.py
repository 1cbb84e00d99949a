"""Damage to right tables that fits their logs and file names."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq

from epsjoin.lake import slices, uris
from epsjoin.lake.arrow import to_binary, to_matrix
from epsjoin.lake.lake import Slice
from epsjoin.local.sweep.pairs import Pairs
from epsjoin.spark.job.job import Job
from tests.spark.checks.right_tables import change_labels, write_pairs
from tests.tiny import RUN


class Damage:
    """Changes of right tables that fit their logs and file names; each returns what verify says."""

    def __init__(self, job: Job, pairs: Pairs) -> None:
        self.job, self.pairs = job, pairs
        self.ends = list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))
        rows = slices.read_slice(job.lake, Slice("clusters", RUN)).to_pylist()
        self.labels = {row["id"]: row for row in rows}
        self.near: dict[int, set[int]] = {id_: set() for id_ in self.labels}
        for left, right in self.ends:
            self.near[left].add(right)
            self.near[right].add(left)

    def points(self, role: str) -> list[int]:
        return [id_ for id_, row in sorted(self.labels.items()) if row["role"] == role]

    def other_cluster(self, id_: int) -> int:
        """A cluster with a smaller name than the point's id, but not its own."""
        names = {row["cluster_id"] for row in self.labels.values() if row["role"] == "core"}
        return int(min(names - {self.labels[id_]["cluster_id"]}))

    def some_pairs_gone(self) -> str:
        write_pairs(self.job, Pairs(*(column[1:] for column in self.pairs)))
        return r"point \d+: degree \d+ is stored, its pairs make \d+"

    def one_core_label(self) -> str:
        core = next(id_ for id_ in self.points("core")[::-1] if self.labels[id_]["cluster_id"] != id_)
        change_labels(self.job, core, cluster_id=self.other_cluster(core))
        return rf"pair .*\b{core}\b.*: both are core points, but in the clusters \d+ and \d+"

    def the_label_of_a_core_without_others(self) -> str:
        """As if its whole cluster had another's name: no chain of core points connects them."""
        cores = set(self.points("core"))
        core = next(id_ for id_ in self.points("core")[::-1] if not self.near[id_] & cores)
        name = self.other_cluster(core)
        for id_, row in self.labels.items():
            if row["cluster_id"] == core:
                change_labels(self.job, id_, cluster_id=name)
        return f"point {core}: it is core in cluster {name}, but no other core point is within eps"

    def one_border_label(self) -> str:
        border = self.points("border")[-1]
        change_labels(self.job, border, cluster_id=self.other_cluster(border))
        return f"point {border}: cluster .* is stored, its nearest core point .* is in"

    def noise_made_border(self) -> str:
        noise = self.points("noise")[-1]
        change_labels(self.job, noise, role="border", cluster_id=self.other_cluster(noise))
        return f"point {noise}: it is border, but no core point is within eps"

    def border_made_noise(self) -> str:
        border = self.points("border")[-1]
        change_labels(self.job, border, role="noise", cluster_id=-1)
        return f"point {border}: it is noise, but core point .* is within eps"

    def one_distance_by_one_bit(self) -> str:
        distance = self.pairs.distance.copy()
        distance[-1] = np.nextafter(distance[-1], 1.5)
        write_pairs(self.job, Pairs(self.pairs.left, self.pairs.right, distance))
        left, right = self.ends[-1]
        return rf"pair \({left}, {right}\) is stored at .*, its distance is"

    def a_tenth_of_all_distances(self) -> str:
        distance = self.pairs.distance.copy()
        distance[::10] = np.nextafter(distance[::10], 1.5)
        write_pairs(self.job, Pairs(self.pairs.left, self.pairs.right, distance))
        return r"pair \(\d+, \d+\) is stored at .*, its distance is"

    def one_coordinate_by_one_bit(self) -> str:
        """In its file, whose name and log stay; of the point with the most pairs."""
        file = slices.files_of(self.job.lake, Slice("points", RUN))[-1]
        path = f"{uris.filesystem_of(self.job.lake.location('points'))[1]}/{file.path}"
        stored = pq.read_table(path, partitioning=None)
        place = max(range(stored.num_rows), key=lambda row: len(self.near[stored["id"][row].as_py()]))
        points = to_matrix(stored["point"], 2).copy()
        points[place, 0] = np.nextafter(points[place, 0], 100.0)
        at = stored.schema.get_field_index("point")
        pq.write_table(stored.set_column(at, stored.schema.field(at), to_binary(points)), path)
        return r"pair \(\d+, \d+\) is stored at .*, its distance is"

    def a_pair_of_noise_gone_and_degrees_made_to_fit(self) -> str:
        noise = set(self.points("noise"))
        place = next(place for place, ends in enumerate(self.ends) if noise.issuperset(ends))
        write_pairs(self.job, Pairs(*(np.delete(column, place) for column in self.pairs)))
        for end in self.ends[place]:
            change_labels(self.job, end, degree=self.labels[end]["degree"] - 1)
        left, right = self.ends[place]
        return rf"pair \({left}, {right}\) at .* is missing"
