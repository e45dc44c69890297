"""What an operator does to a running service from the command line.

Each command talks to the store that gateways and workers use, and to nothing else. Knows neither
HTTP nor torch.
"""
