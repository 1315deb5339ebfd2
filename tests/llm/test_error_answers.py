"""Errors that routers put into answers with status 200."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_evocode.llm.provider_errors import from_answer


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 429, "message": "Too many."}, "rate limit"),
        ({"code": "429", "message": "Too many."}, "rate limit"),
        ({"type": "rate_limit_error", "message": "Too many."}, "rate limit"),
        ({"code": "502", "message": "Bad gateway."}, "passing"),
        ({"type": "timeout_error", "message": "Timed out."}, "passing"),
        ({"type": "internal_server_error", "message": "Sorry."}, "passing"),
        ({"code": "400", "message": "No such field."}, "final"),
        ({"code": "invalid_prompt", "message": "No."}, "final"),
    ],
)
def test_an_error_in_an_answer_is_read_as_if_it_were_the_answers_status(error: dict[str, Any], kind: str) -> None:
    fault = from_answer({"error": error}, "")
    assert fault is not None
    assert fault.kind == kind
