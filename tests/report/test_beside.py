"""Two documents side by side: in two columns, and on the page."""

import dataclasses
import html

import pytest

from epsjoin.findings import Findings
from epsjoin.report import beside, page
from epsjoin.report.beside import LEFT_OUT, Row, lay_beside


def lines(*numbers: int) -> str:
    return "\n".join(map(str, numbers))


def test_lay_beside__has_what_differs_and_two_lines_around_it() -> None:
    left, right = lines(*range(20)), lines(*range(9), 99, *range(10, 20))
    same = [Row(str(each), str(each), False) for each in (7, 8, 10, 11)]
    assert lay_beside(left, right) == [LEFT_OUT, *same[:2], Row("9", "99", True), *same[2:], LEFT_OUT]


def test_lay_beside__a_line_that_one_side_lacks_has_nothing_beside_it() -> None:
    assert lay_beside("a\nb", "a") == [Row("a", "a", False), Row("b", None, True)]
    assert lay_beside("b", "a\nb") == [Row(None, "a", True), Row("b", "b", False)]


def test_lay_beside__of_equal_texts_leaves_all_lines_out() -> None:
    assert lay_beside(lines(*range(9)), lines(*range(9))) == [LEFT_OUT]


def test_lay_beside__leaves_out_no_single_line_between_two_differences() -> None:
    rows = lay_beside("x\n1\n2\n3\n4\n5\ny", "X\n1\n2\n3\n4\n5\nY")
    assert [row.left for row in rows] == ["x", "1", "2", "3", "4", "5", "y"]


def test_lay_beside__of_much_that_differs_shows_the_first_rows_and_the_begin_of_long_lines() -> None:
    rows = lay_beside(lines(*range(100)), "x" * 300)
    assert len(rows) == beside.MAX_ROWS + 1
    assert rows[0].right == "x" * beside.MAX_LINE + "…"
    assert rows[-1] == LEFT_OUT


def documents(mapless: Findings) -> Findings:
    """A run on documents, two of which are shown; one has markup for its name and in it."""
    left = {"id": 1, "key": ["bar<b>"], "label": None, "text": '{\n  "mark": "bar<i>"\n}'}
    right = {"id": 2, "key": ["line"], "label": None, "text": '{\n  "mark": "line"\n}'}
    edits = ['relabel {}/.mark/"bar<i>" to "line"']
    alike = {"cluster_id": 1, "distance": 1.0, "left": left, "right": right, "edits": edits}
    equal = {**alike, "distance": 0.0, "edits": []}
    return dataclasses.replace(
        mapless, metric="tree_edit", unit="edits", coordinates=(), key=("name",), alike=[alike, equal]
    )


@pytest.fixture(scope="module")
def pages(mapless: Findings) -> dict[str, str]:
    """The page of a run on documents, and that of one on points, with the same pictures."""
    drawn = {name: plot(mapless) for name, (plot, _) in page.PICTURES.items()}
    return {"documents": page.render(documents(mapless), drawn), "points": page.render(mapless, drawn)}


def test_page__of_documents_shows_two_of_a_cluster_with_their_edits(pages: dict[str, str]) -> None:
    found = html.unescape(pages["documents"].replace("<bdi>", "").replace("</bdi>", ""))
    assert "<h3>Two documents of each of the 2 largest clusters</h3>" in found
    assert "<h4>bar<b> and line: 1 edit</h4>" in found
    assert '<li><code>relabel {}/.mark/"bar<i>" to "line"</code></li>' in found
    cells = '<td><code>  "mark": "bar<i>"</code></td><td><code>  "mark": "line"</code></td>'
    assert f'<tr class="differs">{cells}</tr>' in found
    assert "There is no edit between them." in found
    assert "<i>" not in pages["documents"], "what comes from the data is escaped"
    assert "Two documents" not in pages["points"]


def test_page__of_documents_says_that_curves_and_outliers_are_of_bounds(pages: dict[str, str]) -> None:
    assert "two documents are at least as many edits apart as their points" in pages["documents"]
    assert "a document is at least so many edits from the others" in pages["documents"]
    for word in ("what deviates", "centre (", ">coordinates<"):
        assert word not in pages["documents"], "they have no coordinates"
        assert word in pages["points"]
