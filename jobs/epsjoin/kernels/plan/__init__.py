"""Compiled loops of planning: which rows a part has.

* Planned cuts: through points (``cuts``), through cubes of any extent (``cubes``), and their weight on either
  side (``balance``)
* Regular cuts: when a cube is split (``rules``), the splits (``regular``) and the rows of a part
  (``stack_rows``)
* The axes that tell rows apart: ``separation``
"""
