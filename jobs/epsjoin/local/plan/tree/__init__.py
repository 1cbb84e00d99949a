"""The tree of planned cuts: its nodes and how it grows.

* Of points: ``grow_tree`` grows it on a sample, by the best cut of each leaf (``cut_leaf``)
* Of boxes: ``box_tree``
* As plans and kernels take it: ``cut_tree``
"""
