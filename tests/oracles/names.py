"""Names of clusters over runs as they are defined: sets of records, one cluster after the other.

A run is a dict: record -> (cluster, whether it is core); noise has the cluster -1.
"""

from __future__ import annotations

from typing import NamedTuple

NOISE = -1
Run = dict[int, tuple[int, bool]]


class Named(NamedTuple):
    """One run: cluster -> name; name -> the rest of its row; flows; events."""

    names: dict[int, int]
    rows: dict[int, dict[str, int]]
    flows: dict[tuple[int | None, int | None], tuple[int, int]]
    events: set[tuple[str, int, int | None, int, bool]]


def clusters_of(run: Run) -> dict[int, set[int]]:
    clusters: dict[int, set[int]] = {}
    for record, (cluster, _) in run.items():
        if cluster != NOISE:
            clusters.setdefault(cluster, set()).add(record)
    return clusters


def flows(before: Run, now: Run) -> dict[tuple[int | None, int | None], tuple[int, int]]:
    found: dict[tuple[int | None, int | None], tuple[int, int]] = {}
    for record in before.keys() | now.keys():
        ends = (before[record][0] if record in before else None, now[record][0] if record in now else None)
        members, cores = found.get(ends, (0, 0))
        found[ends] = members + 1, cores + (record in now and now[record][1])
    return found


def fold(runs: list[Run]) -> list[Named]:
    found: list[Named] = []
    ever = {NOISE}
    first_run: dict[int, int] = {}
    n_runs: dict[int, int] = {}
    for number, now in enumerate(runs):
        before = runs[number - 1] if number else {}
        name_before = found[-1].names if number else {}
        old, new = clusters_of(before), clusters_of(now)
        noise = {record for record, (cluster, _) in now.items() if cluster == NOISE}
        remaining = {x: members & now.keys() for x, members in old.items()}
        heir = {
            x: y
            for x, rest in remaining.items()
            for y, members in new.items()
            if 2 * len(rest & members) > len(rest)
        }
        names: dict[int, int] = {}
        from_x: dict[int, int] = {}
        for y, members in new.items():
            givers = [x for x in heir if heir[x] == y]
            if givers:
                best = min(
                    givers,
                    key=lambda x: (-len(remaining[x] & members), first_run[name_before[x]], name_before[x]),
                )
                names[y], from_x[y] = name_before[best], best
        for y in sorted(new.keys() - names.keys()):
            unused = [record for record in sorted(new[y]) if now[record][1] and record not in ever]
            name = unused[0] if unused else -2
            while not unused and name in ever:
                name -= 1
            names[y] = name
            ever.add(name)
            first_run[name], n_runs[name] = number, 0
        for name in names.values():
            n_runs[name] += 1

        events: set[tuple[str, int, int | None, int, bool]] = set()
        pieces = {
            (x, y): len(rest & members)
            for x, rest in remaining.items()
            for y, members in new.items()
            if heir.get(x) != y and len(rest & members) >= 2 and 10 * len(rest & members) >= len(rest)
        }
        for x, rest in remaining.items():
            own = name_before[x]
            mine = {y: n for (giver, y), n in pieces.items() if giver == x}
            if not rest:
                events.add(("gone", own, None, len(old[x]), True))
            elif x not in heir and (2 * len(rest & noise) >= len(rest) or not mine):
                events.add(("dissolved", own, None, len(old[x]), True))
            else:
                for y, n in mine.items():
                    events.add(("split", own, names[y], n, x not in heir))
                if x in heir and names[heir[x]] != own:
                    events.add(("merged", own, names[heir[x]], len(rest & new[heir[x]]), True))
        for y, members in new.items():
            if y in from_x:
                difference = len(members) - len(old[from_x[y]])
                if abs(difference) >= 2 and 10 * abs(difference) >= len(old[from_x[y]]):
                    events.add(
                        ("grown" if difference > 0 else "shrunk", names[y], None, abs(difference), False)
                    )
            elif number:
                givers = [x for (x, to) in pieces if to == y]
                if givers:
                    best = min(
                        givers, key=lambda x: (-pieces[x, y], first_run[name_before[x]], name_before[x])
                    )
                    events.add(("split_off", names[y], name_before[best], pieces[best, y], False))
                else:
                    events.add(("born", names[y], None, len(members), False))

        rows = {}
        for y, members in new.items():
            mine = old[from_x[y]] if y in from_x else set()
            others = set().union(*(each for x, each in old.items() if x != from_x.get(y)))
            rows[names[y]] = {
                "label": y,
                "first_run": first_run[names[y]],
                "runs": n_runs[names[y]],
                "size": len(members),
                "core": sum(now[record][1] for record in members),
                "stayed": len(members & mine),
                "from_clusters": len(members & others),
                "from_noise": sum(record in before and before[record][0] == NOISE for record in members),
                "inserted": len(members - before.keys()),
                "to_clusters": len((mine & now.keys()) - members - noise),
                "to_noise": len(mine & noise),
                "deleted": len(mine - now.keys()),
            }
        found.append(Named(names, rows, flows(before, now), events))
    return found
