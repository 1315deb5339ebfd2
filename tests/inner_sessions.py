"""What makes pytest sessions within tests cheap: fewer plugins, and modules that are imported once for all of them.

Pytester forgets what a session in the tests' own process imports, and the next one would pay for it again; packages
would hold on to the modules of the session before.
"""

from pytest_evocode.agents.shell import agent as shell_agent
from pytest_evocode.checks import lint, runner
from pytest_evocode.environments.docker import engine as docker_engine
from pytest_evocode.environments.sandbox import engine as sandbox_engine
from pytest_evocode.metrics import breakdown, intervals
from pytest_evocode.plugin import checks, live, session_hooks
from pytest_evocode.plugin.xdist import controller, scheduler
from pytest_evocode.process import attempts
from pytest_evocode.report import benchmark, failures
from pytest_evocode.results import directory, records

IMPORTED_ONCE = (
    *(
        attempts,
        benchmark,
        breakdown,
        checks,
        controller,
        directory,
        docker_engine,
        failures,
        intervals,
        lint,
        live,
    ),
    *(live, records, runner, sandbox_engine, scheduler, session_hooks, shell_agent),
)
# Plugins of libraries, which take a session longer to import than all of ours.
UNUSED = ("-p", "no:hypothesispytest", "-p", "no:anyio")
