"""What a program does, as told from what it asks its model by the gateway, in each of the four APIs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pytest_evocode.agents.installed.exchange_reader import ExchangeReader
from pytest_evocode.gateway import Exchange, Family, GatewaySession, Route, gateway_of_process
from pytest_evocode.gateway.replies import request_facts
from pytest_evocode.llm.budget import AttemptSpending
from pytest_evocode.llm.client_factory import make_client
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.prices import ModelFacts
from pytest_evocode.llm.protocol import Message, Reply, Tool
from pytest_evocode.trajectories.atif import AgentInfo
from pytest_evocode.trajectories.recorder import Recorder
from tests import atif
from tests.agents.installed.conftest import exchange
from tests.model_scripts import Run, Say, Think, Use
from tests.providers.exchanges import Step
from tests.providers.faults import Broken, Fault
from tests.providers.requests_by_hand import APIS
from tests.providers.server import KEY, ProviderServer

each_api = pytest.mark.parametrize("api", APIS)
FAMILIES: dict[str, Family] = {"messages": "anthropic", "chat": "openai", "responses": "openai", "gemini": "google"}
MODELS = {"messages": "claude-opus-4-8", "gemini": "gemini-2.5-pro"}
PRICES = ModelFacts(input=1.0, cached_input=0.1, cache_write=1.25, output=5.0)
BASH = Tool("bash", "Runs a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
TASK = Tool("delegate", "Has a helper work.", {"type": "object", "properties": {"prompt": {"type": "string"}}})
SYSTEM = Message("system", "You are a programmer.")


class Program:
    """A program whose conversations go by the gateway, and what is recorded of them."""

    def __init__(self, api: str, server: ProviderServer, replies: list[Step], *, tells_failures: bool) -> None:
        self.recorder = Recorder(AgentInfo(name="a", version="0"), "session", spending=AttemptSpending())
        self.recorder.charges = False
        self.reader = ExchangeReader(self.recorder, tells_failures=tells_failures)
        self.server, self._replies, gateway = server, replies, gateway_of_process()
        self.family = FAMILIES[api]
        route = Route(family=self.family, base_url=server.url_for(api), key=KEY, prices=lambda model: PRICES)
        self.session: GatewaySession = gateway.open(route, begin=self.reader.begin, record=self.reader.take)
        address = self.session.base_url(self.family, f"http://127.0.0.1:{gateway.port}")
        options = {"base_url": address, "key_env": "GATE_API_KEY"} | ({"api": api} if self.family == "openai" else {})
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GATE_API_KEY", self.session.token)
            self._client = make_client(self.family, MODELS.get(api, "gpt-5"), ModelOptions.model_validate(options))
            self._client.prepare()

    def ask(self, says: Step, conversation: list[Message], *tools: Tool) -> Reply:
        """Have the model say something in a conversation, which it goes on with."""
        self._replies.append(says)
        reply = self._client.complete(conversation, tools, timeout=60)
        conversation.append(reply.message)
        return reply

    def ended(self) -> list[dict[str, Any]]:
        """What is on disk after the turn."""
        self._client.close()
        self.session.close()
        self.reader.settle()
        trajectory = self.recorder.trajectory().model_dump(mode="json", exclude_none=True)
        assert atif.violations(trajectory) == []
        found: list[dict[str, Any]] = trajectory["steps"]
        return found


Start = Callable[..., Program]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts programs, each with a provider of its own."""
    started: list[Program] = []

    def begin(api: str, faults: dict[int, Fault] | None = None, *, tells_failures: bool = False) -> Program:
        replies: list[Step] = []
        server = ProviderServer(lambda asked: replies[-1], faults=faults or {})
        server.__enter__()
        started.append(Program(api, server, replies, tells_failures=tells_failures))
        return started[-1]

    yield begin
    for program in started:
        program.session.close()
        program.server.__exit__(None, None, None)


def given(reply: Reply, *results: str) -> list[Message]:
    """The results of a reply's calls."""
    return [Message("tool", text, call_id=call.id) for call, text in zip(reply.calls, results, strict=True)]


