"""The providers of models: which SDK speaks to each, what it needs, and how a client of the SDK is made."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.secrets import is_secret_name

LONGEST_PAUSE = 120.0
"""Seconds for which a stream may pause, as models do that think, where nothing is known of its server."""
_REGION = re.compile(r"global|us|eu|[a-z]+-[a-z]+\d+")


@dataclass(frozen=True, slots=True)
class Access:
    """What a client of an SDK is made with."""

    options: ModelOptions
    base_url: str | None
    """Address of the server; None for the provider's own."""
    key: str | None
    token: str | None
    key_variables: tuple[str, ...]
    """The variables that the key is looked for in."""
    token_variable: str | None

    @property
    def key_name(self) -> str:
        """The variables of the key, in words."""
        return " or ".join(self.key_variables)

    def authentication(self, token_argument: str) -> dict[str, str]:
        """Return the SDK's argument for the token, else the key: a local server takes any, but the SDKs want one."""
        return {token_argument: self.token} if self.token and not self.key else {"api_key": self.key or "none"}


@dataclass(frozen=True, kw_only=True)
class Provider:
    """A provider of models, with the SDK that speaks to it."""

    name: str
    """Also our extra that installs what it needs."""
    sdk: str
    """Module of the SDK."""
    sdk_class: str
    packages: tuple[str, ...] = ()
    """Modules that have to be there beside the SDK."""
    host: str
    """Its domain."""
    server: str = ""
    """The address of its server, as the SDK takes it, where that is the same for everybody."""
    key_header: str = "Authorization"
    """The header of the key; that of a token is always ``Authorization``."""
    key_variables: tuple[str, ...]
    token_variable: str | None = None
    """A further variable for the key, which the SDK sends in another header."""
    url_variable: str
    is_platform: bool = False
    """Whether the model's name is part of the address."""
    models_path: str = ""
    """Where its models are listed, below the server's address; empty where they are not."""
    silence: float = LONGEST_PAUSE
    """Seconds without a byte of a stream after which its connection is taken for dead."""

    def address(self, options: ModelOptions) -> str | None:
        """Return the address of the server that is asked; None for the provider's own."""
        return options.base_url or os.environ.get(self.url_variable) or None

    def access(self, options: ModelOptions) -> Access:
        """Return what a client is made with, as far as it is set."""
        names = (options.key_env,) if options.key_env else self.key_variables
        token_name = None if options.key_env else self.token_variable
        key = next((key for name in names if (key := os.environ.get(name))), None)
        token = os.environ.get(token_name or "") or None
        return Access(options, self.address(options), key, token, names, token_name)

    def is_official(self, base_url: str | None) -> bool:
        """Whether the provider itself is asked, and not a compatible server."""
        host = urlsplit(base_url or "").hostname or ""
        return base_url is None or host == self.host or host.endswith("." + self.host)

    def answered_by(self, access: Access) -> dict[str, Any]:
        """Return what decides who answers besides the model's name and the options, by names of options.

        It is what the client of the SDK is made with, however that was given; nothing at the provider itself. Headers
        that the SDK adds by itself are in ``headers``, without secrets.
        """
        headers = _environment_headers() if self.sdk == "anthropic" else {}
        return self.named_server(access.base_url) | ({"headers": headers} if headers else {})

    def named_server(self, base_url: str | None) -> dict[str, Any]:
        """Return the server as ``base_url``, without secrets; nothing where it is the provider's own."""
        address = plain_address(base_url or "")
        return {} if address in ("", plain_address(self.server)) else {"base_url": address}

    def first_silence(self, base_url: str | None, options: ModelOptions) -> float:
        """Return for how many seconds a stream may be silent before its request is sent again for the first time."""
        return options.silence_seconds or (self.silence if self.is_official(base_url) else LONGEST_PAUSE)

    def credentials(self, key: str | None, token: str | None) -> dict[str, str]:
        """Return the header with the key, or else with the token."""
        if key and self.key_header != "Authorization":
            return {self.key_header: key}
        return {"Authorization": f"Bearer {key or token}"} if key or token else {}

    def missing(self, access: Access) -> str:
        """Return what has to be set before the provider can be asked, in words; empty where nothing has."""
        if not self.is_official(access.base_url) or access.key or access.token:
            return ""
        return (
            f"a key: set {access.key_name}, or name its variable with the option key_env, or the server with base_url"
        )

    def make_client(self, sdk: Any, access: Access) -> Any:
        """Return a client of the SDK."""
        auth = access.authentication("auth_token")
        return getattr(sdk, self.sdk_class)(base_url=access.base_url, max_retries=0, **auth)


