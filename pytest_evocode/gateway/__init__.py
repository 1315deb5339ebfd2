"""The gateway: the one way from an agent's program to its model, which holds the keys, counts, paces and records.

A program gets a base URL and a token; where the gateway sends its requests, and with which key, only the host knows.
"""

from __future__ import annotations

from pytest_evocode.gateway.exchanges import Exchange, FailedTry
from pytest_evocode.gateway.gateway import Gateway, gateway_of_process
from pytest_evocode.gateway.routes import Family, Route
from pytest_evocode.gateway.session import GatewaySession

__all__ = ["Exchange", "FailedTry", "Family", "Gateway", "GatewaySession", "Route", "gateway_of_process"]
