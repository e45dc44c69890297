"""Everything that outlives a process: sessions, queue, leases, answers and their logs.

One Redis or Valkey server, 6.2 or newer, holds it. `connection.open_store` is the way in,
`keys.py` names everything that is stored, and `lua/` holds the steps that must be atomic. Knows
neither HTTP nor torch; gateways and workers meet here and nowhere else.
"""
