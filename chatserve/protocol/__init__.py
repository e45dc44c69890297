"""What crosses the wire: bodies and client events on the way in, events and objects on the way out.

Pure functions and frozen records over JSON values. Nothing here does I/O, keeps time or knows a
store, so that every rule of the protocol can be tested with literals.
"""
