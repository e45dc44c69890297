"""Faults of other services' front doors, each as a small scenario with the right behaviour.

The first line of each docstring names the report; the list is in `test_faults_index.py`.
"""

from typing import Any

import pytest
from gateway.gateway_helpers import Service

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("prompt", ["", [], [""], [[]]])
async def test_an_empty_prompt_is_refused_and_the_next_request_is_served(
    shared_service: Service, prompt: Any
) -> None:
    """vllm-project/vllm#7283 #7632 #7746: an empty prompt took the engine down for everybody"""
    body = {"model": "echo", "max_tokens": 4}

    refused = await shared_service.http.post("/v1/completions", json={**body, "prompt": prompt})
    served = await shared_service.http.post("/v1/completions", json={**body, "prompt": " "})

    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "prompt"
    assert served.status_code == 200
    assert served.json()["usage"]["prompt_tokens"] == 1


@pytest.mark.parametrize("name", ["cache_salt", "prompt_cache_key"])
async def test_what_a_body_says_of_the_cache_opens_nobody_elses(
    shared_service: Service, name: str
) -> None:
    """vllm-project/vllm#53347: a salt from the request's body defeats the isolation it is for"""
    prompt = f"{name} says nothing"
    body = {"model": "echo", "prompt": prompt, "max_tokens": 1}

    for salt in ("one", "two"):
        reply = await shared_service.http.post("/v1/completions", json={**body, name: salt})

    cached = reply.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached == len(prompt) - 1  # one tenant, so the field has changed nothing
