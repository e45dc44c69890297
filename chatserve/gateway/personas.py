"""Personas: a tenant's registered prompts, as its requests use them.

Owns the way from a reference or an alias to the text that leads the system message, and who may
have it: nobody finds a prompt of another tenant, and the answer is the one for a prompt that does
not exist. The texts come from `prompt_registry.py`.
"""

from collections.abc import Mapping, Sequence

from chatserve.error_codes import ErrorCode
from chatserve.errors import InvalidRequest, NotFound
from chatserve.gateway.prompt_registry import PromptRegistry
from chatserve.gateway.services import Services
from chatserve.identity import Identity
from chatserve.protocol.errors import describe
from chatserve.protocol.responses import PromptReference
from chatserve.store.named_prompt import NamedPrompt, parse_version
from chatserve.text.variables import MAX_FILLED_CHARS, MAX_VALUE_CHARS, fill, filled_len


async def resolve_prompt(services: Services, identity: Identity, reference: PromptReference) -> str:
    """Return the text of a prompt of the caller's tenant, with its variables filled in.

    Raises:
        NotFound: The tenant has no such prompt, or not in this version.
        InvalidRequest: A variable has no value, or a value no variable, or a value is too long.
    """
    prompt = services.prompts.current(identity.tenant, reference.id)
    if prompt is None:
        raise NotFound(
            f"there is no prompt {describe(reference.id)}",
            code=ErrorCode.PROMPT_NOT_FOUND,
            param="prompt.id",
        )
    if reference.version is not None:
        prompt = await _in_version(services.prompts, prompt, reference.version)
    return _filled(prompt, reference.variables)


def alias_names(registry: PromptRegistry, tenant: str) -> list[str]:
    """Return the personas of a tenant that need no values, which an alias has no place for."""
    return [prompt.name for prompt in registry.of_tenant(tenant) if not _without_default(prompt)]


def persona_text(registry: PromptRegistry, tenant: str, name: str) -> str | None:
    """Return the text of a persona with its defaults filled in, None when there is none.

    Raises:
        InvalidRequest: One of its variables has no default.
    """
    prompt = registry.current(tenant, name)
    if prompt is None:
        return None
    missing = _without_default(prompt)
    if missing:
        raise InvalidRequest(
            f"model: the prompt {describe(name)} has no default for its variable "
            f"{describe(missing[0])}; use it by `prompt`, with `variables`",
            code=ErrorCode.MISSING,
            param="model",
        )
    return _filled(prompt, {})


async def _in_version(registry: PromptRegistry, prompt: NamedPrompt, version: str) -> NamedPrompt:
    number = parse_version(version)
    found = number and await registry.version(prompt.tenant, prompt.name, number)
    if not found:
        raise NotFound(
            f"prompt {describe(prompt.name)} has no version {describe(version)}",
            code=ErrorCode.PROMPT_NOT_FOUND,
            param="prompt.version",
        )
    return found


def _without_default(prompt: NamedPrompt) -> list[str]:
    return [name for name in prompt.variables if name not in prompt.defaults]


def _filled(prompt: NamedPrompt, given: Mapping[str, str]) -> str:
    variables = prompt.variables
    for name, value in given.items():
        _check_value(prompt, variables, name, value)
    values = prompt.defaults | dict(given)
    missing = next((name for name in variables if name not in values), None)
    if missing is not None:
        raise InvalidRequest(
            f"prompt.variables.{missing} is required: prompt {describe(prompt.name)} has no "
            "default for it",
            code=ErrorCode.MISSING,
            param=f"prompt.variables.{missing}",
        )
    num_chars = filled_len(prompt.text, values)
    if num_chars > MAX_FILLED_CHARS:
        raise InvalidRequest(
            f"prompt.variables: with these values the prompt has {num_chars} characters, the "
            f"limit is {MAX_FILLED_CHARS}",
            param="prompt.variables",
        )
    return fill(prompt.text, values)


def _check_value(prompt: NamedPrompt, variables: Sequence[str], name: str, value: str) -> None:
    if name not in variables:
        raise InvalidRequest(
            f"prompt.variables: prompt {describe(prompt.name)} has no variable {describe(name)}",
            param="prompt.variables",
        )
    if len(value) > MAX_VALUE_CHARS:
        raise InvalidRequest(
            f"prompt.variables.{name}: must have at most {MAX_VALUE_CHARS} characters, received "
            f"{describe(value)}",
            param=f"prompt.variables.{name}",
        )
