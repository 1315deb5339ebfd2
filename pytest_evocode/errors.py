"""Every exception of the package, sorted by who has to act on it.

Those of a native suite's session are in ``verifier/in_container``, which imports nothing of the package.

A message says what happened, where, and what to do.

Faults, whose messages are complete for the user::

    EvocodeError
    ├── UsageError                    the command line or the configuration: the user changes the call
    │   └── NotConverged              draws of the model of rounds that cannot be believed
    ├── TaskError                     the task: its author changes a file
    │   └── NoPython                  its image has no Python that can run a native suite
    ├── EnvironmentFault              the container engine or the sandbox failed
    │   ├── EnvironmentUnavailable    it cannot be had on this machine
    │   ├── KilledFromOutside         somebody killed a container or sandbox
    │   ├── SnapshotGone              somebody removed a snapshot
    │   └── BuildError                the task's image cannot be built
    │       └── NeedsDocker           the sandbox cannot replay the task's Dockerfile
    ├── AgentFault                    the agent's own means failed
    │   └── ModelFault                its model's provider did: the round is an infrastructure error
    │       └── ConversationRefused   for something in the conversation, which the model may have written
    ├── VerifierFault                 the suite gave no verdict
    ├── RecordFault                   a record cannot be read
    │   └── DamagedRecord             nor will it ever be
    ├── CannotBeChecked               a check of the task came to no result
    ├── ResumeRefused                 an attempt of an earlier session cannot be continued
    │   └── SnapshotElsewhere         by this machine, which does not have what it goes on from
    ├── StorageFault                  the storage that attempts travel by cannot be read or written
    │   └── TakenOver                 another session goes on with the attempt
    ├── RegradingRefused              an attempt cannot be verified again
    ├── PinRefused                    a task's cases cannot be pinned
    ├── Cancelled                     nobody's fault: the session was stopped
    ├── RunLimitReached               nobody's fault: the run may cost no more, and the attempt waits
    ├── AttemptEnded                  nobody's fault: the attempt had ended in an earlier session
    └── EpisodeFault                  an episode has no turn under way, or could not begin

Control flow, raised for a caller inside the package that catches it and goes on::

    ControlFlow
    ├── RoundFailed                   pytest: the round's verdict is not a pass
    ├── CheckFailed                   pytest: the task does not stand a check
    ├── TurnStopped                   agents: the turn ends before the model says that it is done
    ├── ContextOverflow               models: the conversation is too long
    ├── RequestUnanswered             models: the provider did not answer
    │   └── RequestRefused            models: nor would it answer the same request a second time
    ├── ConnectionBroken              models: the answer was cut off
    ├── ChannelClosed                 environments: the container has stopped
    ├── RefusedConnection             environments: a phase may not reach a host, or it cannot be reached
    ├── UnreadableFile                environments: a path is not a regular file of acceptable size
    ├── RefusedRequest                verifier: a suite asks for what its door does not do
    ├── UnreadableCases               results: a report of cases is not in its format
    ├── FilesNotListed                trajectories: the workspace cannot be listed
    ├── DiffError                     trajectories: a diff does not fit its text
    ├── StateNotRebuilt               process: a recorded state of the workspace cannot be had again
    ├── NoGrammar                     process: no parser for a language is installed
    ├── OutOfTime                     process: a run was cut short by the seconds of its round, and is no result
    └── DamagedObject                 storage: an object's contents are not those that it is called by
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError


class EvocodeError(Exception):
    """Base of all faults raised on purpose; ``str(error)`` is the complete message for the user."""


class UsageError(EvocodeError):
    """The command line or the configuration is wrong: fix the call."""


class NotConverged(UsageError):
    """The draws of the model of rounds are none of its posterior, as far as their diagnostics tell: take more."""


class TaskError(EvocodeError):
    """The task is wrong: its author has to change a file.

    ``path`` is the file at fault and ``line`` its line number from 1, where one is known; the message starts with both.
    """

    def __init__(self, message: str, path: Path, line: int | None = None) -> None:
        self.message = message
        self.path = path
        self.line = line
        where = f"{path}:{line}" if line is not None else str(path)
        super().__init__(f"{where}: {message}")


class TaskWarning(UserWarning):
    """A task.toml has something that nothing here reads; the task runs without it.

    Pytest's ``filterwarnings`` and Python's ``-W`` know it as ``pytest_evocode.TaskWarning``.
    """


class NoPython(TaskError):
    """The task's image has no Python that can run a native suite."""


class EnvironmentFault(EvocodeError):
    """The container engine or the sandbox failed: neither the agent nor the task is to blame."""


class EnvironmentUnavailable(EnvironmentFault):
    """The wanted environment cannot be had on this machine."""


class KilledFromOutside(EnvironmentFault):
    """A container or sandbox was killed by something outside of it."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} was killed from outside: by somebody, by a clean-up of the machine or by the kernel for want of "
            "memory, to which a program in it can drive it. Where that leaves no verdict, go on with --evocode-resume"
        )


class SnapshotGone(EnvironmentFault):
    """A snapshot was there and is not any more, which no program in an environment can bring about."""


class BuildError(EnvironmentFault):
    """The task's image could not be built; the message ends with the build's last lines."""


class NeedsDocker(BuildError):
    """The Dockerfile asks for something that cannot be replayed on the host's own system."""

    def __init__(self, dockerfile: Path, line: int, why: str) -> None:
        super().__init__(
            f"{dockerfile}:{line}: this task needs Docker: {why}. "
            "Start Docker and run with --evocode-env=docker, or change this line."
        )


