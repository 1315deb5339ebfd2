"""The one way out of an environment with a network allowlist: a proxy on the host, which decides by name and address.

Inside there is nothing but a loopback with the proxy's port on it: no route, no other interface and no name server. The
proxy resolves names itself. Programs find it by the variables ``HTTP_PROXY``, ``HTTPS_PROXY`` and ``ALL_PROXY``.
"""

from __future__ import annotations

from pytest_evocode.environments.egress.gate import PROXY_PORT, PROXY_VARIABLES, SESSION_PORT, EgressGate

__all__ = ["PROXY_PORT", "PROXY_VARIABLES", "SESSION_PORT", "EgressGate"]
