"""`GET /v1/chatserve/usage`: what was used, for whoever may know it.

Owns the query and the reply. Members see what they used themselves; an operator sees all users of a
tenant, of the own one unless another is named.
"""

from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from chatserve.error_codes import ErrorCode
from chatserve.errors import Forbidden, InvalidRequest, NotFound
from chatserve.gateway.identity import identity_of
from chatserve.gateway.operations import Operation, Query, text
from chatserve.gateway.query import check_names
from chatserve.gateway.replies import json_response
from chatserve.gateway.services import Services
from chatserve.identity import Identity, is_tenant_name
from chatserve.protocol.errors import describe
from chatserve.store.connection import Store
from chatserve.store.usage_report import UsageGroup, UsageReport, report_of

MAX_DAYS = 400
_DEFAULT_DAYS = 30
_FIRST_DAY = date(2000, 1, 1)


@dataclass(frozen=True, slots=True)
class _Query:
    tenant: str
    first: date
    last: date
    group: UsageGroup


def routes() -> list[BaseRoute]:
    """Return the routes of this module."""
    return [Route("/v1/chatserve/usage", get_usage, methods=["GET"])]


async def get_usage(request: Request) -> Response:
    """Serve `GET /v1/chatserve/usage`."""
    check_names(request, "tenant", "from", "to", "group_by")
    services: Services = request.app.state.services
    identity = identity_of(request)
    query = _parse(request, identity)
    if query.tenant != identity.tenant:
        await _check_known(services.store, query.tenant)
    user = None if identity.is_operator else identity.user
    rows = await services.store.usage.read(query.tenant, query.first, query.last, user=user)
    return json_response(_body(query, report_of(rows, query.group)))


def _parse(request: Request, identity: Identity) -> _Query:
    today = datetime.now(UTC).date()
    last = _day(request, "to", today)
    first = _day(request, "from", last - timedelta(days=_DEFAULT_DAYS - 1))
    if not 0 <= (last - first).days < MAX_DAYS:
        raise InvalidRequest(f"from: {first} to {last} are not 1 to {MAX_DAYS} days", param="from")
    return _Query(_tenant(request, identity), first, last, _group(request))


def _tenant(request: Request, identity: Identity) -> str:
    name = request.query_params.get("tenant", identity.tenant)
    if not is_tenant_name(name):
        raise InvalidRequest(f"tenant: {describe(name)} is no name of a tenant", param="tenant")
    if name != identity.tenant and not identity.is_operator:
        raise Forbidden("only an operator sees other tenants", code=ErrorCode.OPERATOR_ONLY)
    return name


async def _check_known(store: Store, tenant: str) -> None:
    """Raise NotFound for a tenant that there is not, and of which nothing is counted."""
    if not await store.usage.knows(tenant) and await store.tenants.get(tenant) is None:
        message = f"there is no tenant {describe(tenant)}"
        raise NotFound(message, code=ErrorCode.TENANT_NOT_FOUND, param="tenant")


def _day(request: Request, name: str, default: date) -> date:
    text = request.query_params.get(name)
    if text is None:
        return default
    day = _parse_day(text)
    if day is None or day < _FIRST_DAY:
        message = f"{name}: must be a day such as 2026-01-31, received {describe(text)}"
        raise InvalidRequest(message, param=name)
    return day


def _parse_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _group(request: Request) -> UsageGroup:
    text = request.query_params.get("group_by", UsageGroup.DAY)
    groups = (UsageGroup.DAY, UsageGroup.USER, UsageGroup.MODEL)
    if text not in groups:
        raise InvalidRequest(
            f"group_by: must be one of {', '.join(groups)}, received {describe(text)}",
            param="group_by",
        )
    return UsageGroup(text)


def _body(query: _Query, report: UsageReport) -> dict[str, object]:
    return {
        "object": "chatserve.usage",
        "tenant": query.tenant,
        "from": query.first.isoformat(),
        "to": query.last.isoformat(),
        "group_by": query.group,
        "data": [{query.group.value: name, **asdict(used)} for name, used in report.sums],
        "total": asdict(report.total),
    }


_DATE = {"type": "string", "format": "date"}

OPERATIONS = (
    Operation(
        "GET",
        "/v1/chatserve/usage",
        "Tell what was used",
        query=(
            text("tenant"),
            Query("from", _DATE),
            Query("to", _DATE),
            Query("group_by", {"enum": [group.value for group in UsageGroup]}),
        ),
        errors=(404,),
    ),
)
