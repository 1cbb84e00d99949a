"""Questions about the neighbours of fitted points, under scikit-learn's names."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from epsjoin.errors import ArgumentError
from epsjoin.kernels.arrays import Floats, Ints
from epsjoin.local.arguments import check_choice, check_count
from epsjoin.local.coordinates import check_points
from epsjoin.local.join.arrays import join
from epsjoin.local.neighbours.knn import knn_join
from epsjoin.local.neighbours.nearest import KNearest
from epsjoin.sklearn.parameters import Asked, MetricParameters

MODES = ("distance", "connectivity")
"""Whether the entries of a graph are distances or ones."""


class FittedPoints(MetricParameters):
    """An estimator that keeps the points it is fitted to."""

    n_samples_fit_: int
    _points: Floats

    def _keep(self, X: npt.ArrayLike, least: int = 1) -> Floats:
        points = check_points("X", self._new_points(X, least)).copy()  # the caller may change X
        self._fitted_metric.check(points, "X")
        self._points = points
        self.n_samples_fit_ = len(self._points)
        return self._points

    def _graph(self, starts: Ints, columns: Ints, distance: Floats, mode: str) -> csr_matrix:
        data = distance if mode == "distance" else np.ones(len(columns))
        return csr_matrix((data, columns, starts), shape=(len(starts) - 1, self.n_samples_fit_))


class KNeighbours(FittedPoints):
    """An estimator that is asked for the nearest fitted points."""

    n_neighbors: int

    def kneighbors(
        self, X: npt.ArrayLike | None = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> tuple[Floats, Ints] | Ints:
        """Find the nearest fitted points.

        Parameters
        ----------
        X : (m, n_features) array of numbers; None stands for the fitted points, of which none is its own
            neighbour. Not modified.
        n_neighbors : number of neighbours, by default that of the estimator.
        return_distance : whether distances are returned, too.

        Returns
        -------
        (m, k) float64 distances, ascending, and (m, k) int64 rows of the fitted points, of those at the same
        distance the smallest first; or these alone.

        Raises
        ------
        ArgumentError
            There are fewer fitted points than neighbours, or the metric is not defined for a point.
        ValueError, TypeError
            scikit-learn's own checks refuse X, or the estimator is not fitted.
        """
        found = self._nearest(self._asked_or_none(X), n_neighbors)
        return (found.distance, found.neighbour) if return_distance else found.neighbour

    def kneighbors_graph(
        self, X: npt.ArrayLike | None = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> csr_matrix:
        """Find the nearest fitted points, as a graph.

        Parameters
        ----------
        X, n_neighbors : see :meth:`kneighbors`.
        mode : "connectivity" for ones, "distance" for distances.

        Returns
        -------
        (m, n_samples_fit_) sparse matrix in compressed rows, float64; the entries of a row come by distance.

        Raises
        ------
        ArgumentError, ValueError, TypeError
            See :meth:`kneighbors`.
        """
        check_choice("mode", mode, MODES)
        return self._nearest_graph(self._asked_or_none(X), n_neighbors, mode)

    def _nearest_graph(self, asked: Asked | None, k: int | None, mode: str) -> csr_matrix:
        found = self._nearest(asked, k)
        starts = np.arange(len(found.neighbour) + 1) * found.neighbour.shape[1]
        return self._graph(starts, found.neighbour.reshape(-1), found.distance.reshape(-1), mode)

    def _nearest(self, asked: Asked | None, k: int | None) -> KNearest:
        k = check_count("n_neighbors", self._usual_k() if k is None else k)
        most = self.n_samples_fit_ - (asked is None)
        if k > most:
            itself = ", and none is its own neighbour" if asked is None else ""
            raise ArgumentError(
                f"n_neighbors must be at most {most}, not {k}: {self.n_samples_fit_} points were "
                f"fitted{itself}"
            )
        return self._find_nearest(asked, k)

    def _find_nearest(self, asked: Asked | None, k: int) -> KNearest:
        how: dict[str, Any] = {"weights": self._fitted_weights, "n_jobs": self._n_jobs()}
        return knn_join(asked, self._points, k, self._fitted_metric, **how)

    def _usual_k(self) -> int:
        return self.n_neighbors


class RadiusNeighbours(FittedPoints):
    """An estimator that is asked for the fitted points within a radius."""

    radius: float

    def radius_neighbors(
        self,
        X: npt.ArrayLike | None = None,
        radius: float | None = None,
        return_distance: bool = True,
        sort_results: bool = False,  # noqa: ARG002  # scikit-learn's parameter
    ) -> tuple[npt.NDArray[np.object_], npt.NDArray[np.object_]] | npt.NDArray[np.object_]:
        """Find the fitted points within a radius.

        Parameters
        ----------
        X : (m, n_features) array of numbers; None stands for the fitted points, of which none is its own
            neighbour. Not modified.
        radius : threshold, above 0, by default that of the estimator. A point at exactly the radius is
            within it.
        return_distance : whether distances are returned, too.
        sort_results : ignored: neighbours always come by distance, ties by row.

        Returns
        -------
        (m,) arrays of float64 distances and (m,) arrays of int64 rows; or these alone.

        Raises
        ------
        ArgumentError
            The radius is not above 0, or the metric is not defined for a point.
        ValueError, TypeError
            scikit-learn's own checks refuse X, or the estimator is not fitted.
        """
        starts, columns, distance = self._within(self._asked_or_none(X), radius)
        of_rows = [np.empty(len(starts) - 1, object) for _ in range(2)]
        for each, values in zip(of_rows, (distance, columns), strict=True):
            each[:] = np.split(values, starts[1:-1])
        return (of_rows[0], of_rows[1]) if return_distance else of_rows[1]

    def radius_neighbors_graph(
        self,
        X: npt.ArrayLike | None = None,
        radius: float | None = None,
        mode: str = "connectivity",
        sort_results: bool = False,  # noqa: ARG002  # scikit-learn's parameter
    ) -> csr_matrix:
        """Find the fitted points within a radius, as a graph.

        Parameters
        ----------
        X, radius, sort_results : see :meth:`radius_neighbors`.
        mode : "connectivity" for ones, "distance" for distances.

        Returns
        -------
        (m, n_samples_fit_) sparse matrix in compressed rows, float64; the entries of a row come by distance.

        Raises
        ------
        ArgumentError, ValueError, TypeError
            See :meth:`radius_neighbors`.
        """
        check_choice("mode", mode, MODES)
        return self._graph(*self._within(self._asked_or_none(X), radius), mode)

    def _within(self, asked: Asked | None, radius: float | None) -> tuple[Ints, Ints, Floats]:
        """Where each row of the graph begins, its columns and their distances."""
        eps = self._fitted_metric.check_eps(self.radius if radius is None else radius, "radius")
        left = self._points if asked is None else asked
        how: dict[str, Any] = {"weights": self._fitted_weights, "n_jobs": self._n_jobs()}
        found = join(left, self._points, eps, self._fitted_metric, **how)
        order = np.lexsort((found.right, found.distance, found.left))
        if asked is None:
            order = order[found.left[order] != found.right[order]]
        counts = np.bincount(found.left[order], minlength=len(left))
        starts = np.concatenate(([0], np.cumsum(counts)))
        return starts, found.right[order], found.distance[order]
