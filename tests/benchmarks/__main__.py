"""``make bench``: all questions, the page and its pictures; or some, printed alone."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from . import plots, questions
from .measure import Call, in_own_process
from .neighbours import neighbours
from .page import machine, put
from .questions import Answer
from .sets import BY_NAME, SETS, Set

DOCS = Path(__file__).resolve().parents[2] / "docs"
QUESTIONS: dict[str, Callable[..., Answer]] = {
    "threads": questions.threads,
    "dbscan": questions.dbscan,
    "neighbours": neighbours,
    "growth-n": questions.growth_rows,
    "growth-d": questions.growth_dimensions,
}
STREAM = "stream"
PAGE = "benchmarks/arrays.md"
RATIOS = "pictures/benchmarks-ratio.svg"
NAMES = (*BY_NAME, *QUESTIONS, STREAM)


def ask(call: Call, only: Sequence[str], rounds: int | None, sets: Sequence[Set] = SETS) -> list[Answer]:
    """Give the answers in the order of the page, and print each as it is known.

    Parameters
    ----------
    only : names of sets and questions; empty: all.
    rounds : of every race; ``None``: as many as each set says.
    """
    answers: list[Answer] = []

    def keep(answer: Answer) -> None:
        answers.append(answer)
        print(section(answer), flush=True)

    joined = [one for one in sets if not only or one.name in only]
    if joined:
        keep(questions.joins(call, joined, rounds))
    for name, question in QUESTIONS.items():
        if not only or name in only:
            keep(question(call, rounds=rounds))
    if not only or STREAM in only:
        keep(questions.stream(call))
    return answers


def section(answer: Answer) -> str:
    return "\n".join([f"## {answer.title}", "", *answer.lines, ""])


def publish(answers: Sequence[Answer], docs: Path) -> None:
    """Write the page's part and the pictures beside it."""
    (docs / "pictures").mkdir(exist_ok=True)
    plots.write_ratios(docs / RATIOS, answers[0].ratios)
    for answer in answers:
        if answer.curve is not None:
            plots.write_growth(docs / answer.curve.picture, answer.curve)
    text = [
        f"Measured by `make bench` on {machine()}.",
        "",
        f"![How many times faster, by set](../{RATIOS})",
        "",
        *map(section, answers),
    ]
    put(docs / PAGE, "\n".join(text))


def main(
    arguments: Sequence[str] | None = None,
    *,
    call: Call = in_own_process,
    docs: Path = DOCS,
    sets: Sequence[Set] = SETS,
) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, help="rounds of every race; by default 5, 3 where one is long")
    parser.add_argument(
        "--only", default="", help=f"of {', '.join(NAMES)}: these, with commas between, and no page written"
    )
    given = parser.parse_args(arguments)
    only = [name for name in given.only.split(",") if name]
    known = {*(one.name for one in sets), *QUESTIONS, STREAM}
    if unknown := [name for name in only if name not in known]:
        parser.error(f"--only: {', '.join(unknown)} is none of {', '.join(NAMES)}")
    if given.rounds is not None and given.rounds < 1:
        parser.error("--rounds must be at least 1")
    answers = ask(call, only, given.rounds, sets)
    if not only:
        publish(answers, docs)
    if all(answer.is_right for answer in answers):
        return 0
    print("the contenders do not agree: see DIFFERENT above", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
