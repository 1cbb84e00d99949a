"""``make experiments``: the figures and tables of the dissertation on GESS (chapter 3) that can be rerun.

Each experiment says what the text claims, what comes here, and whether the claim holds; what is counted is
the same on every machine, seconds are not. The parameters are those of the text where the data allow it.
"""
