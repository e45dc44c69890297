"""How much one gateway process delivers, and what it adds to the latency of each event.

    python -m benchmarks.gateway [--quick]

The engine is left out: `source.py` is a worker that claims from the real queue and appends to the
real logs, on a clock instead of on a model. Gateway, source, store and client are processes of
their own. Every delta carries the time of its append, which the client compares with its arrival.
"""
