"""``evocode_container`` and the fixtures that depend on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

DEPENDING = """
    import pytest

    @pytest.fixture(scope="session", autouse=True)
    def service(evocode_container):
        print("\\nset up:", evocode_container.exec("echo x >> mark; wc -l < mark").output.strip())
        yield evocode_container
        print("\\ntorn down:", evocode_container.exec("cat log.txt | tr '\\\\n' ' '").output.strip())
"""


def events(session: Session) -> list[str]:
    """What the fixture printed, and the rounds between."""
    kept = ("set up:", "torn down:")
    return [line for line in session.result.outlines if line.startswith(kept)]


def test_a_session_fixture_lives_as_long_as_its_attempt(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(DEPENDING)
    write_task("a", 2)
    write_task("b", 1)
    session = run_tasks("-s", "--evocode-attempts=2", "tasks")
    assert session.outcomes == {"passed": 6}
    # Every attempt finds a container of its own, and is over before the next one starts.
    long, short = ["set up: 1", "torn down: line-1 line-2"], ["set up: 1", "torn down: line-1"]
    assert events(session) == [*long, *long, *short, *short]


def test_a_fixture_that_fails_to_tear_down_is_an_error_of_the_last_round(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(f"{DEPENDING}        raise OSError('in use')\n")
    write_task("a", 2)
    session = run_tasks("-rA", "tasks")
    assert session.outcomes == {"passed": 2, "errors": 1}
    session.has("ERROR tasks/a/task.toml::oracle::round-2 - OSError: in use")


def test_the_container_lives_through_the_rounds(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(autouse=True)
        def once_per_round(request, evocode_container):
            seen = request.config.stash.setdefault(KEY, [])
            seen.append(evocode_container)
            assert all(one is evocode_container for one in seen)
            yield
            assert evocode_container.exec("true").ok

        KEY = pytest.StashKey()
        """
    )
    write_task("a", 3, solve={2: "grep -qx line-1 log.txt && echo line-2 >> log.txt"})
    assert run_tasks("tasks").outcomes == {"passed": 3}


def test_a_fixture_can_serve_rounds_and_ordinary_tests(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(autouse=True)
        def optional(request):
            if "evocode_container" in request.fixturenames:
                print("container has", request.getfixturevalue("evocode_container").exec("ls").output.strip())
        """
    )
    write_task("a", 1)
    pytester.makepyfile("def test_ordinary(): pass")
    session = run_tasks("-s")
    assert session.outcomes == {"passed": 2}
    session.has("*container has log.txt*")


def test_an_ordinary_test_has_no_container(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    pytester.makepyfile("def test_ordinary(evocode_container): pass")
    session = run_tasks()
    assert session.outcomes == {"passed": 1, "errors": 1}
    session.has("*fixture 'evocode_container' not found*")


def test_a_round_that_is_an_error_leaves_fixtures_alone(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(DEPENDING)
    write_task("a", 2, dockerfile="FROM python:3.11-slim-bookworm\nRUN false\n")
    session = run_tasks("-s", "tasks")
    assert session.outcomes == {"errors": 1, "skipped": 1}
    assert events(session) == []


@pytest.mark.docker
def test_a_session_fixture_lives_as_long_as_its_attempt_in_docker(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(DEPENDING)
    write_task("a", 2)
    session = run_tasks("-s", "tasks", env="docker")
    assert session.outcomes == {"passed": 2}
    assert events(session) == ["set up: 1", "torn down: line-1 line-2"]
