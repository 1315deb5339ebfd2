"""When a request that failed is sent again, and when the provider is given up.

Neither the retries of the providers' SDKs nor ``stamina`` serve here: the SDKs wait for 8 seconds at most and know no
deadline, and both count all failures alike, where a rate limit is waited for by the clock and a failure is repeated a
number of times; and nobody could interrupt their pauses when the session is stopped.
"""

from __future__ import annotations

import random
import time

from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.provider_errors import ProviderFault

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 60.0  # seconds


class RetrySchedule:
    """The pauses between the tries of one request."""

    def __init__(self, options: ModelOptions) -> None:
        self._options = options
        self._refusals = 0
        self._refused_since = 0.0
        self.failures = 0
        """How often the request has failed for a passing reason other than a rate limit."""

    def pause_after(self, fault: ProviderFault, retries: int) -> float | None:
        """Return the seconds to wait after one more fault, or None where the request is given up.

        ``retries`` is the number of repetitions after failures that are not rate limits.
        """
        if fault.kind == "rate limit":
            self._refused_since = self._refused_since or time.monotonic()
            self._refusals += 1
            left = self._options.retry_seconds - (time.monotonic() - self._refused_since)
            backoff = min(left, _backoff(self._refusals))
        else:
            self.failures += 1
            left = self._options.retry_seconds if self.failures <= min(retries, self._options.retries) else 0.0
            backoff = _backoff(self.failures)
        seconds = backoff if fault.retry_after is None else fault.retry_after
        return seconds if left > 0 and seconds <= left else None


def _backoff(times: int) -> float:
    """Return seconds that double each time, at random so that clients refused together do not come back together."""
    return min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(times - 1, 16)) * random.uniform(0.5, 1)