def ours(step: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = step.get("extra", {}).get("evocode", {})
    return found


@each_api
def test_a_reply_is_a_step_with_all_that_it_has_and_its_results_come_with_the_next_request(
    api: str, start: Start
) -> None:
    program, conversation = start(api), [SYSTEM, Message("user", "Look.")]
    first = program.ask([Think("Hm."), Say("I look."), Run("ls"), Run("pwd")], conversation, BASH)
    conversation += given(first, "a\nb", "/app")
    second = program.ask(Run("ls"), conversation, BASH)
    conversation += given(second, "c")
    program.ask(Say("Done."), conversation, BASH)
    one, two, three = program.ended()
    assert one["message"] == "I look."
    assert one.get("reasoning_content", "Hm.") == "Hm."  # Chat Completions shows none.
    assert [(call["function_name"], call["arguments"]) for call in one["tool_calls"]] == [
        ("bash", {"command": "ls"}),
        ("bash", {"command": "pwd"}),
    ]
    assert [result["content"] for step in (one, two) for result in step["observation"]["results"]] == [
        "a\nb", "/app", "c",
    ]  # fmt: skip
    for step in (one, two):
        called = [call["tool_call_id"] for call in step["tool_calls"]]
        assert [result["source_call_id"] for result in step["observation"]["results"]] == called
        assert [action["tool_call_id"] for action in ours(step)["actions"]] == called
    assert [ours(step)["ending"] for step in (one, two, three)] == ["calls", "calls", "done"]
    assert all(step["timestamp"] and ours(step)["request_id"] for step in (one, two, three))
    assert program.recorder.agent.model_name == MODELS.get(api, "gpt-5")
    billed = program.server.billed()
    assert sum(step["metrics"]["prompt_tokens"] for step in (one, two, three)) == billed.prompt
    assert sum(step["metrics"]["completion_tokens"] for step in (one, two, three)) == billed.output
    assert (program.reader.replies, program.reader.final, program.reader.refused) == (3, "Done.", "")


@each_api
def test_what_helpers_do_at_once_is_told_apart_by_the_calls_that_began_them(api: str, start: Start) -> None:
    program, conversation = start(api), [SYSTEM, Message("user", "Look.")]
    both = [Use("delegate", {"prompt": "Look here."}), Use("delegate", {"prompt": "Look there."})]
    begun = program.ask(both, conversation, BASH, TASK)
    here, there = [SYSTEM, Message("user", "Look here.")], [SYSTEM, Message("user", "Look there.")]
    in_here = program.ask(Run("ls here"), here, BASH)
    in_there = program.ask(Run("ls there"), there, BASH)
    here += given(in_here, "a")
    program.ask(Say("There is a."), here, BASH)
    there += given(in_there, "b")
    program.ask(Say("There is b."), there, BASH)
    conversation += given(begun, "There is a.", "There is b.")
    program.ask(Say("Done."), conversation, BASH, TASK)
    steps = program.ended()
    first, second = (call["tool_call_id"] for call in steps[0]["tool_calls"])
    assert [ours(step).get("helper_of") for step in steps] == [None, first, second, first, second, None]
    assert [step["observation"]["results"][0]["content"] for step in steps[1:3]] == ["a", "b"]
    assert [result["content"] for result in steps[0]["observation"]["results"]] == ["There is a.", "There is b."]
    assert program.reader.final == "Done."


@each_api
def test_a_helper_with_other_words_than_its_call_belongs_to_the_one_that_is_open(api: str, start: Start) -> None:
    program, conversation = start(api), [SYSTEM, Message("user", "Look.")]
    begun = program.ask(Use("delegate", {"prompt": "Look."}), conversation, BASH, TASK)
    program.ask(Say("There is a."), [SYSTEM, Message("user", "You are a helper. Look.")], BASH)
    conversation += given(begun, "There is a.")
    program.ask(Say("Done."), conversation, BASH, TASK)
    outer, inner, last = program.ended()
    assert ours(inner)["helper_of"] == outer["tool_calls"][0]["tool_call_id"]
    assert not any("helper_of" in ours(step) for step in (outer, last))


@each_api
def test_a_conversation_that_begins_anew_with_a_summary_is_the_same(api: str, start: Start) -> None:
    program, conversation = start(api), [SYSTEM, Message("user", "Look.")]
    first = program.ask(Run("ls"), conversation, BASH)
    conversation += [*given(first, "a"), Message("user", "Sum it up.")]
    program.ask(Say("There is a."), conversation)
    anew = [SYSTEM, Message("user", "Earlier: There is a.")]
    second = program.ask(Run("pwd"), anew, BASH)
    anew += given(second, "/app")
    program.ask(Say("Done."), anew, BASH)
    one, summary, two, three = program.ended()
    assert (summary["source"], summary["message"]) == ("system", "There is a.")
    assert ours(summary)["beside"] == "the conversation"
    assert [step["observation"]["results"][0]["content"] for step in (one, two)] == ["a", "/app"]
    assert not any("helper_of" in ours(step) for step in (one, two, three))
    assert program.reader.replies == 3


@each_api
@pytest.mark.parametrize("first", [True, False])
def test_what_is_asked_without_tools_beside_a_conversation_that_has_some_is_no_reply(
    api: str, first: bool, start: Start
) -> None:
    program, conversation = start(api), [SYSTEM, Message("user", "Look.")]
    title = [Message("system", "Write a title."), Message("user", "Look.")]
    if first:
        program.ask(Say("Yes."), [Message("user", "Are you there?")])
        program.ask(Say("Looking"), title)
    begun = program.ask(Run("ls"), conversation, BASH)
    if not first:
        program.ask(Say("Looking"), title)
    conversation += given(begun, "a")
    program.ask(Say("Done."), conversation, BASH)
    steps = program.ended()
    assert [step["message"] for step in steps if step["source"] == "agent"] == ["", "Done."]
    *others, beside = (step for step in steps if step["source"] == "system")
    assert [step["message"] for step in others] == (["Yes."] if first else [])
    assert (beside["message"], ours(beside)["usage"]["requests"]) == ("Looking", 1)
    assert program.recorder.usage is not None
    assert program.recorder.usage.prompt_tokens == program.server.billed().prompt
    assert program.recorder.usage.requests == (4 if first else 3)


@each_api
def test_a_program_that_offers_no_tools_has_one_conversation(api: str, start: Start) -> None:
    program, conversation = start(api), [SYSTEM, Message("user", "Look.")]
    program.ask(Say("```ls```"), conversation)
    conversation.append(Message("user", "a"))
    program.ask(Say("Done."), conversation)
    assert [(step["source"], step["message"]) for step in program.ended()] == [
        ("agent", "```ls```"),
        ("agent", "Done."),
    ]


@each_api
def test_the_trajectory_has_the_tools_of_the_turns_own_conversation_in_one_form(api: str, start: Start) -> None:
    program, conversation = start(api), [SYSTEM, Message("user", "Look.")]
    first = program.ask(Use("delegate", {"prompt": "Look here."}), conversation, TASK, BASH)
    helper = [SYSTEM, Message("user", "Look here.")]
    program.ask(Say("Seen."), helper, Tool("look", "Looks.", {"type": "object", "properties": {}}))
    conversation += given(first, "Seen.")
    also = Tool("edit", "Edits a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
    bash = Tool("bash", "Runs one command.", BASH.parameters)
    program.ask(Run("ls"), conversation, bash, also)
    program.ended()
    # What was called once stays defined, although the program has taken it away.
    assert program.recorder.agent.tool_definitions == (TASK.definition, bash.definition, also.definition)


def test_schemas_of_gemini_are_told_as_json_schema() -> None:
    declared = {
        "name": "bash",
        "parameters": {
            "type": "OBJECT",
            "properties": {"type": {"type": "STRING"}, "to": {"anyOf": [{"type": "NULL"}]}},
        },
    }
    facts = request_facts("gemini", {"tools": [{"functionDeclarations": [declared]}, {"googleSearch": {}}]})
    schema = {"type": "object", "properties": {"type": {"type": "string"}, "to": {"anyOf": [{"type": "null"}]}}}
    assert facts.tools == ({"type": "function", "function": {"name": "bash", "parameters": schema}},)


@each_api
def test_of_a_call_that_nothing_was_asked_after_the_result_is_not_known(api: str, start: Start) -> None:
    program, conversation = start(api), [SYSTEM, Message("user", "Look.")]
    program.ask(Run("ls"), conversation, BASH)
    (step,) = program.ended()
    assert "observation" not in step
    assert (
        ours(step)["results"] == f"not known, because nothing was asked after: {step['tool_calls'][0]['tool_call_id']}"
    )


@each_api
def test_a_reply_that_broke_off_and_was_asked_for_again_is_one_step_with_what_both_took(api: str, start: Start) -> None:
    program, conversation = start(api, {2: Broken(after=5)}), [SYSTEM, Message("user", "Look.")]
    first = program.ask(Run("ls"), conversation, BASH)
    conversation += given(first, "a")
    program.ask(Say("There is a, and there is more of it."), conversation, BASH)
    one, two = program.ended()
    assert two["message"] == "There is a, and there is more of it."
    assert one["observation"]["results"][0]["content"] == "a"
    assert program.recorder.usage is not None
    assert program.session.usage == program.recorder.usage


def recorded(*exchanges: Exchange, tells_failures: bool = False) -> tuple[list[dict[str, Any]], ExchangeReader]:
    recorder = Recorder(AgentInfo(name="a", version="0"), "session")
    reader = ExchangeReader(recorder, tells_failures=tells_failures)
    for each in exchanges:
        reader.take(each)
    reader.settle()
    found: list[dict[str, Any]] = recorder.trajectory().model_dump(mode="json", exclude_none=True)["steps"]
    return found, reader


@pytest.mark.parametrize(
    ("shown", "failed", "codes"),
    [
        ("ok", False, (0, None)),
        ("Exit code 3\nno", True, (3, 3)),
        ("Exit code 3\nsays the file", False, (0, 3)),
        ("<tool_use_error>No such tool", True, (None, None)),
        ("Command running in background with ID: b1", False, (None, None)),
        ("Exit code: 0\nWall time: 0.1 seconds\nOutput:\nok", True, (0, 0)),
        ("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nno", True, (2, 2)),
        ("Wall time: 10 seconds\nProcess running with session ID 1\nOutput:\n", True, (None, None)),
        ("Output: no\nError: (none)\nExit Code: 4\nSignal: (none)", True, (4, 4)),
        ('{"output": "no", "metadata": {"exit_code": 5, "duration_seconds": 0.1}}', True, (5, 5)),
        ("\n".join(["Exit code: 1", *["much"] * 500, "more"]), True, (1, 1)),
        ("\n".join([*["much"] * 500, "Exit code: 1", *["much"] * 500]), True, (None, None)),
    ],
)
def test_exit_codes_are_what_the_model_is_told_of_them(
    shown: str, failed: bool, codes: tuple[int | None, int | None]
) -> None:
    call = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "x"}}
    told = {"type": "tool_result", "tool_use_id": "c1", "content": shown, "is_error": failed}
    exchanges = exchange(1, [call], []), exchange(2, [{"type": "text", "text": "Done."}], [told])
    for tells_failures, code in zip((True, False), codes, strict=True):
        (first, _), _ = recorded(*exchanges, tells_failures=tells_failures)
        (action,) = ours(first)["actions"]
        assert (action["exit_code"], action["timed_out"], action["told"]) == (code, False, True)


