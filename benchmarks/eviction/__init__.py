"""How well the order of eviction predicts what is needed again: ours, least recent use, Belady.

python -m benchmarks.eviction [--seeds 3]
"""
