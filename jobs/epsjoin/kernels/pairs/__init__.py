"""What becomes of pairs: they are stored, put in order, and written as a matrix.

* Room for the pairs of a sweep, and its counters: ``batch``
* Kernels that put pairs in order: ``sort_pairs``, ``pair_keys`` and ``ranks``
* Pairs as a sparse matrix: ``graph``
"""
