"""The process that clients talk to: HTTP, event streams, sockets and the page.

It turns messages into token ids, admits, enqueues and tails the log of each answer. It holds no
KV, loads no weights and never imports torch; what must outlive it stands in the store.
"""
