"""The servers that chatserve is measured against: llama.cpp and vLLM's build for CPUs.

Each is installed into a virtual environment of its own in the user's cache folder, so that nothing
of it is part of this project. `layout` says which versions and where, `install`, `weights` and
`random_model` put things there, `servers` and `llama_bench` run them, `sweep` finds the flags that
suit llama.cpp best on this machine. `python -m benchmarks.peers setup` does it all.
"""
