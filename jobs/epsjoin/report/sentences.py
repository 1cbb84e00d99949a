"""The sentences of a run's page."""

from __future__ import annotations

from epsjoin.console import counted
from epsjoin.contracts.trees import METRIC
from epsjoin.findings import Comparison, Findings, Row, RunFindings, to_number
from epsjoin.report import costs, words
from epsjoin.vocabulary import EVENTS


def first_sentence(findings: Findings) -> str:
    """Say what was found: points, clusters, the largest cluster, and how many points belong to none."""
    points = counted(findings.n_points, "point")
    within = f"within {_write_eps(findings)}"
    if not findings.n_points:
        return "No points: the snapshot has no record that could be joined."
    if not findings.n_clusters:
        return f"{points}: no clusters {within}, and {counted(findings.n_pairs, 'pair')}."
    text = f"{points}: {counted(findings.n_clusters, 'cluster')} {within}, "
    if findings.largest_clusters:
        row = findings.largest_clusters[0]
        called = row.get("called") or row.get("label")
        label = f" ({words.isolate(words.cell(called))})" if called else ""
        text += f"the largest with {counted(row['size'], 'point')}{label}; "
    belong = "belongs" if findings.n_noise == 1 else "belong"
    return text + f"{counted(findings.n_noise, 'point')} {belong} to none."


HOW_JOINED = ("base", "generation", "placed", "gone", "why")
"""Columns of ``join_plan`` that :func:`how_joined` looks at."""


def how_joined(plan: Row) -> str:
    """Say from what the pairs were made, all points or another run, by the row of ``join_plan``."""
    if plan.get("base"):
        generation = int(plan["generation"])
        return (
            f"increment on run {plan['base']}, number {generation:,} in a row: "
            f"{counted(int(plan['placed']), 'point')} new or moved, "
            f"{words.count(plan['gone'])} deleted or moved"
        )
    why = plan.get("why")
    return f"of all points{f': {why}' if why else ''}"


def alarm(findings: RunFindings) -> str:
    """Say that the run was stopped, if it was."""
    errors = sum(row["severity"] == "error" for row in findings.broken)
    if not errors:
        return ""
    hold = "does not hold" if errors == 1 else "do not hold"
    return f"This run was stopped: {counted(errors, 'expectation')} {hold}. Do not rely on its results."


def _write_eps(findings: Findings) -> str:
    """Write the name and value of ε without a place for a line break."""
    if findings.eps is None:
        return "an unknown ε"
    return f"ε = {words.exact(findings.eps, findings.unit)}".replace(" ", words.NO_BREAK)


def why_eps(findings: Findings) -> str:
    """Say how ε was chosen, in a sentence for the page."""
    method, target = findings.epsilon.get("method"), findings.epsilon.get("target")
    if method == "given":
        return (
            f"{_write_eps(findings)} was set by the run or by the contract; it was not chosen from the data."
        )
    if method == "neighbours":
        number = words.measure(target)
        aim = f"a point has {number} neighbours within it on average, the point itself not counted"
    elif method == "pairs":
        aim = f"the join has about {words.count(target)} pairs"
    elif method == "k_distance_quantile":
        neighbour = max(1, int(findings.params.get("min_pts") or 1) - 1)
        # the k-distances are those of a thousand points
        aim = f"about {words.percent(target)} of the points have their neighbour number {neighbour} within it"
    else:
        return "How ε was chosen is not known."
    return f"{_write_eps(findings)} was chosen so that {aim}."


def why_eps_briefly(epsilon: Row) -> str:
    """Say how ε was chosen, in a few words for a line of text; ``epsilon`` is the row of that table."""
    method, target = epsilon["method"], epsilon["target"]
    if method == "given":
        return "set by the run or the contract"
    aims = {
        "neighbours": f"for {words.measure(target)} neighbours per point",
        "pairs": f"for {words.count(target)} pairs",
        "k_distance_quantile": f"as the {words.percent(target)} quantile of the k-distance",
    }
    law = ""
    is_measured = method == "k_distance_quantile" and epsilon["n_sample"] == epsilon["n_points"]
    if epsilon["exponent"] is not None and not is_measured:
        law = f" by the pair-count exponent {words.exponent(epsilon['exponent'])}"
    return f"chosen {aims[method]}{law}"


