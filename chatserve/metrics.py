"""Names and buckets of the metrics, shared by the processes that export them.

Owns what a metric is called. Each process fills and exports its own; `prometheus_client` does the
counting and the text format.
"""

from prometheus_client import disable_created_metrics

# The time at which each counter was made: a second series for every one, which nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]

TTFT = ("chatserve_time_to_first_token_seconds", "From enqueue to the first token of an answer.")
ITL = ("chatserve_inter_token_latency_seconds", "Between two tokens, or two deltas, of an answer.")

TTFT_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6)
ITL_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.4, 0.8, 1.6)
