"""Records with a history: version trees, ranges of runs, eras, and the paper's pages.

For users with data of their own. No job keeps ranges: a table's slices stay whole, and
:func:`epsjoin.spark.history` makes ranges of them when somebody asks.
"""