class AzureProvider(Provider):
    """Azure's deployments of OpenAI's models; the model of a spec is the name of the deployment."""

    def is_official(self, base_url: str | None) -> bool:
        """Return True: nothing else speaks as Azure does."""
        return True

    def missing(self, access: Access) -> str:
        """See :class:`Provider`."""
        if access.base_url is None:
            return f"the address of your resource: set {self.url_variable}, or base_url=https://NAME.openai.azure.com"
        if access.key or access.token or is_local(access.base_url):
            return ""
        return f"a key: set {access.key_name}, or name its variable with the option key_env"

    def answered_by(self, access: Access) -> dict[str, Any]:
        """See :class:`Provider`; there is no server of everybody's."""
        version = _azure_version(access)
        return self.named_server(_azure_address(access)) | ({"api_version": version} if version else {})

    def make_client(self, sdk: Any, access: Access) -> Any:
        """Return the SDK's client of Azure, or of the API that Azure calls v1, which has no version by date."""
        address, version = _azure_address(access), _azure_version(access)
        if not version:
            return sdk.OpenAI(
                base_url=f"{address}/openai/v1/", api_key=access.key or access.token or "none", max_retries=0
            )
        auth = access.authentication("azure_ad_token")
        return sdk.AzureOpenAI(azure_endpoint=address, api_version=version, max_retries=0, **auth)


class BedrockProvider(Provider):
    """Anthropic's models at Amazon Bedrock, with the credentials that boto3 finds or a key of Bedrock's."""

    def answered_by(self, access: Access) -> dict[str, Any]:
        """See :class:`Provider`; a region has a server of its own."""
        try:
            region = _bedrock_region(access)
        except ImportError:  # To check the agent says so.
            region = None
        return super().answered_by(access) | ({"region": region} if region else {})

    def missing(self, access: Access) -> str:
        """See :class:`Provider`; a region that Bedrock does not have counts."""
        import boto3

        session = boto3.Session()
        region = _bedrock_region(access)
        if not region:
            return "a region: set AWS_REGION, or the option region=us-east-1"
        # Not all releases of botocore have Bedrock's own.
        known = session.get_available_regions("bedrock-runtime") or session.get_available_regions("ec2")
        if known and region not in known and access.base_url is None:
            nearest = difflib.get_close_matches(region, known, n=1)
            return f"a region of AWS, and {region!r} is none; set the option region={(nearest or known)[0]}"
        if access.key or session.get_credentials() is not None or is_local(access.base_url):
            return ""
        return "credentials: set AWS_PROFILE, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_BEARER_TOKEN_BEDROCK"

    def make_client(self, sdk: Any, access: Access) -> Any:
        """See :class:`Provider`."""
        import boto3

        session = boto3.Session()
        has_own = access.key is None and session.get_credentials() is not None
        return getattr(sdk, self.sdk_class)(
            aws_region=_bedrock_region(access),
            api_key=None if has_own else access.key or "none",
            base_url=access.base_url,
            max_retries=0,
        )


