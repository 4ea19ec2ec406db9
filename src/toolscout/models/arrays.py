"""Arrays by the type of their items. Importing this module loads numpy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
RowArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.uint8]
