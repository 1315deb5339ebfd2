"""Where tools keep packages, and what of that came from a network and may be handed from one suite to another."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping

import pytest

from pytest_evocode.verifier.package_caches import PackageCache, cache_of, downloads, package_caches

LINK = "-> "
SAME = "== "


def handed_on(cache: PackageCache, files: Mapping[str, str]) -> set[str]:
    """Those of some files of a cache that are handed on; a text may say what a link leads to, or the same file is."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for path, text in files.items():
            info = tarfile.TarInfo(f"{cache.path}/{path}".lstrip("/"))
            if text.startswith((LINK, SAME)):
                info.type, info.linkname = tarfile.SYMTYPE, text.removeprefix(LINK)
                if text.startswith(SAME):
                    info.type, info.linkname = tarfile.LNKTYPE, f"{cache.path}/{text.removeprefix(SAME)}".lstrip("/")
                archive.addfile(info)
            else:
                info.size = len(text.encode())
                archive.addfile(info, io.BytesIO(text.encode()))
    stream.seek(0)
    with tarfile.open(fileobj=stream) as archive:
        return {f"/{name}".removeprefix(f"{cache.path}/") for name in downloads(archive, [cache])}


def places(variables: Mapping[str, str] = {}, declared: tuple[str, ...] = (), workdir: str = "/app") -> set[str]:
    found = package_caches(["/root", "/home/me"], variables, declared, apart_from=[workdir, "/usr/local/bin"])
    return {f"{cache.tool} {cache.path}" for cache in found}


def test_caches_are_in_every_home_directory() -> None:
    assert places() == {
        *(f"{tool} {home}/.cache/{tool}" for tool in ("uv", "pip") for home in ("/root", "/home/me")),
        *("npm /root/.npm", "npm /home/me/.npm", "cargo /root/.cargo/registry", "cargo /home/me/.cargo/registry"),
        *("go /root/go/pkg/mod", "go /home/me/go/pkg/mod"),
        *("apt /var/cache/apt/archives", "apt /var/lib/apt/lists"),
    }


def test_variables_and_the_task_name_others() -> None:
    variables = {"UV_CACHE_DIR": "/cache/", "CARGO_HOME": "/usr/local/cargo", "GOPATH": "/go:/other"}
    found = places({**variables, "npm_config_cache": "/srv/npm", "XDG_CACHE_HOME": "/x"}, declared=("/opt/m2",))
    assert {"uv /cache", "cargo /usr/local/cargo/registry", "go /go/pkg/mod", "npm /srv/npm", "pip /x/pip"} < found
    assert "declared /opt/m2" in found
    assert not {"uv /root/.cache/uv", "go /root/go/pkg/mod", "npm /root/.npm"} & found


@pytest.mark.parametrize(
    "place",
    ["/app/cache", "/app", "/", "relative", "/root", "/usr", "/usr/local", "/tests/x", "/etc/uv", "/srv/../etc"],
)
def test_no_cache_is_what_holds_other_things_or_is_the_agents(place: str) -> None:
    assert not [each for each in places({"UV_CACHE_DIR": place}, (place,)) if each.split()[0] in ("uv", "declared")]


def test_a_workspace_that_is_the_system_has_none() -> None:
    assert places(workdir="/") == set()


def test_of_two_caches_the_inner_one_decides() -> None:
    outer, inner = PackageCache("declared", "/root/.cache"), PackageCache("uv", "/root/.cache/uv")
    assert cache_of("/root/.cache/uv/x", [outer, inner]) is inner
    assert cache_of("/root/.cache/other", [outer, inner]) is outer
    assert cache_of("/root/.cached", [outer, inner]) is None


def test_of_uv_only_what_was_fetched() -> None:
    fetched = {
        "simple-v28/pypi/pytest.rkyv": "",
        "wheels-v8/pypi/pytest/8.4.2-py3-none-any.http": "",
        "wheels-v8/pypi/pytest/8.4.2-py3-none-any.msgpack": "",
        "wheels-v8/pypi/pytest/8.4.2-py3-none-any": LINK + "../../../archive-v0/fetched",
        "wheels-v8/index/ab12/x/1.0-516d.http": "",
        "wheels-v8/index/ab12/x/1.0-516d": LINK + "/root/.cache/uv/archive-v0/absolute",
        "archive-v0/fetched/pytest/__init__.py": "",
        "archive-v0/absolute/x.py": "",
        "sdists-v11/.git": "",
        "sdists-v11/pypi/docopt/0.6.2/revision.http": "",
        "sdists-v11/pypi/docopt/0.6.2/r1/docopt-0.6.2-py2.py3-none-any": LINK + "../../../../../archive-v0/of-sdist",
        "archive-v0/of-sdist/docopt.py": "",
    }
    built = {
        "sdists-v11/path/a7/rev/ledger-1.0-py3-none-any": LINK + "../../../../archive-v0/built",
        "sdists-v11/path/a7/revision.rev": "",
        "sdists-v11/editable/a7/rev/ledger-1.0": LINK + "../../../../archive-v0/editable",
        "wheels-v8/url/a8/ledger/1.0-py3-none-any.rev": "",
        "wheels-v8/url/a8/ledger/1.0-py3-none-any": LINK + "../../../../archive-v0/local",
        "archive-v0/built/ledger/__init__.py": "",
        "archive-v0/editable/ledger.pth": "",
        "archive-v0/local/ledger/__init__.py": "",
        "archive-v0/orphan/ledger/__init__.py": "",
        "interpreter-v5/a/b.msgpack": "",
        "builds-v0/x": "",
    }
    assert handed_on(PackageCache("uv", "/root/.cache/uv"), fetched | built) == set(fetched)


