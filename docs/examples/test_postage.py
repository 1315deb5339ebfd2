"""A native suite with every way to reach the program: docs/write-tasks.md shows it, and our own tests run it."""

import urllib.error
import urllib.request

import pytest


def test_price(workspace):
    """The price is that of the first row for parcels of this weight."""
    done = workspace.run("python3 postage.py 101")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "250\n", "")


def test_list(workspace):
    """The parcels of a file are priced, and those on standard input where it is called -."""
    command = ["python3", "/app/postage.py", "--list", "parcels.txt", "-"]
    files = {"parcels.txt": "50\n101\n"}
    done = workspace.run(command, files=files, input="2000\n", env={"LANG": "C.UTF-8"}, timeout=10)
    assert done.stdout == "120\n250\n480\n"


def test_no_end(workspace):
    """A program that waits for ever is stopped, and the test goes on."""
    done = workspace.run("sleep 60", timeout=0.5)
    assert (done.exit_code, done.timed_out) == (None, True)


def test_dialogue(workspace):
    """Weights are answered one by one, until there are no more."""
    program = workspace.popen("python3 postage.py --ask")
    program.write("50\n")
    assert program.read_until("\n", timeout=10) == "120\n"
    program.write("101\n")
    assert program.read_until("\n", timeout=10) == "250\n"
    assert program.running
    program.close_input()
    assert program.wait(timeout=10) == 0
    assert (program.output, program.errors) == ("120\n250\n", "")


def test_server(workspace):
    """Prices are served as plain text, one request after another."""
    server = workspace.popen("python3 postage.py --serve 8000")
    workspace.wait_for_port(8000, timeout=10)
    with urllib.request.urlopen(workspace.url(8000, "/101"), timeout=10) as answer:
        assert answer.read() == b"250\n"
    with workspace.connect(8000) as connection:
        connection.sendall(b"GET /50 HTTP/1.0\r\n\r\n")
        assert connection.makefile("rb").read().endswith(b"\r\n\r\n120\n")
    server.signal("SIGTERM")
    assert server.wait(timeout=10) == 128 + 15


@pytest.fixture(scope="module")
def prices(workspace_module):
    """The URL of a server that the tests of this module share."""
    workspace_module.popen("python3 postage.py --serve 8001")
    workspace_module.wait_for_port(8001, timeout=10)
    return workspace_module.url(8001)


def test_shared_server(prices):
    """A weight that is none is a bad request."""
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(f"{prices}light", timeout=10)


def test_rates_are_read_anew(workspace):
    """Prices are those of the file beside the program, as it is now."""
    assert workspace.read_text("rates.csv").startswith("up_to_grams,cents\n")
    workspace.run(["cp", "/app/postage.py", workspace.path])
    workspace.write(f"{workspace.path}/rates.csv", "up_to_grams,cents\n70,99\n")
    assert workspace.run("python3 postage.py 60", cwd=workspace.path).stdout == "99\n"


def test_nothing_is_left_behind(workspace):
    """Pricing a list makes no files."""
    before = workspace.list("/app")
    workspace.run(["python3", "postage.py", "--list", "-"], input="50\n")
    assert workspace.list("/app") == before
    assert not workspace.exists("parcels.tmp")
    assert workspace.stat("postage.py").size == len(workspace.read("postage.py"))


def test_lists_from_a_directory(workspace, tmp_path):
    """A list may lie anywhere."""
    (tmp_path / "monday").mkdir()
    (tmp_path / "monday" / "parcels.txt").write_text("50\n")
    workspace.mkdir(f"{workspace.path}/lists")
    workspace.copy_in(tmp_path, f"{workspace.path}/lists")
    done = workspace.run(["python3", "/app/postage.py", "--list", "lists/monday/parcels.txt"], cwd=workspace.path)
    assert done.stdout == "120\n"
    workspace.remove(f"{workspace.path}/lists")
    assert workspace.list(workspace.path) == []


def test_library(workspace):
    """Programs that import it get prices in cents."""
    assert workspace.call("postage:price", 101) == 250
    assert workspace.python("import postage; [postage.price(each) for each in args]", 50, 2000) == [120, 480]


def test_no_weight(workspace):
    """What is no weight is a ValueError."""
    with pytest.raises(workspace.RemoteError) as refused:
        workspace.call("postage:price", "light")
    assert refused.value.type == "ValueError"


@pytest.fixture
def postage(workspace):
    """Call the program from anywhere."""
    anywhere = workspace.with_defaults(cwd="/tmp", env={"PYTHONPATH": workspace.workdir}, timeout=10)
    return lambda *arguments: anywhere.run(["python3", "-m", "postage", *arguments])


def test_from_anywhere(postage):
    """The rates lie beside the program, not where it is called."""
    assert postage("50").stdout == "120\n"


def test_who_and_where(workspace):
    """Programs run as the agent's user in the working directory; a test may ask which round it is."""
    assert workspace.run("id -un; pwd").stdout == f"{workspace.user}\n{workspace.workdir}\n"
    assert (workspace.round, workspace.index) == ("round-1", 1)


@pytest.mark.workspace(env={"TZ": "Asia/Tokyo"})
def test_marked(workspace):
    """A mark is as good as with_defaults: of a test, a class or, as pytestmark, a module."""
    assert workspace.run("echo $TZ").stdout == "Asia/Tokyo\n"
