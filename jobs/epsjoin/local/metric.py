"""The metrics: what a distance is, and the coordinates in which a join searches for pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from epsjoin.errors import ArgumentError
from epsjoin.kernels import distances
from epsjoin.kernels.arrays import Floats, Points
from epsjoin.kernels.distances import Decision
from epsjoin.kernels.projection import MAXIMUM, SQUARES, SUM
from epsjoin.local.arguments import as_number

METRICS = {
    "euclidean": distances.EUCLIDEAN,
    "manhattan": distances.MANHATTAN,
    "chebyshev": distances.CHEBYSHEV,
    "minkowski": distances.MINKOWSKI,
    "cosine": distances.COSINE,
    "haversine": distances.HAVERSINE,
    "haversine_radians": distances.HAVERSINE_RADIANS,
}
"""Kernels' numbers of the metrics, by name."""

ALIASES = {"l1": "manhattan", "cityblock": "manhattan", "l2": "euclidean"}
"""Other names of metrics, as scikit-learn and SciPy have them."""

_TURNS = {"haversine": 360.0, "haversine_radians": 2.0 * math.pi}
"""Full turns of a longitude, by the metrics of places (latitude, longitude)."""

_MIN_POWER, _MAX_POWER = 1e-300, 1e300
"""Range of the power of eps that sums are compared with; beyond it are underflow and overflow."""

_RELATIVE_SLACK = 1e-12
"""Bound of the rounding error of a metric's formula, relative to eps; that of one axis is a few 1e-16."""

_SQUARES_SLACK, _MIN_SQUARE = 1e-9, 1e-300
"""Bounds of the rounding error of a sum of squares: relative, and for squares that have few digits."""

_SPHERE_SLACK = 1e-12
"""Bound of the rounding errors of coordinates and formula on the unit sphere, absolute."""

_PLACE_ROUNDING = 3.0 * 2.0**-50
"""Slack of the difference of two coordinates of places on the unit sphere, relative to one of them.

Each is a product of two sines or cosines, which rounds by 2.5 * 2**-52 at most. And where longitudes are full
turns apart, up to 4 pi, the formula rounds their difference by 2**-50, times the cosine of the latitude,
which is the length of the first two coordinates.
"""

_COSINE_SLACK, _MAX_COSINE_DIMENSIONS = 1e-9, 1 << 20
"""Bound of the rounding error of the cosine, and maximum number of coordinates for which it holds.

The sum rounds by 2**-53 per coordinate.
"""


