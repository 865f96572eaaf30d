"""Property tests make the same cases in each run; `make fuzz` makes new ones, and more of them.

They have no deadline: on a busy machine, a case that took long would fail.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", PATIENT, derandomize=True)
settings.register_profile("fuzz", PATIENT, derandomize=False)
settings.load_profile("fuzz" if os.environ.get("BARNABAS_FUZZ") else "repeatable")