class VertexProvider(Provider):
    """Anthropic's models at Vertex AI, with Google's application default credentials or an access token."""

    def answered_by(self, access: Access) -> dict[str, Any]:
        """See :class:`Provider`; a region has a server of its own."""
        region = _vertex_region(access)
        return super().answered_by(access) | ({"region": region} if region else {})

    def missing(self, access: Access) -> str:
        """See :class:`Provider`."""
        region = _vertex_region(access)
        if not region:
            return "a region: set CLOUD_ML_REGION, or the option region=global"
        if not _REGION.fullmatch(region):
            return f"a region of Vertex AI, and {region!r} is none; set the option region=global, or such as us-east5"
        if not _vertex_project(access):
            return "a project: set ANTHROPIC_VERTEX_PROJECT_ID, or the option project=NAME"
        if access.key or is_local(access.base_url):
            return ""
        import google.auth
        import google.auth.exceptions

        try:
            google.auth.default()
        except google.auth.exceptions.DefaultCredentialsError:
            return "credentials: run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS"
        return ""

    def make_client(self, sdk: Any, access: Access) -> Any:
        """See :class:`Provider`."""
        return getattr(sdk, self.sdk_class)(
            region=_vertex_region(access),
            project_id=_vertex_project(access),
            access_token=access.key or ("none" if is_local(access.base_url) else None),
            base_url=access.base_url,
            max_retries=0,
        )


class GoogleProvider(Provider):
    """Google's Gemini API."""

    def make_client(self, sdk: Any, access: Access) -> Any:
        """See :class:`Provider`."""
        from google.genai import types

        options = types.HttpOptions(base_url=access.base_url)
        return sdk.Client(vertexai=False, api_key=access.key or "none", http_options=options)


def account_name(provider: str, base_url: str | None, key: str | None, token: str | None = None) -> str:
    """Return the name of what a provider limits, its server and a key: whoever asks with the same shares its limits."""
    told = "\n".join((base_url or "", key or "", token or ""))
    return f"{provider}-{hashlib.sha256(told.encode()).hexdigest()[:16]}"


def is_local(base_url: str | None) -> bool:
    """Whether an address is one of this machine."""
    return (urlsplit(base_url or "").hostname or "") in ("localhost", "127.0.0.1", "::1")


def plain_address(address: str) -> str:
    """Return the address of a server in one form, without what may be a secret: names, passwords and queries.

    >>> plain_address("HTTPS://me:key@Models.example:443/v1/?token=x"), plain_address("http://[::1]:8000")
    ('https://models.example/v1', 'http://[::1]:8000')
    """
    parts = urlsplit(address.strip())
    scheme, place = parts.scheme.lower(), parts.netloc.rpartition("@")[2].lower()
    place = place.removesuffix({"http": ":80", "https": ":443"}.get(scheme, ":"))
    return f"{scheme}://{place}{parts.path.rstrip('/')}" if place else ""


def _environment_headers() -> dict[str, str]:
    """Return the headers that Anthropic's SDK takes from the environment, without those that hold a secret."""
    lines = os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").split("\n")
    found = (line.partition(":") for line in lines if ":" in line)
    return {name.strip(): value.strip() for name, _, value in found if not is_secret_name(name.strip())}


def _fixed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _azure_address(access: Access) -> str:
    return (access.base_url or "").rstrip("/").removesuffix("/openai/v1").removesuffix("/openai")


def _azure_version(access: Access) -> str | None:
    return access.options.api_version or os.environ.get("OPENAI_API_VERSION")


def _bedrock_region(access: Access) -> str | None:
    given = access.options.region or os.environ.get("AWS_REGION")
    if given:
        return given
    import boto3

    region: str | None = boto3.Session().region_name
    return region


def _vertex_region(access: Access) -> str | None:
    return access.options.region or os.environ.get("CLOUD_ML_REGION")


def _vertex_project(access: Access) -> str | None:
    return (
        access.options.project
        or os.environ.get("ANTHROPIC_VERTEX_PROJECT_ID")
        or os.environ.get("GOOGLE_CLOUD_PROJECT")
    )


_KINDS = {
    "azure": AzureProvider,
    "bedrock": BedrockProvider,
    "google": GoogleProvider,
    "vertex": VertexProvider,
}
_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
PROVIDERS: dict[str, Provider] = {
    name: _KINDS.get(name, Provider)(name=name, **{key: _fixed(value) for key, value in about.items()})
    for name, about in _TABLE.items()
}
