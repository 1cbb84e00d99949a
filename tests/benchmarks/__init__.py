"""What the library costs beside scipy and scikit-learn; ``make bench`` writes docs/benchmarks/arrays.md.

``sets`` are the points, ``contenders`` what is called, ``measure`` how, ``questions`` what is asked of whom,
``page`` and ``plots`` the answers.
"""
