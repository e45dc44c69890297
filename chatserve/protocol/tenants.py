"""Bodies of the operator's surface: tenants and keys.

Owns which fields there are. What a name or a number may be is the store's business.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from chatserve.protocol.body import WIRE

_Quota = Annotated[int, Field(ge=0)] | None


class QuotaFields(BaseModel):
    """The quotas of a tenant or a key; what is absent is not limited.

    Owns: nothing beyond its values.
    Used from: the bodies of this module.
    """

    model_config = WIRE

    requests_per_minute: _Quota = None
    tokens_per_minute: _Quota = None
    parallel_responses: _Quota = None
    connections: _Quota = None
    pinned_pages: _Quota = None

    def named(self) -> dict[str, int]:
        """Return the quotas that the body names."""
        known = type(self).model_fields
        return {name: value for name, value in self if name in known and value is not None}


class NewTenant(BaseModel):
    """The body that adds a tenant.

    Owns: nothing beyond its values.
    Used from: the operator's endpoints.
    """

    model_config = WIRE

    name: str
    quotas: QuotaFields | None = None
    models: list[str] = []


class TenantChange(BaseModel):
    """The body that changes a tenant; what is absent stays, what is there is replaced as a whole.

    Owns: nothing beyond its values.
    Used from: the operator's endpoints.
    """

    model_config = WIRE

    quotas: QuotaFields | None = None
    models: list[str] | None = None


class NewKey(BaseModel):
    """The body that adds a key.

    Owns: nothing beyond its values.
    Used from: the operator's endpoints.
    """

    model_config = WIRE

    tenant: str
    user: str
    role: Literal["member", "operator"] = "member"
    label: str = ""
    expires_at: int | None = None
    quotas: QuotaFields | None = None


class KeyFields(BaseModel):
    """The body that changes a key; what is absent stays, quotas are replaced as a whole.

    Owns: nothing beyond its values.
    Used from: the operator's endpoints.
    """

    model_config = WIRE

    role: Literal["member", "operator"] | None = None
    label: str | None = None
    expires_at: int | Literal["never"] | None = None
    quotas: QuotaFields | None = None


class Rotation(BaseModel):
    """The body that rotates a key: how long the old secret holds.

    Owns: nothing beyond its values.
    Used from: the operator's endpoints.
    """

    model_config = WIRE

    grace_s: float = 0
