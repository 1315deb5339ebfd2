"""What ``--evocode-dry-run`` prints in place of a run: the attempts that would be made, and what they may take."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.errors import UsageError
from pytest_evocode.metrics.spending import ExpectedAmounts, cost_of, seconds_of
from pytest_evocode.plugin.live import clock
from pytest_evocode.plugin.session import EvocodeSession
from pytest_evocode.report.printable import printable
from pytest_evocode.report.tables import NOT_MEASURED, aligned, format_money, format_thousands
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import RoundRecord, Usage
from pytest_evocode.results.selection import SelectedAttempt

if TYPE_CHECKING:
    from pytest_evocode.llm.prices import ModelFacts

_HEAD = ("agent", "attempts", "rounds", "known", "tokens", "cost", "time")


@dataclass(frozen=True, slots=True)
class _Expected:
    """What an attempt is expected to take; None for what nothing is known of."""

    tokens: float | None
    cost_usd: float | None
    seconds: float | None


class DryRun:
    """Hooks that print what a run would be. In the process that reports, which has only collected."""

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session

    def pytest_sessionstart(self) -> None:
        """Refuse a budget that the run would refuse."""
        try:
            self._session.roster.check_prices(self._session.settings.budget)
        except UsageError as error:
            raise pytest.UsageError(self._session.scrubber.text(str(error))) from None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print it."""
        selected = [each for each in self._session.selected if not each.elsewhere]
        terminalreporter.section("evocode dry run")
        for line in self._lines(selected):
            terminalreporter.write_line(printable(self._session.scrubber.text(line)))

    def _lines(self, selected: Sequence[SelectedAttempt]) -> Iterator[str]:
        estimates = _Estimates(self._session)
        expected = {each: estimates.of(each) for each in selected}
        rows = [_HEAD]
        for agent in self._session.roster.agents:
            rows.append(_row(agent.id, [each for each in selected if each.agent == agent.id], expected))
        if len(rows) > 2:
            rows.append(_row("all", selected, expected))
        yield from aligned(rows)
        yield f"images: {', '.join(self._images(selected)) or 'none'}"
        results = self._session.shown(self._session.settings.results)
        yield (
            f"expected from the attempts in {results}, one after the other: an agent's own at the task, at the prices "
            "that it is given now, else other agents' tokens there at the prices of its model; "
            f"{NOT_MEASURED} where there are none"
        )

    def _images(self, selected: Sequence[SelectedAttempt]) -> Iterator[str]:
        """Yield the images that are needed, those that are made here by the name of their task."""
        installed = self._session.roster.installations
        seen = dict.fromkeys((each.directory, each.task) for each in selected)
        for directory, name in seen:
            image = self._session.settings.load(directory).config.environment.docker_image
            yield image or f"{name} (to be built, unless it is there)"
        for agent in dict.fromkeys(each.agent for each in selected if each.agent in installed):
            yield f"{agent} installed in each"


class _Estimates:
    """What attempts are expected to take, by earlier ones in the results directory."""

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        results = session.settings.results
        earlier = load_results([results]).attempts if results.is_dir() else []
        tokens = _used("tokens")
        paid = [each for each in earlier if any(map(tokens, each.record.rounds))]
        self._seconds = ExpectedAmounts(earlier, seconds_of)
        self._tokens = ExpectedAmounts(paid, tokens)
        # A round that used nothing is free whatever the price.
        priced = [each for each in paid if any(tokens(one) and cost_of(one) is not None for one in each.record.rounds)]
        self._costs = ExpectedAmounts(priced, cost_of)
        self._priced = [ExpectedAmounts(paid, _used(name)) for name in _PRICED]

    @cached_property
    def _paying(self) -> dict[str, ModelFacts | None]:
        """The agents that pay for a model, by their ids, with the prices of their models where they are known."""
        from pytest_evocode.agents.protocol import close_agent
        from pytest_evocode.llm.prices import find_model_facts

        found = {}
        for agent in self._session.roster.agents:
            made = self._session.roster.make(agent)
            if getattr(made, "pays", False):
                prices = agent.options.get("prices")
                file = prices.base / str(prices.value) if prices is not None else None
                found[agent.id] = find_model_facts(agent.spec.rpartition(":")[2], file)
            close_agent(made)
        return found

    @cached_property
    def _given(self) -> set[str]:
        """The ids of the agents that have prices of their own."""
        return {agent.id for agent in self._session.roster.agents if "prices" in agent.options}

    def of(self, each: SelectedAttempt) -> _Expected:
        """Return what is expected of an attempt."""
        seconds = self._amount(self._seconds, each)
        if each.agent not in self._paying:
            return _Expected(0.0, 0.0, seconds)
        tokens = self._amount(self._tokens, each)
        facts = self._paying[each.agent]
        # What a reply cost is told exactly, at the prices of then; a file that is given now may have others.
        if self._costs.knows(each.agent, each.task) and (facts is None or each.agent not in self._given):
            return _Expected(tokens, self._amount(self._costs, each), seconds)
        requests, *parts = (self._amount(amounts, each) or 0.0 for amounts in self._priced)
        if facts is None or not requests:
            return _Expected(tokens, None, seconds)
        # Of a request of mean length: a long prompt may have other prices.
        prompt, completion, cached = (round(part / requests) for part in parts)
        return _Expected(tokens, requests * facts.cost(prompt, completion, min(cached, prompt)), seconds)

    def _amount(self, amounts: ExpectedAmounts, each: SelectedAttempt) -> float | None:
        """Return what the agent took at the task, else what others did; None where nobody was measured there."""
        for agent in (each.agent, ""):
            if amounts.knows(agent, each.task):
                return amounts.of_attempt(agent, each.task, each.rounds)
        return None


_PRICED = ("requests", "prompt_tokens", "completion_tokens", "cached_tokens")


def _used(name: str) -> Callable[[RoundRecord], float | None]:
    """Return what reads one number of a round's usage."""
    return lambda record: getattr(record.usage or Usage(), name)


def _row(
    name: str, attempts: Sequence[SelectedAttempt], expected: dict[SelectedAttempt, _Expected]
) -> tuple[str, str, str, str, str, str, str]:
    known = [expected[each] for each in attempts]
    whole = sum(None not in (each.tokens, each.cost_usd, each.seconds) for each in known)
    return (
        name,
        str(len(attempts)),
        str(sum(len(each.rounds) for each in attempts)),
        f"{whole} of {len(attempts)}",
        format_thousands(_sum(each.tokens for each in known)),
        format_money(_sum(each.cost_usd for each in known)),
        NOT_MEASURED if (seconds := _sum(each.seconds for each in known)) is None else clock(seconds),
    )


def _sum(values: Iterable[float | None]) -> float | None:
    """Return the sum of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None