@dataclass(frozen=True)
class Metric:
    """A metric by name; made by :func:`get_metric`.

    Parameters
    ----------
    name : name of the metric, see :func:`get_metric`.
    p : exponent of the Minkowski distance, at least 1; 0, without a meaning, for the other metrics.

    Raises
    ------
    ArgumentError
        The name is unknown, or p is not an exponent of this metric.

    Examples
    --------
    >>> get_metric("haversine").unit, get_metric("haversine_radians").unit
    ('km', 'rad')
    """

    name: str
    p: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what the kernels do not know; also aliases, which only :func:`get_metric` takes."""
        if not isinstance(self.name, str) or self.name not in METRICS:
            raise ArgumentError(f"unknown metric {self.name!r}; known are {', '.join(METRICS)}")
        power = as_number(self.p)
        if self.name != "minkowski":
            if power != 0.0:
                raise ArgumentError(f"p belongs to minkowski only, not to {self.name}")
        elif not 1.0 <= power < math.inf:
            raise ArgumentError(f"minkowski needs a finite p of at least 1, not {self.p!r}")
        object.__setattr__(self, "p", power)

    @property
    def unit(self) -> str:
        """Unit of distances and eps: "km" for haversine, "rad" for haversine_radians, else ""."""
        return {"haversine": "km", "haversine_radians": "rad"}.get(self.name, "")

    @property
    def is_on_sphere(self) -> bool:
        """Whether points are compared on the unit sphere: as directions by cosine, as places by haversine."""
        return self.name in ("cosine", *_TURNS)

    @property
    def full_turn(self) -> float:
        """Full turn of a longitude: 360 for haversine, 2 pi for haversine_radians, else 0."""
        return _TURNS.get(self.name, 0.0)

    @property
    def power(self) -> float:
        """Exponent of the differences whose sum is compared with the power of eps."""
        return 2.0 if self.name == "euclidean" else self.p or 1.0

    @property
    def norm(self) -> int:
        """How differences of embedded coordinates give a lower bound of the distance, as a kernels' constant.

        The Minkowski distance is never below the Euclidean one for p up to 2, and never below the largest
        difference for any p.
        """
        if self.name == "manhattan":
            return SUM
        if self.name == "chebyshev" or (self.name == "minkowski" and self.p > 2.0):
            return MAXIMUM
        return SQUARES

    def dimensions(self, d: int) -> int:
        """Return the number of embedded coordinates of a point with d coordinates: 3 on the sphere, else d.

        Raises
        ------
        ArgumentError
            d is 0; it is not 2 for a metric on the sphere; it is beyond 2**20 for cosine.
        """
        if d < 1:
            raise ArgumentError("points need at least one coordinate")
        if self.name in _TURNS:
            if d != 2:
                raise ArgumentError(f"{self.name} needs 2 coordinates (lat, lon), not {d}")
            return 3
        if self.name == "cosine" and d > _MAX_COSINE_DIMENSIONS:
            largest = _MAX_COSINE_DIMENSIONS
            raise ArgumentError(f"cosine is exact for up to {largest} coordinates, not for {d}")
        return d

    def check_eps(self, eps: object, name: str = "eps") -> float:
        """Return eps as a float, if this metric can decide exactly which distances are within it.

        Parameters
        ----------
        eps : the threshold.
        name : what the caller calls it, for the message.

        Raises
        ------
        ArgumentError
            eps is not a finite number above 0, or its power (``eps ** 2`` for euclidean, ``eps ** p`` for
            minkowski) is not from 1e-300 to 1e300.
        """
        number = as_number(eps)
        if not 0.0 < number < math.inf:
            remedy = (
                "; box_join((points, points)) finds equal points" if number == 0 and name == "eps" else ""
            )
            given = eps.item() if isinstance(eps, np.ndarray) and eps.ndim == 0 else eps
            raise ArgumentError(f"{name} must be a finite number above 0, not {given!r}{remedy}")
        if not _MIN_POWER <= distances.power(number, self.power) <= _MAX_POWER:
            raise ArgumentError(
                f"{name} = {number!r} is too small or too large for exact {self.name} decisions"
            )
        return number

    def check(self, points: Points, name: str = "") -> None:
        """Refuse points for which the metric is not defined.

        Parameters
        ----------
        points : (n, d) float64 or float32, finite, which is not checked; not modified.
        name : of the argument that holds them, with which the message begins.

        Raises
        ------
        ArgumentError
            For cosine, a vector has the length 0 (or one outside 1e-150 to 1e150). On the sphere, a latitude
            is beyond a pole, or a longitude is beyond one full turn. The message names the first such row.
        """
        of_argument = f"{name}: " if name else ""
        try:
            found = self.first_undefined(points)
        except ArgumentError as error:
            raise ArgumentError(f"{of_argument}{error}") from None
        if found is not None:
            row, needs = found
            raise ArgumentError(f"{of_argument}{needs}; row {row} breaks this")

    def first_undefined(self, points: Points) -> tuple[int, str] | None:
        """Find the first row for which the metric is not defined, and say what it needs; see :meth:`check`.

        Raises
        ------
        ArgumentError
            The points have a number of coordinates for which it is not defined.
        """
        self.dimensions(points.shape[1])
        if self.name == "cosine":
            with np.errstate(over="ignore", under="ignore"):
                square = np.einsum("ij,ij->i", points, points, dtype=np.float64)
            bad = ~((square >= _MIN_POWER) & (square <= _MAX_POWER))
            needs = "cosine needs vectors with a length from 1e-150 to 1e150"
        elif self.name in _TURNS:
            pole = self.full_turn / 4.0
            bad = (np.abs(points[:, 0]) > pole) | (np.abs(points[:, 1]) > 4.0 * pole)
            needs = (
                # all digits: float32(pi / 2) is above the largest latitude in radians
                f"{self.name} needs a latitude from -{pole:.17g} to {pole:.17g} "
                f"and a longitude from -{4 * pole:.17g} to {4 * pole:.17g}"
            )
        else:
            return None
        return (int(np.argmax(bad)), needs) if bad.any() else None

    def embed(self, points: Floats) -> Floats:
        """Compute coordinates in which pairs within eps differ by at most ``embedded_eps(eps)``.

        Parameters
        ----------
        points : (n, d) float64, finite; not modified.

        Returns
        -------
        (n, dimensions(d)) float64: the points themselves (no copy); for cosine and haversine points on the
        unit sphere, whose chord never becomes shorter when the distance becomes larger.

        Raises
        ------
        ArgumentError
            See :meth:`check`.
        """
        self.check(points)
        if self.name == "cosine":
            return distances.embed_directions(points)
        if self.name == "haversine":
            return distances.embed_sphere(np.radians(points))
        if self.name == "haversine_radians":
            return distances.embed_sphere(points)
        return points

    def embedded_eps(self, eps: float) -> float:
        """Return the threshold in embedded coordinates, a little too large, so that rounding loses no pair.

        For Lp metrics the difference on one axis is never larger than the whole distance. On the unit sphere
        the chord is ``sqrt(2 eps)`` (cosine) or ``2 sin(eps / 2R)`` (haversine; R = 1 in radians). For
        cosine, the slack under the root covers the rounding of the formula itself, which matters where eps is
        tiny.
        """
        if self.name == "cosine":
            return float(cosine_chord(eps))
        if self.name in _TURNS:
            radius = distances.EARTH_RADIUS_KM if self.name == "haversine" else 1.0
            half_angle = min(eps / (2.0 * radius), math.pi / 2.0)
            return 2.0 * math.sin(half_angle) * (1.0 + _RELATIVE_SLACK) + _SPHERE_SLACK
        return float(axis_difference(eps))

    def embedded_bound(self, eps: float) -> float:
        """Return the largest norm of the differences of embedded coordinates of two points within eps.

        For sums of squares it is a square, with a slack for the rounding of the sum.
        """
        near = self.embedded_eps(eps)
        return near * near * (1.0 + _SQUARES_SLACK) + _MIN_SQUARE if self.norm == SQUARES else near

    def slack(self, largest: Floats) -> Floats | None:
        """Bound by how much embedded coordinates of two points may seem too far apart, where there is no eps.

        Parameters
        ----------
        largest : (..., dimensions(d)) float64, the largest absolute embedded coordinates of one of the
            points. Those of the other point may have any size: if they are larger, so is the difference, and
            its rounding is relative.

        Returns
        -------
        float64 of the same shape. None: no slack is needed, because their rounding is relative to the
        distance (points that are not embedded), or because searches allow for it anyway (cosine, whose
        formula rounds by more).
        """
        if self.name not in _TURNS:
            return None
        slack = _PLACE_ROUNDING * largest
        slack[..., :2] = slack[..., :2].max(axis=-1, keepdims=True)
        return slack

    def decision(self, eps: float) -> Decision:
        """Return what the sweeps need to decide a pair on its coordinates as they came."""
        return distances.make_decision(METRICS[self.name], self.p, float(eps))


def cosine_chord(distance: float | Floats) -> Floats:
    """The largest chord of two directions within a cosine distance, with slack."""
    return np.asarray(np.sqrt(2.0 * (distance + _COSINE_SLACK)) + _COSINE_SLACK)


def axis_difference(distance: float | Floats) -> Floats:
    """The largest difference on an axis of two points within a distance of an Lp metric, with slack."""
    return np.asarray(distance * (1.0 + _RELATIVE_SLACK))


def get_metric(name: str | Metric, p: float | None = None) -> Metric:
    """Make the metric of this name.

    Parameters
    ----------
    name : "euclidean", "manhattan", "chebyshev", "minkowski", "cosine" (the distance ``1 - cos``, from 0 to
        2), "haversine" (km between points (lat, lon) in degrees, on a sphere of radius 6371.0088 km), or
        "haversine_radians" (the angle between points (lat, lon), all in radians, as in scikit-learn). "l1"
        and "cityblock" are other names of manhattan, "l2" is one of euclidean. A metric is returned as it is.
    p : exponent of minkowski, a finite number of at least 1; not allowed for the other metrics.

    Returns
    -------
    Metric
        Can be passed as the argument ``metric`` of any join.

    Raises
    ------
    ArgumentError
        The name is unknown (the message lists the known names); p is missing, wrong, or not allowed.

    Examples
    --------
    >>> get_metric("minkowski", p=3)
    Metric(name='minkowski', p=3.0)
    """
    if p is None and isinstance(name, str) and name in _NAMED:
        return _NAMED[name]
    if isinstance(name, Metric):
        if p is not None:
            raise ArgumentError(f"p belongs to the name of a metric, not to {name}")
        return name
    name = ALIASES.get(name, name) if isinstance(name, str) else name
    if isinstance(name, str) and name == "minkowski":  # an array of weights would be compared item by item
        power = as_number(p)
        if not 1.0 <= power < math.inf:
            give = "give get_metric('minkowski', p=3) as the metric"
            remedy = give if p is None else "p = inf is chebyshev"
            raise ArgumentError(f"minkowski needs a finite p of at least 1, not {p!r}; {remedy}")
        return Metric(name, power)
    found = Metric(name)
    if p is not None:
        raise ArgumentError(f"p belongs to minkowski only, not to {name}")
    return found


_NAMED = {name: Metric(name) for name in METRICS if name != "minkowski"}
_NAMED |= {alias: _NAMED[name] for alias, name in ALIASES.items()}
"""The metrics that a name alone tells, by their names."""