def power_law(findings: Findings) -> list[str]:
    """Describe the fitted power law, and compare the pairs that it expects at ε with the pairs found."""
    epsilon = findings.epsilon
    sentences = []
    exponent = to_number(epsilon.get("exponent"))
    if exponent is not None:
        low, high = (words.exponent(epsilon.get(f"exponent_{end}")) for end in ("low", "high"))
        first, last = (to_number(epsilon.get(f"range_{end}")) for end in ("low", "high"))
        sentences.append(
            f"On a sample of {words.count(epsilon.get('n_sample'))} points the number of pairs within r "
            f"grows like r to the power P = {words.exponent(exponent)} "
            f"(95 % interval {low} to {high}), fitted "
            f"from r = {words.measure(first, findings.unit)} to {words.measure(last, findings.unit)}, "
            f"R² = {words.measure(epsilon.get('r_squared'))}."
        )
        if findings.eps is not None and first is not None and findings.eps < first:
            sentences.append(
                "ε lies below the fitted range, so the numbers expected at ε rest on few pairs of the sample."
            )
    elif epsilon.get("note"):
        sentences.append(f"No power law was fitted: {epsilon['note']}")
    if to_number(epsilon.get("expected_pairs")) is not None:
        sentences.append(
            f"Expected at ε: {words.count(epsilon['expected_pairs'])} pairs, "
            f"{words.measure(epsilon.get('expected_neighbours'), digits=3)} neighbours per point; "
            f"found: {counted(findings.n_pairs, 'pair')}."
        )
    return sentences


def bounds(findings: Findings) -> str:
    """Say what the curves of documents are made from; empty where points are compared."""
    if findings.metric != METRIC:
        return ""
    return (
        "What follows is about the points of the documents, half of the histograms of their trees: two "
        "documents are at least as many edits apart as their points. The pairs that are expected are "
        "candidates, of which the pairs found are those whose documents are within ε."
    )


def bounds_of_outliers(findings: Findings) -> str:
    """Say what the distances of outliers are measured between; see :func:`bounds`."""
    if findings.metric != METRIC:
        return ""
    return "Distances and LOF are those of the points: a document is at least so many edits from the others."


def k_distances(findings: Findings) -> list[str]:
    """Say where the k-distance curve comes from, and where it bends most."""
    within = next((row["fraction"] for row in findings.other_eps if row["is_chosen"]), None)
    if within is None:
        return []
    sentences = [
        f"{words.percent(within)} of the points have their neighbour number {findings.k} within ε, counted "
        "on all points."
    ]
    knee = next((row for row in findings.other_eps if row["is_knee"]), None)
    if knee is not None:
        sentences.append(
            f"The curve bends most at {words.measure(knee['eps'], findings.unit)}. This "
            "knee is a usual choice of ε; a few points far from all others make it larger."
        )
    return sentences


def deviations(findings: Findings) -> str:
    """Say what it means that clusters deviate, and of which points it is known where these are not all."""
    sampled = []
    if findings.n_usual < findings.n_points:
        sampled.append(f"{words.count(findings.n_usual)} of all points")
    if any(row["size"] > findings.n_of_cluster for row in findings.largest_clusters):
        sampled.append(f"at most {words.count(findings.n_of_cluster)} of each cluster")
    drawn = f" Medians are those of random points: {' and '.join(sampled)}." if sampled else ""
    return (
        "the coordinates in which the median of a cluster is furthest from the median of all points, in "
        f"robust standard deviations of all points.{drawn}"
    )