def test_a_command_that_ran_into_its_limit_timed_out_and_what_is_read_has_no_exit_code() -> None:
    calls = [
        {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "x"}},
        {"type": "tool_use", "id": "c2", "name": "Read", "input": {"file_path": "a"}},
    ]
    told: list[dict[str, Any]] = [
        {
            "type": "tool_result",
            "tool_use_id": "c1",
            "content": "Exit code 143\nCommand timed out after 2m 0s",
            "is_error": True,
        },
        {"type": "tool_result", "tool_use_id": "c2", "content": "Exit code 3"},
    ]
    (first, _), _ = recorded(exchange(1, calls, []), exchange(2, [], told), tells_failures=True)
    assert [(each["exit_code"], each["timed_out"]) for each in ours(first)["actions"]] == [(143, True), (None, False)]


def test_a_refusal_without_a_word_is_one_but_not_what_a_helper_refused() -> None:
    call = {"type": "tool_use", "id": "c1", "name": "Task", "input": {"prompt": "Look around."}}
    prompt = {"type": "text", "text": "Look around."}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "It refused."}
    helped = exchange(1, [call], []), exchange(2, [], [prompt], "refusal")
    steps, reader = recorded(*helped, exchange(3, [{"type": "text", "text": "Done."}], [result]))
    assert (ours(steps[1])["ending"], ours(steps[1])["helper_of"], reader.refused) == ("refused", "c1", "")
    steps, reader = recorded(exchange(1, [], [], "refusal"))
    assert (steps[0]["message"], ours(steps[0])["ending"], reader.refused) == ("", "refused", "refusal")


