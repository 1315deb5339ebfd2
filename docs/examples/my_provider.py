"""A provider of one's own: docs/providers.md shows it."""

from pytest_evocode.errors import UsageError
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.protocol import Message, Reply, RequestedCall, Tool
from pytest_evocode.results.records import Usage


class Cautious:
    """A model that looks before it says that it is done."""

    context_tokens = None  # tokens of the longest conversation, where there is a limit
    knows_price = False  # whether replies' usage has their cost

    def __init__(self, model: str, options: ModelOptions) -> None:
        self.model = model

    def check(self) -> None:
        """Raise UsageError where a key is missing, before anything starts."""
        if not self.model:
            raise UsageError("my/MODEL: name a model")

    def prepare(self) -> None:
        """Import what is heavy, while no turn's clock runs."""

    def close(self) -> None:
        """Close connections."""

    def complete(self, conversation: list[Message], tools: list[Tool], *, timeout: float | None) -> Reply:
        """Ask the model, for `timeout` seconds at most."""
        used = Usage(prompt_tokens=100, completion_tokens=10, requests=1)
        if conversation[-1].role == "tool":
            return Reply(text="Done.", ending="done", usage=used)
        call = RequestedCall("call-1", tools[0].name, {"command": "echo line-1 >> log.txt"})
        return Reply(text="I look.", calls=(call,), ending="calls", usage=used)
