"""``evocode_container`` and the fixtures that depend on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.turns(3)

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


def test_fixtures_live_as_long_as_their_attempt_and_see_one_container_in_all_rounds(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(
        f"""{DEPENDING}
        TORN_DOWN.append(evocode_container)
        if len(TORN_DOWN) == 2:
            raise OSError("in use")

    TORN_DOWN, SEEN = [], {{}}

    @pytest.fixture(autouse=True)
    def once_per_round(request, evocode_container):
        assert SEEN.setdefault(request.node.parent.nodeid, evocode_container) is evocode_container
        assert evocode_container not in TORN_DOWN
        yield
        assert evocode_container.exec("true").ok
    """
    )
    write_task("a", 2, solve={2: "grep -qx line-1 log.txt && echo line-2 >> log.txt"})
    write_task("b", 2, dockerfile="FROM python:3.11-slim-bookworm\nRUN false\n")
    session = run_tasks("-s", "-rA", "--evocode-attempts=2", "tasks")
    # Every attempt finds a container of its own, and is over before the next one starts; an image that cannot be
    # built leaves fixtures alone.
    assert events(session) == 2 * ["set up: 1", "torn down: line-1 line-2"]
    assert session.outcomes == {"passed": 4, "errors": 3, "skipped": 2}
    # A fixture that fails to tear down is an error of the last round.
    session.has("ERROR tasks/a/task.toml::oracle.2::round-2 - OSError: in use")


def test_only_rounds_have_a_container_and_a_fixture_can_serve_ordinary_tests_as_well(
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
    pytester.makepyfile("def test_ordinary(): pass\ndef test_asking(evocode_container): pass")
    session = run_tasks("-s")
    assert session.outcomes == {"passed": 2, "errors": 1}
    session.has("*container has log.txt*", "*fixture 'evocode_container' not found*")


@pytest.mark.docker
@pytest.mark.nightly
def test_a_session_fixture_lives_as_long_as_its_attempt_in_docker(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(DEPENDING)
    write_task("a", 2)
    session = run_tasks("-s", "tasks", env="docker")
    assert session.outcomes == {"passed": 2}
    assert events(session) == ["set up: 1", "torn down: line-1 line-2"]
