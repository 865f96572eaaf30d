"""The benchmark: barnabas beside its peers on the same machine in the same run; `python -m bench` prints the ratios.

Its one rule: only ratios of things measured in turns count, because times of a shared machine do not repeat. Everything
stays on the loopback address and is bounded in count and time.
"""
