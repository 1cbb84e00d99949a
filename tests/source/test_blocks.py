"""What blocks of lines are told by."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from epsjoin.source.blocks import are_at_ends


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("within", [False, True])
def test_are_at_ends__looks_at_the_byte_outside_of_each_quote(within: bool, delimiter: str) -> None:
    answers = []
    beside = delimiter.encode() + b'\n"'
    every = b'",a\n' if delimiter == "," else b'",;\n'
    for signs in itertools.chain.from_iterable(itertools.product(every, repeat=n) for n in range(1, 6)):
        around = [ord("\n"), *signs, ord("\n")]
        places = [place for place, sign in enumerate(around) if sign == ord('"')]
        fits = [
            around[place + 1] in beside + b"\r" if (number + within) % 2 else around[place - 1] in beside
            for number, place in enumerate(places)
        ]
        quotes = np.array(places, np.int64) - 1
        answers.append(are_at_ends(np.array(signs, np.uint8), quotes, within, delimiter))
        assert answers[-1] == all(fits), bytes(signs)
    assert 100 < sum(answers) < len(answers) - 100
