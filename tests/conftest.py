"""Property tests make the same cases in each run; `make fuzz` makes new ones, and more of them."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True)
settings.register_profile("fuzz", derandomize=False)
settings.load_profile("fuzz" if os.environ.get("BARNABAS_FUZZ") else "repeatable")
