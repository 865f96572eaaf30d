"""Property tests make the same cases in each run; `make fuzz` makes new ones, and more of them.

They have no deadline: on a busy machine, a case that took long would fail.

A shell starts background jobs with Ctrl-C ignored, and every process that a test starts would inherit that.
"""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", PATIENT, derandomize=True)
settings.register_profile("fuzz", PATIENT, derandomize=False)
settings.load_profile("fuzz" if os.environ.get("BARNABAS_FUZZ") else "repeatable")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
