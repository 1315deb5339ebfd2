"""HTTP by way of the container: an agent on the host reaches what a program beside its workspace would, and no more."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import httpcore2
import httpx2
from httpcore2._backends.anyio import AnyIOStream

from pytest_evocode.agents.program_streams import ProgramStream
from pytest_evocode.environments import Environment
from pytest_evocode.environments.programs import User

_CONNECTING = 30.0  # seconds
_READING = 300.0  # seconds, as the SDK has it: a server may hold a stream open
# Bash passes what it reads to a connection and back, and ends with either; it says first that there is one.
_CONNECT = 'exec 3<>"/dev/tcp/$1/$2" || exit 7; printf C; { cat <&3; kill 0; } & cat >&3; kill 0'
_PROXIES = 'printf "%s\\n" "${HTTP_PROXY:-$http_proxy}" "${HTTPS_PROXY:-$https_proxy}" "${NO_PROXY:-$no_proxy}"'


class _ContainerNetwork(httpcore2.AsyncNetworkBackend):
    """Opens connections by a program in the container, which runs as the agent's user."""

    def __init__(self, environment: Environment, user: User | None, portal: anyio.from_thread.BlockingPortal) -> None:
        self._environment, self._user, self._portal = environment, user, portal

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        argv = ("bash", "-c", _CONNECT, "bash", host.strip("[]"), str(port))
        stream = await ProgramStream.open(self._environment, self._portal, argv, user=self._user)
        try:
            with anyio.fail_after(min(timeout or _CONNECTING, _CONNECTING)):
                await stream.receive(1)
        except TimeoutError:
            await stream.aclose()
            raise httpcore2.ConnectTimeout(f"{host}:{port} does not answer in the container") from None
        except anyio.EndOfStream:
            why = stream.errors.strip().splitlines() or ["no connection"]
            raise httpcore2.ConnectError(f"{host}:{port} is not reached from the container: {why[0]}") from None
        return AnyIOStream(stream)

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


def http_client(
    environment: Environment,
    user: User | None,
    portal: anyio.from_thread.BlockingPortal,
    url: str,
    headers: Mapping[str, str],
) -> httpx2.AsyncClient:
    """Return a client whose connections all come from inside the container, by the proxy that programs find there."""
    said = environment.exec(_PROXIES, user=user, timeout=_CONNECTING).output.split("\n")
    plain, secure, spared = [*said, "", "", ""][:3]
    address = httpx2.URL(url)
    proxy = secure if address.scheme == "https" else plain
    if any(each and address.host.endswith(each) for each in (part.strip() for part in spared.split(","))):
        proxy = ""
    transport = httpx2.AsyncHTTPTransport(proxy=proxy or None, verify=_authorities(), trust_env=False)
    # There is no public way to give a transport its network.
    transport._pool._network_backend = _ContainerNetwork(environment, user, portal)
    timeout = httpx2.Timeout(_CONNECTING, read=_READING)
    return httpx2.AsyncClient(transport=transport, headers=dict(headers), timeout=timeout, trust_env=False)


def _authorities() -> Any:
    """Return what certificates are checked with: this machine's own setting, else the client's."""
    import ssl

    bundle = os.environ.get("SSL_CERT_FILE")
    return ssl.create_default_context(cafile=bundle) if bundle else True
