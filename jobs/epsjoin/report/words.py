"""Values as text for people: thousands separators, few digits, units, and – for a missing value."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise

from epsjoin.console import with_unit
from epsjoin.findings import to_number

MISSING = "–"
"""Text of a missing value."""

NO_BREAK = "\N{NO-BREAK SPACE}"
MAX_CELL_LENGTH = 160
"""Maximum number of characters in a cell of a table; a raw record may be a megabyte of garbage."""

ISOLATE, END_ISOLATE = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"
CONTEXT = 30
"""Number of characters of a long text that are shown before a difference."""

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def count(value: object) -> str:
    """Write a whole number: ``11,020``; fractions are rounded, huge numbers shortened: ``1.235×10¹²``."""
    number = to_number(value)
    if number is None:
        return MISSING
    return f"{number:,.0f}" if abs(number) < 1e12 else _power(number, 4)


def measure(value: object, unit: str = "", digits: int = 4, *, keeps_zeros: bool = False) -> str:
    """Write a measured number with its unit to ``digits`` significant digits: ``2.213 km``, ``12,350``.

    Zeros at its end are left out, unless it stands beside others that have as many digits.
    """
    number = to_number(value)
    if number is None:
        return MISSING
    if number == 0:
        text = "0"
    else:
        power = math.floor(math.log10(abs(number)))
        if -4 <= power < 9:
            rounded = round(number, digits - 1 - power)
            power = math.floor(math.log10(abs(rounded)))  # 9.996 has become 10.0
            text = f"{rounded:,.{max(0, digits - 1 - power)}f}"
            text = text.rstrip("0").rstrip(".") if "." in text and not keeps_zeros else text
        else:
            text = _power(number, digits)
    return with_unit(text, unit)


def factor(value: object) -> str:
    """Write a local outlier factor: ``1.20``; ``∞`` next to more equal points than count as neighbours."""
    return "∞" if value == math.inf else measure(value, digits=3, keeps_zeros=True)


def exponent(value: object) -> str:
    """Write an exponent or an end of its interval: ``1.70``."""
    return measure(value, digits=3, keeps_zeros=True)


def exact(value: object, unit: str = "") -> str:
    """Write a number that somebody set, with its unit and all of its digits: ``2.0003 km``."""
    number = to_number(value)
    if number is None:
        return MISSING
    return measure(number, unit, digits=max(1, _count_digits(number)))


def like(value: object, used: object, unit: str = "") -> str:
    """Write a number beside one that somebody set: with as many digits as that one has, and at least six."""
    number, other = to_number(value), to_number(used)
    return measure(number, unit, digits=max(6, 0 if other is None else _count_digits(other)))


def _count_digits(number: float) -> int:
    """Count the significant digits of the shortest decimal number that is this float."""
    return len(Decimal(repr(number)).normalize().as_tuple().digits)


def _power(number: float, digits: int) -> str:
    mantissa, exponent = f"{number:.{digits - 1}e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}×10{str(int(exponent)).translate(_SUPERSCRIPT)}"


def percent(value: object) -> str:
    """Write a fraction as a percentage: ``37.4 %``."""
    number = to_number(value)
    return MISSING if number is None else measure(number * 100, "%", digits=3)


def change(expected: object, measured: object) -> str:
    """Write the measured number relative to the expected one: ``+1.3 %``, or ``4.1 times`` from double on."""
    before, after = to_number(expected), to_number(measured)
    if before is None or after is None or before <= 0:
        return MISSING
    ratio = after / before
    if ratio >= 2:
        return f"{measure(ratio, digits=2)} times"
    percentage = (ratio - 1) * 100
    if 0 < abs(percentage) < 0.05:
        return f"{'+' if percentage > 0 else '−'}{measure(abs(percentage), '%', digits=1)}"
    return f"{percentage:+.1f} %".replace("-", "−")


def signed(value: object) -> str:
    """Write a difference of counts with its sign: ``+1,020``, ``−3``."""
    number = to_number(value)
    return MISSING if number is None else f"{number:+,.0f}".replace("-", "−")


def size(value: object) -> str:
    """Write a number of bytes: ``312 B``, ``1.3 MB``; a kB is 1,000 B."""
    number = to_number(value)
    if number is None:
        return MISSING
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return measure(number, unit, digits=3)
        number /= 1000
    return measure(number, "TB", digits=3)


def duration(value: object) -> str:
    """Write a number of seconds: ``0.42 s``, ``3 min 12 s``, ``2 h 5 min``."""
    number = to_number(value)
    if number is None:
        return MISSING
    if number < 60:
        return measure(number, "s", digits=2 if number < 10 else 3)
    whole = round(number)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"


def cell(value: object) -> str:
    """Write a value of any column of the source: numbers to six digits, from 100,000 on to nine."""
    if value is None or value == "":
        return MISSING
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return "yes" if value else "no"
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        number = to_number(value)
        if number is None:
            return MISSING
        return f"{number:.6g}" if abs(number) < 1e5 else f"{number:.9g}"
    text = str(value)
    return text if len(text) <= MAX_CELL_LENGTH else text[: MAX_CELL_LENGTH - 1] + "…"


def isolate(text: str) -> str:
    """Isolate text from the data within a sentence, so that its direction of writing stays its own.

    In a page ``<bdi>`` does the same; characters that would end the isolation are left out.
    """
    return f"{ISOLATE}{''.join(c for c in text if c.isprintable())}{END_ISOLATE}"


def differing(before: object, now: object) -> tuple[str, str]:
    """Write two values of a column that differ, each as ``cell`` does, but so far that the texts differ.

    Numbers get as many digits as that takes. Of long texts the part around the first difference is shown.
    Where only blanks or invisible characters differ, both are written as Python writes them.
    """
    texts = cell(before), cell(now)
    if _look_different(*texts):
        return texts
    if isinstance(before, float) and isinstance(now, float):
        for digits in range(7, 16):
            texts = f"{before:.{digits}g}", f"{now:.{digits}g}"
            if texts[0] != texts[1]:
                return texts
    old, new = str(before), str(now)
    if before in (None, "") or now in (None, "") or not _look_different(old, new):
        old, new = (MISSING if value is None else ascii(value) for value in (before, now))
    ends = min(len(old), len(new))
    at = next((i for i in range(ends) if old[i] != new[i]), ends)
    if max(len(old), len(new)) <= MAX_CELL_LENGTH or at <= CONTEXT:
        return cell(old), cell(new)
    return cell("…" + old[at - CONTEXT :]), cell("…" + new[at - CONTEXT :])


def _look_different(one: str, other: str) -> bool:
    """Whether a person sees that texts differ: blanks look alike, some characters are invisible."""
    seen = (
        " ".join("".join(c for c in text if c.isprintable() or c.isspace()).split()) for text in (one, other)
    )
    return next(seen) != next(seen)


def listed(texts: Sequence[str]) -> str:
    """Write a list as in a sentence: ``30 s, 100 km and 1``."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def degrees(value: float, positive: str, negative: str) -> str:
    """Write a latitude or longitude on a graticule: ``30° N``, ``0°``, ``12.5° W``."""
    value = (value + 180) % 360 - 180 if abs(value) > 180 else value
    if abs(value) < 1e-9:
        return "0°"
    return f"{abs(value):.8g}° {positive if value > 0 else negative}"


def ticks(values: Sequence[float]) -> list[str]:
    """Write the numbers at an axis as :func:`tick`, with as many digits as their distance asks for."""
    distances = [abs(after - before) for before, after in pairwise(values)]
    if not distances or not 0 < min(distances) < math.inf:
        return [tick(value) for value in values]
    largest, least = (math.floor(math.log10(each)) for each in (max(map(abs, values)), min(distances)))
    digits = largest - least + 2
    if digits <= 4:
        return [tick(value) for value in values]
    return [measure(value, digits=min(digits, 15)) for value in values]


def tick(value: float) -> str:
    """Write a number at an axis, short: ``0.02``, ``10,000``, ``10⁷``, ``2×10⁷``."""
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return measure(value)
    return _power(value, 4).removeprefix("1×")
