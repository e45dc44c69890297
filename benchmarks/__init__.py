"""Benchmarks: one command each, run against the real service or the real engine.

Results are dated in `results/`. Importing the package makes torch's threads wait as the service
makes them, which has to be settled before torch is loaded.
"""

from chatserve.environment import wait_passively

wait_passively()
