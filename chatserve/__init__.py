"""chatserve: streaming chat for many tenants over one language model.

ARCHITECTURE.md follows a message through the packages below in the order a token travels:
protocol, gateway, store, engine, cache, model, kernels.
"""

__version__ = "0.1.0"
