"""How a join is cut into parts: the cuts, their costs, the tree, the plan.

* What a caller may set: ``cuts``; when a cube is split: ``rules``, ``own_rule``
* The planner: ``planner`` grows a tree of planned cuts (``grow_tree``, ``cut_leaf``, ``cut_tree``; of boxes
  ``box_tree``) or chooses regular ones (``regular``, ``encode``); in many dimensions ``ways`` asks
  ``product`` and ``separation`` whether products cost less, for which ``block_planner`` makes ``blocks``
* What it goes by: ``costs``, ``sizes``, ``projection``, ``row_by_row``, ``two_tables``; pairs of a sample,
  counted in ``sample_pairs``, ``held_pairs`` and ``decided_pairs``, and what follows for all rows:
  ``expected``, ``expected_parts``
* The plan: ``join_plan``, as text ``stored``; by it rows are sent to parts (``spread``, ``one_sided``; for
  other systems ``blocking``) and compared there by ``keys``
"""
