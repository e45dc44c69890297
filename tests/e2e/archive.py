"""Conversations that tests in a browser find already there: stored by way of an import."""

from collections.abc import Sequence
from typing import Any

import httpx

CREATED_AT = 1_767_225_600


def message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "text": text, "created_at": CREATED_AT}


def conversation(title: str, messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a conversation in which each message follows the one before."""
    items = [
        {**each, "id": f"m{number}", "parent_id": f"m{number - 1}" if number else None}
        for number, each in enumerate(messages)
    ]
    times = {"created_at": CREATED_AT, "updated_at": CREATED_AT}
    return {"id": "c", "title": title, **times, "items": items}


def import_conversations(url: str, conversations: Sequence[dict[str, Any]]) -> list[str]:
    """Store conversations and return their ids."""
    numbered = [{**each, "id": f"c{number}"} for number, each in enumerate(conversations)]
    document = {"object": "chatserve.conversations", "format": 1, "conversations": numbered}
    path = f"{url}/v1/chatserve/conversations/import"
    reply = httpx.post(path, json=document, timeout=60)
    assert reply.status_code == 200, reply.text
    ids: list[str] = reply.json()["conversation_ids"]
    return ids
