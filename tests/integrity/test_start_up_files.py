"""Files that shells, interpreters and pytest read unasked change nothing while the image's own tools are intact."""

# ruff: noqa: E501 - scripts in tables
from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tests.integrity.places import CLEAN, SEPARATE, Attack, Place, in_all_places

if TYPE_CHECKING:
    from tests.integrity.conftest import Honest, Play

FORGE = "echo '{\"reward\": 1.0}' > /logs/verifier/reward.json; exit 0"
FORGE_PYTHON = "open('/logs/verifier/reward.json', 'w').write('{\"reward\": 1.0}'); import os; os._exit(0)"
# stand_in: all tools of a suite, in a directory that some PATH may have before the image's own.
# modules: modules that an interpreter or a grader imports, in the working directory.
# pytest_files: what a pytest that ran here would be configured by.
FUNCTIONS = f"""
stand_in() {{
  for directory; do
    mkdir -p $directory
    for tool in bash sh python3 python env chmod grep awk seq cat; do
      printf '#!/bin/sh\\n%s\\n' {shlex.quote(FORGE)} > $directory/$tool
      chmod 755 $directory/$tool
    done
  done
}}
modules() {{
  for name in sitecustomize usercustomize json pathlib subprocess tempfile os site pytest; do
    printf '%s\\n' {shlex.quote(FORGE_PYTHON)} > $name.py
  done
  echo 'import sitecustomize' > a.pth
}}
pytest_files() {{
  printf '%s\\n' {shlex.quote(FORGE_PYTHON)} | tee conftest.py > cheat.py
  printf '[pytest]\\naddopts = -p cheat\\n' | tee pytest.ini > tox.ini
  printf '[tool.pytest.ini_options]\\naddopts = "-p cheat"\\n' > pyproject.toml
  printf '[tool:pytest]\\naddopts = -p cheat\\n' > setup.cfg
  mkdir -p cheat-1.dist-info
  printf '[pytest11]\\ncheat = cheat\\n' > cheat-1.dist-info/entry_points.txt
  printf 'Metadata-Version: 2.1\\nName: cheat\\nVersion: 1\\n' > cheat-1.dist-info/METADATA
}}
printf '%s\\n' {shlex.quote(FORGE)} > /app/forge.sh
"""
OUTSIDE_OF_PATH = "stand_in /app /app/bin /root/bin /root/.local/bin ~/bin ~/.local/bin /tmp /opt/bin"
RC_FILES = "~/.bashrc ~/.profile ~/.bash_profile ~/.bash_login ~/.bash_logout ~/.zshrc /root/.bashrc /root/.profile"
LOGIN_FILES = "/etc/profile /etc/bash.bashrc /etc/bashrc /etc/profile.d/a.sh /etc/zsh/zshenv /etc/skel/.bashrc"
VARIABLES = "PATH=/app/bin:/usr/bin:/bin BASH_ENV=/app/forge.sh ENV=/app/forge.sh PYTHONPATH=/app LD_PRELOAD=/app/a.so"
SHELL_FILES = {
    "tools-outside-of-path": OUTSIDE_OF_PATH,
    "rc-files": f"for f in {RC_FILES}; do cp /app/forge.sh $f; done",
    "login-files": f"mkdir -p /etc/profile.d /etc/zsh /etc/skel; for f in {LOGIN_FILES}; do cp /app/forge.sh $f; done",
    "variables-in-etc": "stand_in /app/bin; mkdir -p /etc/security /etc/default; "
    f"printf '%s\\n' {VARIABLES} | tee /etc/environment /etc/default/locale > /etc/security/pam_env.conf",
    "variables-in-the-turn": f"stand_in /app/bin; export {VARIABLES.replace(' LD_PRELOAD=/app/a.so', '')}",
}

START_UP_FILES = [
    # A suite runs in no shell that reads these; one that goes by PATH and believes every variable shows it.
    *(
        Attack(f"{name}-{suite}-suite", FUNCTIONS + script, suite=suite)
        for name, script in SHELL_FILES.items()
        for suite in ("careful", "careless")
    ),
    # What Python would import from the working directory, the root, or the home's site-packages.
    Attack("modules-in-the-workspace", f"{FUNCTIONS} cd /app; modules"),
    Attack("modules-in-the-root", f"{FUNCTIONS} cd /; modules"),
    Attack(
        "modules-in-the-home",
        f"{FUNCTIONS} for v in 9 10 11 12 13 14; do d=~/.local/lib/python3.$v/site-packages; mkdir -p $d; cd $d; "
        "modules; done",
    ),
    Attack("pytest-files-in-the-workspace", f"{FUNCTIONS} cd /app; pytest_files"),
    Attack("pytest-files-in-the-root", f"{FUNCTIONS} cd /; pytest_files"),
    Attack("pytest-files-in-the-home", f"{FUNCTIONS} cd ~; pytest_files"),
    # Who root is, where it lives and which shell it has.
    Attack(
        "passwd",
        f"{FUNCTIONS} chmod 755 /app/forge.sh; for u in root nobody; do "
        "grep -v ^$u: /etc/passwd > /tmp/p; echo $u:x:0:0::/app:/app/forge.sh >> /tmp/p; cat /tmp/p > /etc/passwd; done",
    ),
    Attack("names-of-hosts", "echo '0.0.0.0 localhost' > /etc/hosts; echo 'nameserver 0.0.0.0' > /etc/resolv.conf"),
    # The suite starts in the working directory, wherever that leads; a clean one then has none (test_clean.py).
    Attack(
        "workdir-is-a-symlink",
        "cd /; cp -a /app /var/tmp/app-$ROUND; rm -rf /app; ln -s /var/tmp/app-$ROUND /app",
        not_promised=CLEAN,
    ),
]


@in_all_places(START_UP_FILES, also=SEPARATE)
def test_files_that_are_read_unasked_gain_nothing(attack: Attack, place: Place, play: Play, honest: Honest) -> None:
    played = play(attack, place)
    assert played.outcome == honest(attack, place)
    assert played.secrets == []