@pytest.mark.parametrize("messages", [7, [7], [{"role": "user", "content": [7]}], [{"role": 7, "content": {"a": 1}}]])
def test_a_request_of_another_form_is_answered_all_the_same(messages: Any) -> None:
    odd = Exchange.from_json(exchange(1, [{"type": "text", "text": "Hi."}], []).as_json() | {
        "request": json.dumps({"messages": messages, "tools": 7})
    })  # fmt: skip
    (step,), _ = recorded(odd)
    assert step["message"] == "Hi."


def test_a_call_without_an_id_may_be_sent_back_in_other_words() -> None:
    call = {"functionCall": {"name": "bash", "args": {"command": "ls", "timeout": 1.0}}}
    again = {"functionCall": {"name": "bash", "args": {"command": "ls", "timeout": 1}}}
    result = {"functionResponse": {"id": "made-up", "name": "bash", "response": {"output": "a"}}}
    exchanges = []
    for number, (contents, part) in enumerate(
        (([], call), ([("model", again), ("user", result)], {"text": "Done."})), 1
    ):
        asked = [{"role": role, "parts": [each]} for role, each in (("user", {"text": "Look."}), *contents)]
        answer = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}
        changed = {"api": "gemini", "response": json.dumps(answer)}
        changed["request"] = json.dumps({"contents": asked, "tools": [{"functionDeclarations": [{"name": "bash"}]}]})
        exchanges.append(Exchange.from_json(exchange(number, [], []).as_json() | changed))
    (first, last), _ = recorded(*exchanges)
    assert first["observation"]["results"][0]["content"] == "a"
    assert "helper_of" not in ours(last)


