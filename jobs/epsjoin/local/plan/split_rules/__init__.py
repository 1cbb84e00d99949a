"""When a cube of regular cuts is split, and the rows that follow.

* The rules: those of the papers in ``rules``, a function of the user's in ``own_rule``
* Points as rows with codes, by such a rule: ``encode``
"""
