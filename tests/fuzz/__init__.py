"""Fuzzing: inputs that nobody wrote, for everything that reads bytes.

One file per target: codec, frames, batches, records, recovery. A target is a function from bytes to nothing that raises
if a promise is broken, and the inputs to begin with. `loop` mutates them by a seed and needs nothing else; `guided` lets
coverage guide the mutations (atheris, the extra `fuzz`); `live` sends requests to a node. `python -m tests.fuzz` runs all.
"""
