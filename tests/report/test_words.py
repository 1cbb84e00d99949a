import math

import numpy as np
import pytest

from epsjoin.report import words


@pytest.mark.parametrize("missing", [None, math.nan, math.inf, np.float64("nan")])
def test_words__show_a_dash_for_what_is_missing(missing: object) -> None:
    assert {
        words.count(missing),
        words.measure(missing, "km"),
        words.exact(missing, "km"),
        words.like(missing, 2.0),
        words.percent(missing),
        words.size(missing),
        words.duration(missing),
        words.cell(missing),
        words.signed(missing),
        words.change(missing, 1),
        words.change(1, missing),
    } == {"–"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (words.count(0), "0"),
        (words.count(11020), "11,020"),
        (words.count(4180.4), "4,180"),
        (words.count(1.2345e15), "1.234×10¹⁵"),
        (words.measure(0), "0"),
        (words.measure(2.2134, "km"), "2.213 km"),
        (words.measure(50.0, "km"), "50 km"),
        (words.measure(12345.678), "12,350"),
        (words.measure(0.0123457), "0.01235"),
        (words.measure(-1.5), "-1.5"),
        (words.measure(9.9996), "10"),
        (words.measure(3.2e-7), "3.2×10⁻⁷"),
        (words.measure(2.5e12), "2.5×10¹²"),
        (words.exact(2.0003, "km"), "2.0003 km"),
        (words.exact(52.5141234), "52.5141234"),
        (words.exact(12345.678), "12,345.678"),
        (words.exact(2.0, "km"), "2 km"),
        (words.exact(2.5e-7), "2.5×10⁻⁷"),
        (words.exact(0.1 + 0.2), "0.30000000000000004"),
        (words.like(8.0012, 2.0003, "km"), "8.0012 km"),
        (words.like(0.500075, 2.0003), "0.500075"),
        (words.like(1.50000035, 2.0000002), "1.5000004"),
        (words.like(4 / 3, 2), "1.33333"),
        (words.percent(0.37432), "37.4 %"),
        (words.percent(1), "100 %"),
        (words.size(312), "312 B"),
        (words.size(538112), "538 kB"),
        (words.size(1_300_000), "1.3 MB"),
        (words.size(2.5e15), "2,500 TB"),
        (words.duration(0.417), "0.42 s"),
        (words.duration(59.4), "59.4 s"),
        (words.duration(192.3), "3 min 12 s"),
        (words.duration(7500), "2 h 5 min"),
        (words.change(1000, 1013), "+1.3 %"),
        (words.change(1000, 683), "−31.7 %"),
        (words.change(1000, 4100), "4.1 times"),
        (words.change(2, 2.0003), "+0.02 %"),
        (words.change(2, 1.9999999), "−5×10⁻⁶ %"),
        (words.change(2, 2), "+0.0 %"),
        (words.change(0, 5), "–"),
        (words.signed(1020), "+1,020"),
        (words.signed(-3), "−3"),
        (words.cell(85049), "85049"),
        (words.cell(52.55889892578125), "52.5589"),
        (words.cell(True), "yes"),
        (words.cell(np.bool_(False)), "no"),
        (words.cell(np.int64(7)), "7"),
        (words.cell(""), "–"),
        (words.degrees(-12.5, "E", "W"), "12.5° W"),
        (words.degrees(-195, "E", "W"), "165° E"),
        (words.degrees(0, "N", "S"), "0°"),
        (words.tick(0.02), "0.02"),
        (words.tick(1e7), "10⁷"),
        (words.tick(2e7), "2×10⁷"),
        (words.factor(1.234), "1.23"),
        (words.factor(15.04), "15.0"),
        (words.factor(9.996), "10.0"),
        (words.factor(1234.5), "1,230"),
        (words.exponent(1.7), "1.70"),
        (words.factor(math.inf), "∞"),
        (words.factor(None), "–"),
        (words.cell(5432109.87), "5432109.87"),
        (words.ticks([500_020, 500_040, 500_060]), ["500,020", "500,040", "500,060"]),
        (words.ticks([5_432_050, 5_432_100]), ["5,432,050", "5,432,100"]),
        (words.ticks([13.4001, 13.4002]), ["13.4001", "13.4002"]),
        (words.ticks([0, 1e7, 2e7]), ["0", "10⁷", "2×10⁷"]),
        (words.ticks([0, 0.25, 0.5]), ["0", "0.25", "0.5"]),
        (words.ticks([7.0]), ["7"]),
    ],
)
def test_words__are_written_for_people(text: str | list[str], expected: str | list[str]) -> None:
    assert text == expected


def test_cell__shortens_a_record_of_a_megabyte() -> None:
    assert len(words.cell("x" * 1_000_000)) == words.MAX_CELL_LENGTH


@pytest.mark.parametrize(
    ("before", "now", "texts"),
    [
        ("LOW", "HIGH", ("LOW", "HIGH")),
        (12.345678, 12.345679, ("12.345678", "12.345679")),
        (1.0, 1 + 2**-52, ("1.0", "1.0000000000000002")),
        (1e300, 1.0000000000000002e300, ("1e+300", "1.0000000000000002e+300")),
        (3, None, ("3", "–")),
        ([0.5] * 99 + [1.5], [0.5] * 99 + [2.5], ("…" + "0.5, " * 6 + "1.5]", "…" + "0.5, " * 6 + "2.5]")),
        ([], None, ("[]", "–")),
        (None, "", ("–", "''")),
        ("a", "a ", ("'a'", "'a '")),
        ("a b", "a\N{NO-BREAK SPACE}b", ("'a b'", "'a\\xa0b'")),
        ("ab", "a\u202eb", ("'ab'", "'a\\u202eb'")),
        (True, False, ("yes", "no")),
        ("x" * 300 + "a", "x" * 300 + "b", ("…" + "x" * 30 + "a", "…" + "x" * 30 + "b")),
        ("x" * 300, "x" * 301, ("…" + "x" * 30, "…" + "x" * 31)),
    ],
)
def test_differing__writes_two_values_so_that_they_differ(
    before: object, now: object, texts: tuple[str, str]
) -> None:
    assert words.differing(before, now) == texts


def test_isolate__ends_where_it_began() -> None:
    assert words.isolate("a\N{POP DIRECTIONAL ISOLATE}\u202eb") == "\u2068ab\u2069"
