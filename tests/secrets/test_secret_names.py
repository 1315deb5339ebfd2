"""Which variables of an environment are secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.secrets import is_secret_name, secrets_in, withheld_from_agent

VALUE = "s3cr3t-s3cr3t"


@pytest.mark.parametrize(
    "name",
    [
        *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_APIKEY", "openai_api_key", "MINIMAX_API_KEY", "API_KEY"),
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET", "VAULT_SECRET_ID"),
        *("HF_TOKEN", "GITHUB_TOKEN", "GH_PAT", "CI_JOB_JWT", "ANTHROPIC_AUTH_TOKEN", "NPM_CONFIG__AUTH", "AUTHTOKEN"),
        *("PGPASSWORD", "MYSQL_PWD", "DB_PASS", "SSH_KEY_PASSPHRASE", "GOOGLE_CREDENTIALS", "DOCKER_AUTH_CONFIG"),
        *("AZURE_STORAGE_CONNECTION_STRING", "SIGNING_KEYS", "DJANGO_SECRET_KEY", "TWINE_PASSWORD"),
    ],
)
def test_names_of_keys_tokens_and_passwords_are_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("SSH_AUTH_SOCK", "GPG_TTY", "KEYBOARD", "XDG_SESSION_ID", "XDG_RUNTIME_DIR", "PWD", "OLDPWD", "XAUTHORITY"),
        *("TOKENIZERS_PARALLELISM", "MAX_TOKENS", "OPENAI_MAX_TOKENS", "LLM_TOKEN_LIMIT", "GIT_AUTHOR_NAME", "GPG_KEY"),
        *("PYTEST_CURRENT_TEST", "PYTEST_XDIST_TESTRUNUID", "DBUS_SESSION_BUS_ADDRESS", "SSLKEYLOGFILE", "MONKEY"),
        *("PASSWORD_STORE_DIR", "AWS_WEB_IDENTITY_TOKEN_FILE", "SECRETS_PATH", "TOKEN_URL", "COMPASS", "PATH", "HOME"),
    ],
)
def test_names_that_only_look_alike_are_not(name: str) -> None:
    assert not is_secret_name(name)


def test_short_values_are_no_secrets() -> None:
    assert secrets_in({"TOKEN": "1", "API_KEY": "1234567", "A_TOKEN": "12345678"}) == {"A_TOKEN": "12345678"}


def test_the_path_of_a_file_is_no_secret_but_a_value_that_begins_like_one_is(tmp_path: Path) -> None:
    environ = {"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path), "AWS_SECRET_ACCESS_KEY": "/bPxRfiCYEXAMPLEKEY"}
    assert secrets_in(environ) == {"AWS_SECRET_ACCESS_KEY": "/bPxRfiCYEXAMPLEKEY"}


def test_a_password_in_a_url_is_a_secret_whatever_the_variable_is_called() -> None:
    environ = {
        "DATABASE_URL": "postgresql+psycopg://me:correct-horse@db:5432/x",
        "REDIS": "redis://:correct-redis@cache",
        "HOMEPAGE": "https://example.org:8080/a@b",
    }
    assert secrets_in(environ) == {"DATABASE_URL": "correct-horse", "REDIS": "correct-redis"}


def test_space_around_a_value_does_not_count() -> None:
    assert secrets_in({"API_KEY": f" {VALUE}\n"}) == {"API_KEY": VALUE}


def test_other_names_are_secret_when_told() -> None:
    assert secrets_in({"LICENCE": VALUE, "OTHER": VALUE}, more=["LICENCE", "UNSET"]) == {"LICENCE": VALUE}


def test_an_agent_gets_what_is_no_secret_and_what_it_declares() -> None:
    environ = {"A_KEY": VALUE, "B_KEY": VALUE, "SHORT_KEY": "1", "HOST": "db"}
    withheld = withheld_from_agent(environ, ["B_KEY"])
    assert [withheld(name) for name in ("A_KEY", "B_KEY", "SHORT_KEY", "HOST")] == [True, False, False, False]
    assert [withheld(name) for name in ("UNSET_KEY", "UNSET")] == [True, False]
