"""Sphinx configuration."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import generate

generate.write(Path(__file__).parent / "generated")
project = "pytest-evocode"
author = "The pytest-evocode developers"
copyright = "2026, the pytest-evocode developers"
release = version = installed_version("pytest-evocode")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "alabaster"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
exclude_patterns = ["_build", "generated"]
# `tox -e demo` sets html_extra_path to what has the demo.
nitpicky = False
