"""What becomes of pairs: room for them, their order, a matrix.

* What a sweep fills, and its counters: ``batch``
* What puts pairs in order: ``sort_pairs``, ``pair_keys`` and ``ranks``
* A matrix of them: ``graph``
"""
