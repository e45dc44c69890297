"""`chatserve serve`: store, engine and gateway as children of one process that looks after them.

`serve` puts it together; `supervisor` keeps services running; `child_process` and `lifeline` start
processes that cannot outlive it; `data_folder` keeps a second one away from the same data.
"""
