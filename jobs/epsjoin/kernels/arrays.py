"""Types of the arrays that algorithms work on, in one set of names."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Numbers32 = NDArray[np.uint32]
Ints8 = NDArray[np.int8]
Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Bools = NDArray[np.bool_]
Points = Floats | Floats32
