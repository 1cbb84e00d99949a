"""Facts that a task reports."""

from __future__ import annotations

from epsjoin.spark.ingest.facts import FileFacts, KindCount, RowCounts, facts_of, to_dict
from epsjoin.spark.tasks.reports import TaskReport


def test_facts__come_back_from_a_report_as_they_were() -> None:
    facts = [
        FileFacts("a.csv", 7, "00", 2, 0, ["x", "é"], None),
        RowCounts("a.csv", kept=1, quarantined=1),
        KindCount("x: missing", 1),
        FileFacts("b.csv", 0, "00", 0, 0, [], "b.csv: the file has nothing in it"),
    ]
    report = TaskReport(facts=[to_dict(fact) for fact in facts])
    assert facts_of([TaskReport.from_json(report.to_json())]) == facts
