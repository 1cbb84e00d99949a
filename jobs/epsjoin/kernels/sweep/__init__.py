"""Compiled sweeps: all pairs within eps among the rows of a part.

* With a window: ``window``, on sorted keys (``window_keys``, ``window_gaps``, a ``directory`` of them), by
  ``vectors``; pairs that pass the filter wait (``survivors``) and are decided (``near_pairs``);
  ``partner_sweep`` is the sweep of semi joins
* Row by row, in few dimensions: ``row_sweep``, with ``row_windows`` and ``row_vectors``; few rows in one
  call: ``few_rows``
* With a stack, as in the papers: ``stack_sweep``, ``sweep_area``; boxes: ``box_sweep``
* For an increment, the rows near those that changed: ``near_cells``
"""
