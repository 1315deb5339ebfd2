"""The models that play simulated users: their clients, and whether these can be asked."""

from __future__ import annotations

from pytest_evocode.errors import UsageError
from pytest_evocode.llm.client_factory import make_client
from pytest_evocode.llm.protocol import ModelClient
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.model import UserConfig


def client_of(config: UserConfig) -> ModelClient:
    """Return the client of a user's model; raises UsageError where there is no such provider."""
    provider, _, model = config.model.partition("/")
    if not model:
        raise UsageError(f"the simulated user's model = {config.model!r} is not PROVIDER/MODEL, such as openai/gpt-5")
    return make_client(provider, model)


def check_users(task: Task) -> None:
    """Raise UsageError where a package or a key is missing that a task's simulated users need; asks nobody."""
    for step, config in task.config.metadata.evocode.users.items():
        try:
            client_of(config).check()
        except UsageError as error:
            where = f"{task.directory / 'task.toml'}: [metadata.evocode.users.{step}]"
            raise UsageError(f"{where}: {error}") from None
