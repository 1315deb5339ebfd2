"""The fields that ``result.json`` has for Harbor's programs: what its ``TrialResult`` has beside our own record."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from pytest_evocode.results.frozen import ResultsRecord

_Unread = Annotated[
    None,
    BeforeValidator(lambda _: None),
    Field(exclude=True),
    WithJsonSchema({"description": "For Harbor's programs, as in its TrialResult; it repeats what other fields say."}),
]
"""A field that is written from others by :func:`pytest_evocode.results.harbor_files.trial_fields`, and never read."""


class HarborFields(ResultsRecord):
    """What the file of an attempt has for Harbor's programs; None in a record that was read, whatever the file says."""

    id: _Unread = None
    task_name: _Unread = None
    trial_name: _Unread = None
    trial_uri: _Unread = None
    task_id: _Unread = None
    task_checksum: _Unread = None
    config: _Unread = None
    agent_info: _Unread = None
    verifier_result: _Unread = None
    exception_info: _Unread = None
    started_at: _Unread = None
    finished_at: _Unread = None
    step_results: _Unread = None
