"""Compiled loops of planning: which rows a part has.

* Planned cuts: of points ``cuts``, of cubes of any extent ``cubes``; weighed by ``balance``
* Regular cuts: when a cube is split (``rules``), the splits (``regular``) and the rows of a part
  (``stack_rows``)
* Which axes tell rows apart: ``separation``
"""
