"""Build the report's script and style sheet of the viewer's sources, or check that they are what would be built.

``tox -e viewer`` checks, and ``tox -e viewer -- build`` builds; both bring the esbuild that the files were made with.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

_HTML = Path(__file__).parents[1] / "pytest_evocode" / "report" / "html"
#: "bundle" leaves out functions that nothing calls.
_SCRIPT = ("--loader=js", "--bundle", "--format=iife", "--target=es2022")
_STYLE = ("--loader=css",)
_ALL = ("--minify", "--charset=utf8", "--legal-comments=none", "--log-level=warning")


def main(argv: list[str] | None = None) -> int:
    """Build or check; return 1 if a file is not what its sources make."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("check", "build"))
    parser.add_argument("--esbuild", default="esbuild", help="the program; by default the one in the PATH")
    options = parser.parse_args(argv)
    differing = []
    for path, content in _built(options.esbuild).items():
        if path.is_file() and path.read_bytes() == content:
            continue
        differing.append(path.name)
        if options.action == "build":
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
            print(f"built {path.name}: {len(content):,} bytes")
    if options.action == "build" or not differing:
        return 0
    print(
        f"{' and '.join(differing)} are not what viewer/ makes. Build them anew by: tox -e viewer -- build",
        file=sys.stderr,
    )
    return 1


def _built(esbuild: str) -> dict[Path, bytes]:
    bundle = _bundle()
    return {
        bundle.BUILT / name: (bundle.heading(sources) + _minified(esbuild, options, sources)).encode()
        for name, options, sources in (
            ("report.js", _SCRIPT, bundle.joined_scripts()),
            ("report.css", _STYLE, bundle.joined_styles()),
        )
    }


def _minified(esbuild: str, options: tuple[str, ...], sources: str) -> str:
    done = subprocess.run([esbuild, *options, *_ALL], input=sources.encode(), stdout=subprocess.PIPE, check=True)
    return done.stdout.decode()


def _bundle() -> ModuleType:
    """Load the one module that is needed, without the package and all that it depends on."""
    spec = importlib.util.spec_from_file_location("bundle", _HTML / "bundle.py")
    if spec is None or spec.loader is None:
        raise ImportError(_HTML)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main())