def test_a_patch_in_plain_text_and_a_tool_of_a_namespace_are_calls_with_their_results() -> None:
    calls = [
        {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin Patch"},
        {"type": "function_call", "call_id": "c2", "namespace": "mcp__docs", "name": "find", "arguments": '{"q": "x"}'},
    ]
    results = [
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "Success."},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "found"}]},
    ]
    find = {"type": "function", "name": "find", "description": "Finds.", "parameters": {"type": "object"}}
    docs = {"type": "namespace", "name": "mcp__docs", "tools": [find]}
    tools = [{"type": "custom", "name": "apply_patch", "format": {"type": "text"}}, docs, {"type": "web_search"}]
    exchanges = []
    for number, (given, output) in enumerate((([], calls), ([*calls, *results], [])), 1):
        body = {"id": "r", "object": "response", "status": "completed", "model": "gpt-5", "output": output}
        exchanges.append(
            Exchange.from_json(
                exchange(number, [], []).as_json()
                | {
                    "api": "responses",
                    "request": json.dumps({"input": given, "tools": tools}),
                    "response": json.dumps(body),
                }
            )
        )
    (first, _), _ = recorded(*exchanges)
    assert [(call["function_name"], call["arguments"]) for call in first["tool_calls"]] == [
        ("apply_patch", {"input": "*** Begin Patch"}),
        ("mcp__docs__find", {"q": "x"}),
    ]
    assert [result["content"] for result in first["observation"]["results"]] == ["Success.", "found"]
    plain = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    assert [each["function"] for each in request_facts("responses", {"tools": tools}).tools] == [
        {"name": "apply_patch", "parameters": plain},
        {"name": "mcp__docs__find", "description": "Finds.", "parameters": {"type": "object"}},
    ]