def ties(findings: Findings) -> str:
    """Say which of the first outliers are ranked by nothing but their ids; empty if none of them is."""
    groups = {tuple(row["tied"]): row for row in findings.outliers if row.get("tied")}
    tied = [
        f"ranks {words.count(first)} to {words.count(last)} ({_say_score(row)})"
        for (first, last), row in groups.items()
        if first < last
    ]
    if not tied:
        return ""
    return f"Tied are {'; '.join(tied)}: among them the smaller id comes first, so their order says nothing."


def _say_score(row: Row) -> str:
    """Say what points that are tied have in common."""
    if row["lof"] is None:
        return "no LOF"
    return f"LOF {words.factor(row['lof'])}, k-distance {words.measure(row['k_distance'])}"


def cpu(findings: RunFindings) -> str:
    """Say how much CPU the run took, in all and for each row; empty if no job counted it."""
    found = costs.add_cpu(findings)
    if found is None:
        return ""
    jobs = "The jobs of this run, without the report,"
    if found.n_counted < found.n_jobs:
        jobs = f"{words.count(found.n_counted)} of the {words.count(found.n_jobs)} jobs, which counted it,"
    parts = ", ".join(f"{words.duration(seconds)} in {text}" for text, seconds in found.parts.items())
    a_row = ""
    if found.n_rows:
        micros = words.measure(1e6 * found.seconds / found.n_rows, "µs", digits=3)
        a_row = f" That is {micros} of CPU a row, for {counted(found.n_rows, 'row')} read."
    return (
        f"{jobs} took {words.duration(found.seconds)} of CPU: {parts}.{a_row} The start of every job is "
        "part of it, which is most of it where there are few rows."
    )


def step_times(findings: RunFindings) -> str:
    """Say what the picture of the steps' times shows."""
    ring = " Ring: the run before." if findings.seconds_before else ""
    if not any(step.phases for step in costs.list_steps(findings)):
        return f"Wall-clock time of every step, without the start of Spark.{ring}"
    return (
        "Wall-clock time of every step: its start (JVM, imports, session), then its own time, divided as its "
        f"driver and tasks were busy with reading, work and writing, then its commits.{ring}"
    )


_COUNTED = {"split_off": "split off", "merged": "merged into another"}
"""Kinds of events that are counted in other words than their own."""


def what_changed(findings: Findings) -> str:
    """Say what the job ``compare`` found, or why there is nothing to say."""
    if not findings.run_before:
        return (
            f"There is nothing to compare with: the lake holds no finished run of {findings.dataset} before "
            f"{findings.run}."
        )
    found = findings.comparison
    if found is None:
        return (
            f"Which records and clusters have changed since run {findings.run_before} is not known: the job "
            "compare has not run for this run."
        )
    came, went, changed = (words.count(number) for number in (found.inserted, found.deleted, found.updated))
    moved = f", {words.count(found.moved)} of which moved" if found.moved else ""
    noun = "record" if found.inserted == 1 else "records"
    text = f"Since run {found.against} {came} {noun} came, {went} went, {changed} changed{moved}."
    if not findings.key:
        text = (
            f"Since run {found.against} {came} {noun} came and {went} went; as the source has no key, a "
            "record that changed is one that went and one that came."
        )
    counts = [
        f"{words.count(found.n_events[kind])} {_COUNTED.get(kind, kind)}"
        for kind in EVENTS
        if found.n_events.get(kind)
    ]
    if not counts:
        return f"{text} No cluster was born, split, merged or ended, nor has one changed by a tenth."
    before, now = _of_run(findings, found.against), _of_run(findings, findings.run)
    why = other_settings(before, now, findings.unit)
    return f"{text} Clusters: {', '.join(counts)}.{f' {why}' if why else ''}"


