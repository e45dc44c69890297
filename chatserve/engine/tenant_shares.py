"""How far each tenant is ahead of the others in this engine.

Owns a counter per tenant that has requests here. Knows no request. Who gets into the engine is
decided in the store; here the counters only say who has to step back when pages are short.

The counters are those of the Virtual Token Counter (Sheng et al., "Fairness in Serving Large
Language Models", OSDI 2024): a tenant that comes back starts where the one furthest behind is, so
that nobody saves up turns by being away.
"""

_INPUT_WEIGHT = 1
_OUTPUT_WEIGHT = 2


class TenantShares:
    """Work done for each tenant.

    Owns: counters of the tenants that have requests. Used from: the scheduler.
    """

    def __init__(self) -> None:
        self._served: dict[str, int] = {}
        self._num_requests: dict[str, int] = {}

    def enter(self, tenant: str) -> None:
        """Count a request of the tenant in."""
        if tenant not in self._served:
            self._served[tenant] = min(self._served.values(), default=0)
        self._num_requests[tenant] = self._num_requests.get(tenant, 0) + 1

    def leave(self, tenant: str) -> None:
        """Count a request out; a tenant without requests is forgotten."""
        self._num_requests[tenant] -= 1
        if self._num_requests[tenant] == 0:
            del self._num_requests[tenant], self._served[tenant]

    def charge(self, tenant: str, num_input_tokens: int, num_output_tokens: int) -> None:
        """Add what a step computed for the tenant."""
        self._served[tenant] += _INPUT_WEIGHT * num_input_tokens
        self._served[tenant] += _OUTPUT_WEIGHT * num_output_tokens

    def served(self, tenant: str) -> int:
        return self._served[tenant]
