"""The SDK's client, with a deadline for every call and errors that name the call and what it was about."""

from __future__ import annotations

import ipaddress
import random
from typing import Any
from urllib.parse import urlsplit

from docker import APIClient
from docker.errors import APIError
from docker.types import IPAMConfig, IPAMPool
from requests import Response
from requests.exceptions import RequestException, Timeout

from pytest_evocode.environments.removals import Removals

_PING_TIMEOUT = 5  # seconds
_API_TIMEOUT = 120  # seconds for one answer; a commit of a large workspace takes a few
_REMOVAL_TIMEOUT = 20  # seconds; the engine goes on when nobody waits any more

#: The first of the addresses for tests of networks, 198.18.0.0/15 (RFC 2544), which belong to nobody.
_SPARE = ipaddress.IPv4Address("198.18.0.0")


class EngineClient(APIClient):
    """A client of an engine that has answered once.

    Args:
        settings: As the SDK takes them.
    """

    def __init__(self, **settings: Any) -> None:
        self.removals = Removals()
        self.removal_timeout: float = _PING_TIMEOUT
        """Seconds for the engine to remove something."""
        super().__init__(version="auto", timeout=_PING_TIMEOUT, num_pools=32, **settings)
        self.timeout, self.removal_timeout = _API_TIMEOUT, _REMOVAL_TIMEOUT
        # Proxies and certificates of the environment are taken once: reading it while another thread changes it fails.
        found = self.merge_environment_settings(self.base_url, {}, None, None, None)
        self.proxies, self.verify = found["proxies"], found["verify"]
        self.trust_env = False

    def be_patient(self) -> None:
        """Give removals as much time as other calls have."""
        self.removal_timeout = _API_TIMEOUT

    def create_network(self, name: str, *args: Any, **settings: Any) -> Any:
        """Make a network; see the SDK. One for which the engine has no addresses, as after some thirty, gets others."""
        try:
            return super().create_network(name, *args, **settings)
        except APIError as error:
            if "address pool" not in str(error):
                raise
            without = error
        for number in random.sample(range(2048), 32):
            ipam = IPAMConfig(pool_configs=[IPAMPool(f"{_SPARE + 64 * number}/26")])
            try:
                return super().create_network(name, ipam=ipam, **settings)
            except APIError as error:
                if "overlap" not in str(error):
                    raise
        raise without

    def request(self, method: Any, url: Any, *args: Any, **kwargs: Any) -> Response:
        """Make a call; see requests."""
        if method == "DELETE":
            kwargs["timeout"] = self.removal_timeout
        call = f"{method} {urlsplit(url).path}"
        try:
            return super().request(method, url, *args, **kwargs)
        except Timeout as error:
            raise Timeout(f"{call} had no answer within {kwargs.get('timeout')} s") from error
        except RequestException as error:
            raise type(error)(f"{call}: {error}") from error
