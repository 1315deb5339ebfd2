"""Sphinx configuration."""

from __future__ import annotations

from importlib.metadata import version as installed_version

project = "pytest-evocode"
author = "The pytest-evocode developers"
copyright = "2026, the pytest-evocode developers"
release = version = installed_version("pytest-evocode")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "sphinx_llms_txt"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "pytest-evocode"
# What is pasted are the commands, not their prompts and outputs.
copybutton_prompt_text = "$ "
# For models that look something up: llms.txt names the pages, llms-full.txt has them.
llms_txt_summary = (
    "A pytest plugin that finds out whether a coding agent can keep a project alive while its requirements change."
)
autodoc_member_order = "bysource"
autodoc_typehints = "description"
exclude_patterns = ["_build"]
# `tox -e demo` sets html_extra_path to what has the demo.
nitpicky = False
