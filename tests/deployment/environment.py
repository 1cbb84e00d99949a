"""The project and its compose file, as the tests of images and services read them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from service import ADMIN_PASSWORD, SECRETS

REPO = Path(__file__).resolve().parents[2]
DOCKER = REPO / "docker"
ALL_SECRETS = {*SECRETS.values(), ADMIN_PASSWORD}


def await_(condition: Any, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