TOOL = {
    "wheels-v8/pypi/tool/1.0-py3-none-any.http": "",
    "wheels-v8/pypi/tool/1.0-py3-none-any": LINK + "../../../archive-v0/tool",
    "archive-v0/tool/tool.py": "",
    "archive-v0/tool/tool-1.0.dist-info/METADATA": "",
}
BUILT = {"archive-v0/ledger/ledger.py": ""}
ENVIRONMENT = {
    "environments-v2/e/f": LINK + "../../archive-v0/env",
    "environments-v2/e/f.lock": "",
    "archive-v0/env/pyvenv.cfg": "",
    "archive-v0/env/bin/tool": "",
    "archive-v0/env/lib64": LINK + "lib",
    "archive-v0/env/lib/python3.11/site-packages/tool.py": SAME + "archive-v0/tool/tool.py",
    "archive-v0/env/lib/python3.11/site-packages/__pycache__/tool.cpython-311.pyc": "",
    "archive-v0/env/lib/python3.11/site-packages/tool-1.0.dist-info/METADATA": SAME
    + "archive-v0/tool/tool-1.0.dist-info/METADATA",
    "archive-v0/env/lib/python3.11/site-packages/tool-1.0.dist-info/RECORD": "",
}


def test_of_uv_an_environment_of_nothing_but_what_was_fetched() -> None:
    assert handed_on(PackageCache("uv", "/uv"), TOOL | BUILT | ENVIRONMENT) == {*TOOL, *ENVIRONMENT}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ledger.py", SAME + "archive-v0/ledger/ledger.py"),
        ("ledger.py", ""),
        ("__editable__.pth", ""),
        ("ledger-1.0.dist-info/METADATA", ""),
        ("tool-1.0.dist-info/direct_url.json", ""),
        ("__pycache__/ledger.cpython-311.pyc", ""),
        ("tool.so", LINK + "/app/tool.so"),
    ],
)
def test_of_uv_no_environment_with_anything_else(name: str, text: str) -> None:
    other = {f"archive-v0/env/lib/python3.11/site-packages/{name}": text}
    assert handed_on(PackageCache("uv", "/uv"), TOOL | BUILT | ENVIRONMENT | other) == set(TOOL)


def test_of_pip_responses_and_wheels_of_what_was_fetched() -> None:
    remote, local = (json.dumps({"url": url}) for url in ("https://host/docopt.tar.gz", "file:///app/dist/x.tar.gz"))
    files = {
        "http-v2/a/b/c": "response",
        "wheels/1/origin.json": remote,
        "wheels/1/docopt.whl": "",
        "wheels/2/origin.json": local,
        "wheels/2/x.whl": "",
        "wheels/3/old.whl": "",
        "wheels/4/origin.json": "[[",
        "selfcheck/x": "",
    }
    assert handed_on(PackageCache("pip", "/p"), files) == {
        "http-v2/a/b/c",
        "wheels/1/origin.json",
        "wheels/1/docopt.whl",
    }


def test_of_npm_responses_and_their_contents() -> None:
    def content(text: str) -> tuple[str, str]:
        digest = hashlib.sha512(text.encode()).digest()
        number = digest.hex()
        place = f"_cacache/content-v2/sha512/{number[:2]}/{number[2:4]}/{number[4:]}"
        return f"sha512-{base64.b64encode(digest).decode()}", place

    def index(key: str, integrity: str) -> str:
        return f"\nabc\t{json.dumps({'key': key, 'integrity': integrity})}"

    (fetched, place), (packed, other) = content("fetched"), content("packed")
    files = {
        "_cacache/index-v5/a/b": index("make-fetch-happen:request-cache:https://registry/x", fetched),
        place: "fetched",
        "_cacache/index-v5/c/d": index("pacote:tarball:file:/app", packed),
        other: "packed",
        "_cacache/index-v5/e/f": "\nabc\tnothing",
        "_npx/1/node_modules/x.js": "",
        "_logs/x": "",
    }
    assert handed_on(PackageCache("npm", "/root/.npm"), files) == {"_cacache/index-v5/a/b", place}


def test_of_the_others_all_but_locks_and_halves() -> None:
    apt = {"pytest.deb": "", "lock": "", "partial/x.deb": ""}
    assert handed_on(PackageCache("apt", "/var/cache/apt/archives"), apt) == {"pytest.deb"}
    go = {"cache/download/x/@v/v1.zip": "", "x@v1/x.go": "", "cache/vcs/1/HEAD": "", "cache/lock": ""}
    assert handed_on(PackageCache("go", "/go/pkg/mod"), go) == {"cache/download/x/@v/v1.zip", "x@v1/x.go"}
