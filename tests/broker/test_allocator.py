from __future__ import annotations

import platform
import subprocess
import sys

import pytest

ROUNDS = """
import resource, sys
from barnabas.broker.allocator import keep_large_blocks
if sys.argv[1] == "kept":
    assert keep_large_blocks()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3):
    blocks = [b"x" * 1_000_000 for _ in range(8)]
before = faults()
for _ in range(50):
    blocks = [b"x" * 1_000_000 for _ in range(8)]
    del blocks
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
def test_large_blocks_are_used_again_instead_of_being_asked_for_page_by_page() -> None:
    faults = [
        int(subprocess.run([sys.executable, "-c", ROUNDS, how], capture_output=True, check=True).stdout)
        for how in ("kept", "given back")
    ]
    assert faults[0] * 10 < faults[1]
