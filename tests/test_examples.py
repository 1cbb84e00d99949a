"""What the documents show is run: examples of docstrings, the page of the API, code of README and library."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import operator
import pkgutil
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import build_api
import docstrings
import draw_bestmatch
import draw_library
import epsjoin
import epsjoin.kernels
import epsjoin.local
import epsjoin.spark

ROOT = Path(__file__).parents[1]
MODULES = [
    module.name
    for package in (epsjoin.kernels, epsjoin.local)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


def failures(examples: list[doctest.DocTest]) -> str:
    """What doctest says of those that do not come true."""
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    for example in examples:
        runner.run(example, out=said.append)
    return "".join(said)


@pytest.mark.parametrize("name", MODULES)
def test_examples__come_true_in_their_module(name: str) -> None:
    assert failures(doctest.DocTestFinder().find(importlib.import_module(name))) == ""


def test_examples__come_true_on_the_page_of_the_api_after_the_lines_that_it_takes_for_granted() -> None:
    page = build_api.PAGE.read_text(encoding="utf-8")
    granted = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert granted is not None
    names: dict[str, Any] = {}
    exec(granted[1], names)
    examples = [
        doctest.DocTestParser().get_doctest(text, dict(names), text.partition("\n")[0], None, None)
        for text in re.findall(r"```pycon\n(.*?)```", page, re.DOTALL)
    ]
    assert len(examples) > 20
    assert failures(examples) == ""


def test_failures__sees_a_wrong_example() -> None:
    example = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "sum", None, None)
    assert "Expected:\n    3\nGot:\n    2" in failures([example])


def test_api_page__is_what_the_docstrings_say() -> None:
    written = build_api.PAGE.read_text(encoding="utf-8")
    assert "PosixPath(" not in written, "a default is a path of this machine"
    assert written == build_api.build(), f"docs/api.md is out of date: run {build_api.COMMAND}"


def test_api_page__has_no_name_that_a_reader_could_not_look_up() -> None:
    page = build_api.PAGE.read_text(encoding="utf-8")
    assert not re.findall(r"(?<!\w)_(?!SUCCESS)[A-Z]\w*", page)
    assert not re.findall(r":[a-z]+:`", page)
    assert not re.findall(r"```pycon\n(?!>>>)", page), "examples that nobody can run"


def test_api_page__has_no_sentence_among_the_lines_of_an_example() -> None:
    page = build_api.PAGE.read_text(encoding="utf-8")
    examples = re.findall(r"```pycon\n(.*?)```", page, re.DOTALL)
    assert [text for text in examples if re.search(r"\n\n(?!>>>)", text)] == []
    assert "```\n\nOf two partners at one distance, it is the one with both marks.\n" in page


def test_api_page__has_every_public_name() -> None:
    headings = re.findall(r"^### ([\w.]+)$", build_api.PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(epsjoin.__all__) | {f"spark.{name}" for name in epsjoin.spark.__all__} <= set(headings)
    assert len(set(headings)) == len(headings)


def test_api_page__knows_where_every_public_name_belongs() -> None:
    assert set(epsjoin.__all__) <= set(build_api.names_on_page())


def test_api_page__describes_every_class_that_it_says_to_see() -> None:
    page = build_api.PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"[Ss]ee `([\w.]*\b[A-Z]\w*)`", page)) == set()
    assert "See [`Decides`](#decides)" in page
    assert "```python\nclass Decides(Protocol)\n```" in page


def test_api_page__links_lead_to_the_heading_of_that_name() -> None:
    page = build_api.PAGE.read_text(encoding="utf-8")
    met: dict[str, int] = {}
    heading_at: dict[str, str] = {}  # as GitHub numbers headings that differ in case only
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page, flags=re.DOTALL), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-")
        heading_at[f"{slug}-{met[slug]}" if slug in met else slug] = heading
        met[slug] = met.get(slug, 0) + 1
    links = re.findall(r"\[`?([^]`]*)`?\]\(#([^)]*)\)", page)
    assert len(links) > len(epsjoin.__all__)
    assert [(name, anchor) for name, anchor in links if heading_at.get(anchor) != name] == []


def test_page__of_a_docstring() -> None:
    def shown(points: int, *, eps: float = 1.0) -> int:
        """Show a ``name`` * 2.

        Parameters
        ----------
        points, eps : (n,) at ``a <= b``,
            as :func:`epsjoin.self_join` has them.

        Returns
        -------
        (n,) int64, in the order of
        the points.

        Raises
        ------
        ArgumentError, BudgetError
            Never.

        See Also
        --------
        epsjoin.join : the same of two.
        epsjoin.spark.dbscan, degree : of frames,
            and of rows.
        """
        return 0

    docstring = docstrings.read(shown)
    assert docstring.parameters == [
        docstrings.Entry(("points", "eps"), "(n,) at ``a <= b``,\nas :func:`epsjoin.self_join` has them.")
    ]
    assert "\n".join(build_api.markdown(docstring)) == (
        "Show a `name` \\* 2.\n\n\n\n**Parameters**\n\n"
        "- `points`, `eps`: (n,) at `a <= b`,\n  as :func:`epsjoin.self_join` has them.\n\n"
        "**Returns**\n\n- (n,) int64, in the order of\n  the points.\n\n"
        "**Raises**\n\n- `ArgumentError`, `BudgetError`: Never.\n\n"
        "**See Also**\n\n- :func:`epsjoin.join`: the same of two.\n"
        "- :func:`epsjoin.spark.dbscan`, :func:`degree`: of frames,\nand of rows.\n"
    )


def test_page__of_a_docstring_keeps_what_it_stresses_and_no_other_star() -> None:
    def shown() -> None:
        """Take *at most
        one* of 2**3, 2 * 3 and ``*rest``, ``*more``: *one*.
        """

    assert "\n".join(build_api.markdown(docstrings.read(shown))).strip() == (
        "Take *at most\none* of 2\\*\\*3, 2 \\* 3 and `*rest`, `*more`: *one*."
    )


def test_page__of_a_docstring_with_a_table_has_one_of_markdown() -> None:
    def shown() -> None:
        """Say it.

        Returns
        -------
        Pairs

        Notes
        -----
        Before.

        ======  =========
        event   when
        ======  =========
        born    ``a | b``
        split   one, or
                two
        ======  =========

        After.
        """

    assert "\n".join(build_api.markdown(docstrings.read(shown))) == (
        "Say it.\n\n\n\n**Returns**\n\n- `Pairs`\n\n**Notes**\n\nBefore.\n\n"
        "| event | when |\n| --- | --- |\n| born | `a \\| b` |\n| split | one, or two |\n\nAfter.\n"
    )


def test_api_page__has_a_table_for_every_one_of_a_docstring_and_code_for_every_parameter() -> None:
    page = build_api.PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^==+.*", page, re.MULTILINE) == []
    parameters = re.findall(r"^\*\*(?:Parameters|Attributes)\*\*\n\n((?:.+\n)+)", page, re.MULTILINE)
    assert len(parameters) > 100
    items = [line for each in parameters for line in each.splitlines() if line.startswith("- ")]
    assert [item for item in items if not item.startswith("- `")] == []


def test_library__picture_is_drawn_by_its_own_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names, figure = draw_library.run_first_block()
    found = names["found"]
    noise, clusters = figure.axes[0].collections
    n_noise = int((found.labels == epsjoin.NOISE).sum())
    shown = [np.shape(drawn.get_offsets()) for drawn in (noise, clusters)]
    assert shown == [(n_noise, 2), (len(found.labels) - n_noise, 2)]
    assert n_noise > 0
    text = draw_library.PAGE.read_text(encoding="utf-8")
    assert f"{len(found.labels):,} landmarks (TIGER/Line) in {found.labels.max() + 1} clusters" in text
    assert draw_library.PICTURE.is_file()
    assert str(draw_library.PICTURE.relative_to(draw_library.PAGE.parent)) in text


def test_best_matches__lines_print_what_stands_beside_them(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    shown = list[str]()
    for block in draw_library.blocks(ROOT / "docs" / "best-matches.md"):
        exec(block, names)
        shown += re.findall(r"^print\(.*\)  # (.*)$", block, re.MULTILINE)
    assert len(shown) == 6
    assert capsys.readouterr().out.splitlines() == shown


def test_near_duplicate_documents__lines_print_what_stands_beside_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names: dict[str, Any] = {}
    shown = list[str]()
    for block in draw_library.blocks(ROOT / "docs" / "near-duplicate-documents.md"):
        exec(block, names)
        shown += re.findall(r"^(?:print\(.*\)  )?# (.*)$", block, re.MULTILINE)
    assert len(shown) == 4
    assert capsys.readouterr().out.splitlines() == shown


def test_best_matches__picture_is_drawn_by_its_own_lines() -> None:
    (ax,) = draw_bestmatch.draw(draw_bestmatch.run_first_block()).axes
    texts = [text.get_text() for text in ax.texts]
    assert texts == ["right row 0", "right row 1", "right row 2: dominated"]
    assert len(ax.patches) == 2, "the shade of each best match"
    text = draw_bestmatch.PAGE.read_text(encoding="utf-8")
    assert draw_bestmatch.PICTURE.is_file()
    assert str(draw_bestmatch.PICTURE.relative_to(draw_bestmatch.PAGE.parent)) in text


def test_library__other_lines_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    first, *others = draw_library.blocks()
    assert others
    names: dict[str, Any] = {}
    imports, _, _ = first.partition("\n\n")
    exec(imports, names)
    for block in others:
        exec(block, names)
    assert names["nearest"].neighbour.shape == names["nearest"].distance.shape == (5000, 5)
    assert len(names["both"]) == len(epsjoin.join(names["points"], names["others"], 0.01).left)
    assert set(names["both"]) == {"left_id", "right_id", "distance", "x", "y", "x_town", "y_town"}
    assert len(names["next_town"]) == 5000
    assert names["expected"].pairs == names["n_pairs"]  # a sample of all rows
    assert 5 < 2 * len(epsjoin.self_join(names["points"], names["eps"]).left) / 5000 < 15
    assert names["between"].pairs == len(epsjoin.join(names["points"], names["others"], 0.05).left)
    assert not set(names["lonely"]) & set(epsjoin.join(names["points"], names["others"], 0.01).left)
    left, right, _ = epsjoin.self_join(names["points"], 0.01)
    assert sorted(names["by_sql"]) == list(zip(left.tolist(), right.tolist(), strict=True))
    assert len(set(names["part"].tolist())) > 10


def test_library__lines_on_data_frames_fit_the_functions_that_they_call() -> None:
    (block,) = re.findall(r"```text\n(.*?)```", draw_library.PAGE.read_text(encoding="utf-8"), re.DOTALL)
    calls = [
        node
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.Call) and re.fullmatch(r"epsjoin\.spark\.\w+", ast.unparse(node.func))
    ]
    assert len(calls) == len(block.splitlines())
    for call in calls:
        function = operator.attrgetter(ast.unparse(call.func).removeprefix("epsjoin."))(epsjoin)
        given = {word.arg: word.value for word in call.keywords if word.arg is not None}
        inspect.signature(function).bind(*call.args, **given)


def test_readme__lines_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (block,) = draw_library.blocks(draw_library.README)
    names: dict[str, Any] = {}
    exec(block, names)
    assert (names["left"] < names["right"]).all()
    assert 0 < len(names["left"]) == len(names["distance"])
    assert names["clusters"].labels.shape == (5000,)
