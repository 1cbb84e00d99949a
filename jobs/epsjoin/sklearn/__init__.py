"""Estimators with scikit-learn's interface; the only package that needs scikit-learn.

``from epsjoin.sklearn import DBSCAN`` in place of ``from sklearn.cluster import DBSCAN``, and so for others.
Nothing else imports it, so that epsjoin works without scikit-learn.
"""

from __future__ import annotations

from epsjoin.errors import needing_extra

with needing_extra("epsjoin.sklearn"):
    from epsjoin.sklearn.dbscan import DBSCAN
    from epsjoin.sklearn.hdbscan import HDBSCAN
    from epsjoin.sklearn.outliers import LocalOutlierFactor
    from epsjoin.sklearn.transformers import KNeighborsTransformer, RadiusNeighborsTransformer

__all__ = ["DBSCAN", "HDBSCAN", "KNeighborsTransformer", "LocalOutlierFactor", "RadiusNeighborsTransformer"]