class AgentFault(EvocodeError):
    """The agent could not do its turn for reasons outside the task, such as a solution that fails."""


class ModelFault(AgentFault):
    """The provider of the agent's model cannot be reached, goes on failing, or refuses whatever it is asked.

    The round is an infrastructure error: it says nothing of the agent.
    """


class ConversationRefused(ModelFault):
    """The provider refuses a request for something in it, which the model itself may have written: nobody can tell."""


class VerifierFault(EvocodeError):
    """The suite ended without a usable reward, so there is no verdict to report."""


class RecordFault(EvocodeError):
    """A record of a run cannot be read: it is damaged, or of a later version than this one knows."""


class DamagedRecord(RecordFault):
    """A record is not what this program writes: it was cut off or changed."""


class CannotBeChecked(EvocodeError):
    """A check of a task came to no result, because something else is wrong with the task.

    ``told_by`` is the check that reports what is wrong; empty for the first that comes upon it.
    """

    def __init__(self, why: str, *, told_by: str = "") -> None:
        super().__init__(f"cannot be checked: {why}")
        self.told_by = told_by


class ResumeRefused(EvocodeError):
    """What an earlier session left of an attempt cannot be continued by this one."""


class SnapshotElsewhere(ResumeRefused):
    """An attempt's records are here and the snapshot that it goes on from is not: it stays as it is, unfinished."""


class StorageFault(EvocodeError):
    """The storage that attempts travel by cannot be read or written."""


class TakenOver(StorageFault):
    """Another session goes on with an attempt, so this one may store no more of it."""


class RegradingRefused(EvocodeError):
    """An attempt cannot be verified again."""


class PinRefused(EvocodeError):
    """The cases of a task cannot be pinned, because its rounds did not all pass with some."""


class Cancelled(EvocodeError):
    """The session was stopped while the attempt ran."""


class RunLimitReached(EvocodeError):
    """The run has used what it may; attempts that are not at their end wait for a session with a higher limit."""


class AttemptEnded(EvocodeError):
    """The attempt had ended in an earlier session, so it has records and no environment."""


class EpisodeFault(EvocodeError):
    """An episode that is played from Python has no turn under way, or could not begin."""


class ControlFlow(Exception):
    """Base of what a caller inside the package always catches; no user sees its message alone."""


class RoundFailed(ControlFlow):
    """The verdict of a round is not a pass; the item that pytest runs has the record."""


class CheckFailed(ControlFlow):
    """A task does not stand a check; the message has what is wrong, line by line."""


class TurnStopped(ControlFlow):
    """The agent's turn ends here, for the reason given, and the workspace is graded as it is."""


class ContextOverflow(ControlFlow):
    """The conversation is longer than the model takes; ``str(error)`` is what the provider says."""


class RequestUnanswered(ControlFlow):
    """A model's provider did not answer; ``fault`` is the :class:`pytest_evocode.llm.provider_errors.ProviderFault`."""

    def __init__(self, fault: Any) -> None:
        super().__init__(str(fault))
        self.fault = fault


class RequestRefused(RequestUnanswered):
    """The provider does not take the request, and would not take it a second time."""


class ConnectionBroken(ControlFlow):
    """The connection to a model's provider ended, or the time, before the answer was complete."""


class ChannelClosed(ControlFlow):
    """The container of a command channel has stopped, or its engine has gone."""


class RefusedConnection(ControlFlow):
    """There is no connection to a host that a program in an environment asks for; ``status`` is one of HTTP."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class UnreadableFile(ControlFlow):
    """A path in an environment is a symlink, a directory, a FIFO or too large a file, and is not read."""


class RefusedRequest(ControlFlow):
    """A suite asks for something that its door does not do; ``kind`` says what its test sees of it."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class UnreadableCases(ControlFlow):
    """A report of cases is there but cannot be read; the message says which and why."""


class FilesNotListed(ControlFlow):
    """The files of a workspace cannot be listed; the message says why, for the record."""


class DiffError(ControlFlow, ValueError):
    """A diff does not fit the text that it is to be applied to, or is none."""


class StateNotRebuilt(ControlFlow):
    """A recorded state of a workspace cannot be had again; the message says why."""


class OutOfTime(ControlFlow):
    """A run was cut short because the seconds of the round were used up, so that it is no result."""


class NoGrammar(ControlFlow):
    """A file is in a language for which no parser is installed; the message says which."""


class DamagedObject(ControlFlow):
    """An object of the storage is gone, or its contents are not those that it is called by; ``name`` is its name."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}")
        self.name = name


def describe_error(error: BaseException) -> str:
    """Return the message of a fault of ours, and the traceback of anything else, which is a defect."""
    if isinstance(error, EvocodeError):
        return str(error)
    return "".join(traceback.format_exception(error))


def describe_validation(error: ValidationError) -> str:
    """Return the first thing that is wrong with a value, where in it that is, and how many more there are."""
    first, *others = error.errors(include_url=False)
    where = "".join(f"{part}." for part in first["loc"])[:-1]
    more = f" and {len(others)} more" if others else ""
    return f"{where}: {first['msg']}{more}" if where else f"{first['msg']}{more}"
