"""The pipeline, said once: its tables in their order, who writes each, what it is made from, who checks it.

Everything else that needs a list of tables or jobs derives it from here. To add a table: its contract in
``data_contracts/tables``, a line here, and the step that writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

ANY_JOB = "any job"
"""The writer of tables to which every job adds rows of its own."""


class Input(NamedTuple):
    """A table that another one is made from, and what tells whether it has changed since.

    Parameters
    ----------
    table : name of the table.
    by : ``files``: the names of its files, which are never used twice. ``fingerprint``: its own fingerprint,
        for a table that is the same whenever it is made from the same inputs. Otherwise the name of a column
        of its only row.
    is_before : whether the slice of the run before is meant, the latest earlier one whose clusters fit, and
        nothing where there is none. If it is the same table, the names of its files count, not what they were
        made from: they change with that, and so on back to the first run.
    is_partner : whether the slice is that of the data set with which this one is matched.
    is_previous : whether the slice of the interval before is meant, where records are matched across runs,
        and nothing where there is none.
    """

    table: str
    by: str = "files"
    is_before: bool = False
    is_partner: bool = False
    is_previous: bool = False


@dataclass(frozen=True)
class Table:
    """One table of the lake.

    Parameters
    ----------
    name : as in ``data_contracts/tables``.
    written_by : the job that replaces the run's slice, or ``ANY_JOB``.
    gate : the stage of the job ``quality`` that checks it; None: it is not checked.
    made_from : the tables whose state its fingerprint covers, in the order of the digest.
    fingerprint : what the names of its files begin with. ``inputs``: the digest of ``made_from``; ``pass``: a
        random text that all tables of one pass of the job share, for what is made from files outside of the
        lake; ``none``: nothing.
    section : a section of the data set's contract, which the fingerprint covers, too; empty: none.
    of_trees : for data sets of documents, which are compared as trees, the job that writes it in place of
        ``written_by``; empty: the same.
    is_only_of_trees : whether other data sets do not have it.
    agrees : for a table of one row: a table of one row and the column in which both must have the same value.
    """

    name: str
    written_by: str
    gate: str | None = None
    made_from: tuple[Input, ...] = ()
    fingerprint: Literal["inputs", "pass", "none"] = "inputs"
    agrees: tuple[str, str] | None = None
    section: str = ""
    of_trees: str = ""
    is_only_of_trees: bool = False

    def writer(self, chain: str) -> str:
        """The job that writes it in a chain; empty: the chain does not have it."""
        if chain != "trees":
            return "" if self.is_only_of_trees else self.written_by
        return self.of_trees or self.written_by


_POINTS = Input("points")
_PLANNED = (_POINTS, Input("join_plan", by="plan"))

_TABLES = (
    Table("snapshots", "ingest", "input", fingerprint="pass"),
    Table("quarantine", "ingest", "input", fingerprint="pass"),
    Table("guard", "ingest", "input", fingerprint="pass"),
    Table("digests", "ingest", "input", fingerprint="pass"),
    Table("value_counts", "ingest", "input", fingerprint="pass"),
    Table("points", "ingest", "input", fingerprint="pass"),
    Table("epsilon", "fit_epsilon", "results", (_POINTS,)),
    Table("epsilon_curve", "fit_epsilon", "results", (Input("epsilon"),)),
    # the plan itself is what its readers compare, so that the same plan made again changes nothing
    Table(
        "join_plan", "replicate", "results", (_POINTS, Input("epsilon")), "none", agrees=("epsilon", "eps")
    ),
    Table("replicas", "replicate", "results", _PLANNED),
    Table("candidates", "merge_join", "results", _PLANNED, is_only_of_trees=True),
    # the candidates are a function of points and plan, and so are the pairs among them
    Table("pairs", "merge_join", "results", _PLANNED, of_trees="refine"),
    Table("clusters", "cluster", "results", _PLANNED),
    # the same plan gives the same pairs: pairs that were joined again need no new ranks
    Table("outliers", "outliers", "results", (Input("clusters"), Input("pairs", by="fingerprint"))),
    Table("changes", "compare", "results", (_POINTS, Input("points", is_before=True))),
    Table("cluster_flows", "compare", "results", (Input("clusters"), Input("clusters", is_before=True))),
    Table(
        "cluster_names",
        "compare",
        "results",
        (Input("cluster_flows"), Input("cluster_names", is_before=True)),
    ),
    Table("cluster_events", "compare", "results", (Input("cluster_names"),)),
    Table(
        "matches",
        "match",
        "matches",
        (
            _POINTS,
            Input("points", is_partner=True),
            Input("points", is_previous=True),
            Input("points", is_partner=True, is_previous=True),
        ),
        section="match",
    ),
    Table("quality", "quality", fingerprint="none"),
    Table("job_metrics", ANY_JOB, fingerprint="none"),
)

TABLES = {table.name: table for table in _TABLES}
"""All tables by name, each after those that it is made from."""

CHAINS = {"join": ("input", "results"), "trees": ("input", "results"), "match": ("input", "matches")}
"""The gates that a run passes, by what its data set is for; a gate needs the tables of those before it.

``trees`` is the chain of documents: candidates are joined by their histograms, and refined to pairs.
"""

_GATES = tuple(dict.fromkeys(table.gate for table in _TABLES if table.gate is not None))


def tables_at(stage: str, chain: str = "join") -> tuple[str, ...]:
    """The tables that a gate checks in a chain, in their order."""
    return tuple(table.name for table in _TABLES if table.gate == stage and table.writer(chain))


STAGES = {gate: tables_at(gate) for gate in _GATES}
"""The tables that each gate checks, but for those of documents alone.

A rule of one may name tables of the same gate or of an earlier one.
"""


def jobs_of(chain: str) -> tuple[str, ...]:
    """The jobs of a chain in their order, as Airflow's tasks and ``job_metrics`` call them."""
    jobs: list[str] = []
    for stage in CHAINS[chain]:
        jobs += dict.fromkeys(TABLES[table].writer(chain) for table in tables_at(stage, chain))
        jobs.append(f"quality_{stage}")
    return (*jobs, "report")


def chain_of(stage: str) -> tuple[str, ...]:
    """The gates up to one, itself included, in their order."""
    stages = next(stages for stages in CHAINS.values() if stage in stages)
    return stages[: stages.index(stage) + 1]


def tables_up_to(stage: str, chain: str = "join") -> tuple[str, ...]:
    """The tables that a chain has at a gate and at those before it, in their order."""
    return tuple(table for each in chain_of(stage) for table in tables_at(each, chain))


def writer_of(table: str, chain: str = "join") -> str:
    """The job that writes a table; of a table outside of the lake the table's own name."""
    return TABLES[table].writer(chain) or TABLES[table].written_by if table in TABLES else table


def run_again(table: str, chain: str = "join") -> str:
    """Say which job to run again, so that a table is made anew."""
    return f"run {writer_of(table, chain)} again"


def joined_table(chain: str) -> str:
    """The table that the join of the points writes: pairs, or candidates that are still to be refined."""
    return tables_of("merge_join", chain)[0]


def tables_of(job: str, chain: str = "join") -> tuple[str, ...]:
    """The tables that a job writes, in their order; ``quality_input`` is a stage of the job ``quality``."""
    writers = (job, job.partition("_")[0] if job.startswith("quality_") else job, ANY_JOB)
    return tuple(table.name for table in _TABLES if table.writer(chain) in writers)
