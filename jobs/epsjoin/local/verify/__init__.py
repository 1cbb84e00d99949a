"""An independent check of stored pairs, labels, chains of core points and scores, by NumPy and ``math`` only.

Nothing here uses the kernels, the metrics or the plans of the joins that it checks.
"""