def other_settings(before: Row, now: Row, unit: str) -> str:
    """Say by which settings two runs found clusters, where they differ; empty where they do not.

    Parameters
    ----------
    before, now : ``eps`` and ``min_pts`` of both runs; what is not known may be missing.
    unit : unit of eps.
    """
    told = []
    if _differ(before, now, "eps"):
        told.append(f"ε was {words.exact(before['eps'], unit)}")
    if _differ(before, now, "min_pts"):
        told.append(f"min_pts was {words.count(before['min_pts'])}")
    return f"In that run {' and '.join(told)}: some of what happened is due to that." if told else ""


def _differ(before: Row, now: Row, name: str) -> bool:
    return None not in (before.get(name), now.get(name)) and before[name] != now[name]


def _of_run(findings: Findings, run: str) -> Row:
    return next((row for row in findings.trends if row["run"] == run), {})


def list_events(findings: Findings) -> list[str]:
    """Say what happened to clusters since the run before, an event each."""
    found = findings.comparison
    return [] if found is None else [_say_event(found, row) for row in found.events]


def _say_event(found: Comparison, row: Row) -> str:
    name, other = (
        "" if row[key] is None else words.isolate(words.cell(found.called(row[key])))
        for key in ("name", "other")
    )
    records = counted(row["members"], "record")
    are = "is" if row["members"] == 1 else "are"
    said = {
        "born": f"{name} is new: {records}.",
        "split": f"{name} split: {records} of it {are} in {other} now.",
        "split_off": f"{name} is new: it split off from {other}, with {records}.",
        "merged": f"{name} is no more: {records} of it {are} in {other} now.",
        "dissolved": f"{name} dissolved; it had {records}.",
        "gone": f"{name} is gone, with all of its {records}.",
        "grown": f"{name} has grown by {records}.",
        "shrunk": f"{name} has shrunk by {records}.",
    }
    return said[row["event"]]


def was_compared(findings: Findings) -> bool:
    """Whether the guard had an earlier run to compare the snapshot with; if not, its checks say nothing."""
    return any(row["against"] is not None for row in findings.guard)


def guard(findings: Findings) -> str:
    """Say what the guard found, in one sentence; empty if nothing was guarded."""
    if not findings.guard:
        return ""
    verdicts = [row["verdict"] for row in findings.guard]
    if not was_compared(findings):
        checks = counted(len(verdicts), "check")
        return f"There is no earlier run to compare with, so the guard's {checks} had nothing to find."
    told = [
        f"{words.count(verdicts.count(verdict))} {text}"
        for verdict, text in (
            ("held", "held the snapshot"),
            ("accepted", "would have held it, which the run accepted"),
            ("warned", "warned"),
        )
        if verdict in verdicts
    ]
    if not told:
        return f"The guard's {counted(len(verdicts), 'check')} found nothing above a limit."
    return f"The guard made {counted(len(verdicts), 'check')}: {', '.join(told)}."


def list_changes(findings: Findings) -> list[tuple[str, str, str, str]]:
    """List what changed as rows of (name, run before, this run, change); empty if there is no run before."""
    if not findings.run_before:
        return []
    before = _of_run(findings, findings.run_before)
    now: Row = {
        "points": findings.n_points,
        "eps": findings.eps,
        "min_pts": findings.params.get("min_pts"),
        "pairs": findings.n_pairs,
        "clusters": findings.n_clusters,
        "noise": findings.n_noise,
    }
    return [
        ("ε" if name == "eps" else name, *_write_change(name, before.get(name), value, findings.unit))
        for name, value in now.items()
    ]


def _write_change(name: str, before: object, now: object, unit: str) -> tuple[str, str, str]:
    old, new = to_number(before), to_number(now)
    change = words.MISSING
    if old is not None and new is not None:
        change = words.change(old, new) if name == "eps" else words.signed(new - old)
    if old == new is not None:
        change = "same"
    if name == "eps":
        return words.exact(old, unit), words.exact(new, unit), change
    return words.count(old), words.count(new), change
