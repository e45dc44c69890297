"""Chat load against any server that speaks OpenAI's API: chatserve, and those it is compared with.

One client for all of them, so that figures from one machine can be put side by side. `scenario`
says who asks what and when, `clients` asks over one of two protocols, `figures` sums up. `python -m
benchmarks.chat_load --help` runs one scenario and prints one line of JSON.
"""
