"""A run at a glance: the few numbers that a list of runs shows, as a small JSON file in the page's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from epsjoin.findings import Findings, RunFindings


def summarise(findings: Findings) -> dict[str, Any]:
    """Pick what a list shows of a run.

    Returns
    -------
    dataset, title, run, eps, unit, points, pairs, clusters; noise_share: from 0 to 1, ``None`` without
    points; quality: how many expectations are held, and how many are broken by severity (warnings, errors);
    ``None`` where the tables were not checked.
    """
    return {
        "dataset": findings.dataset,
        "title": findings.title,
        "run": findings.run,
        "eps": findings.eps,
        "unit": findings.unit,
        "points": findings.n_points,
        "pairs": findings.n_pairs,
        "clusters": findings.n_clusters,
        "noise_share": findings.n_noise / findings.n_points if findings.n_points else None,
        "quality": count_quality(findings),
    }


def count_quality(findings: RunFindings) -> dict[str, int] | None:
    """Count the expectations that are held, and the broken ones by severity; ``None``: not checked."""
    if not findings.quality:
        return None
    broken = [row["severity"] for row in findings.broken]
    return {
        "held": len(findings.quality) - len(broken),
        "warnings": broken.count("warning"),
        "errors": broken.count("error"),
    }


def to_json(summary: Mapping[str, Any]) -> bytes:
    """Write a summary as JSON, keys sorted: the same findings give the same bytes."""
    return json.dumps(summary, sort_keys=True, indent=2, allow_nan=False).encode() + b"\n"
