"""What all records have in common: they are frozen, and have no field that this version does not know."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ResultsRecord(BaseModel):
    """A record of a results directory, or a part of one."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
