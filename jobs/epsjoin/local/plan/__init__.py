"""How a join is cut into parts: the cuts, their costs, the tree, the plan.

* What a caller may set: ``cuts``; when a cube is split: ``split_rules``
* The planner: ``planner`` grows a ``tree`` of planned cuts or chooses regular ones (``regular``); in many
  dimensions ``ways`` asks ``product`` and ``separation`` whether products cost less, for which
  ``block_planner`` makes ``blocks``
* What it goes by: ``costs``, ``sizes``, ``projection``, ``row_by_row``, ``two_tables``; what a join is
  expected to have: ``expectation``
* The plan: ``join_plan``, as text ``stored``; by it rows are sent to parts (``spread``, ``one_sided``; for
  other systems ``blocking``) and compared there by ``keys``
"""
