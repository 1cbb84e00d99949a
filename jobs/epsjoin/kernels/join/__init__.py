"""Compiled loops of joins: cuts and codes, sweeps, products, pairs.

* Which rows a part has: planned cuts in ``cuts``, weighed by ``balance``; regular cuts in ``codes``,
  ``rules`` and ``regular``; cubes of any extent in ``cubes``; rows near those that changed in ``near_cells``
* In which coordinates rows are compared: ``projection``, ``separation``
* With a window: ``window``, on sorted keys (``window_keys``, ``window_gaps``), by ``vectors``; what passes
  the filter waits (``survivors``) and is decided (``near_pairs``); semi joins: ``partner_sweep``
* Row by row, in few dimensions: ``row_sweep``, with ``row_windows`` and ``row_vectors``; few rows in one
  call: ``few_rows``, with ``near_values``
* With a stack, as in the papers: ``stack_sweep``, ``sweep_area``; boxes: ``box_sweep``; many dimensions by
  products: ``product``, on ``filter_rows``
* For all of these: ``lanes``, ``directory``, ``read_ahead``
* What becomes of pairs: ``sort_pairs``, ``pair_keys`` and ``ranks`` put them in order, ``graph`` makes a
  matrix
"""
