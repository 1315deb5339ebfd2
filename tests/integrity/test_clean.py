"""A suite with ``verify_in = "clean"`` finds nothing of an agent's system, whatever the agent did to it."""

# ruff: noqa: E501 - scripts in tables
from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integrity.changed_tools import CHANGED_TOOLS
from tests.integrity.places import CLEAN, PYTHON, Attack, Place, in_all_places

if TYPE_CHECKING:
    from tests.integrity.conftest import Honest, Play

# The tool goes on greeting; asked for a word, it takes it from the suite, which it has a program to read with.
READ_BY = """
cat > /app/tool.py <<'END'
import re, subprocess, sys
def read():
    done = subprocess.run(READER, capture_output=True, text=True)
    found = re.search(r"(evocode-secret.)word", done.stdout)
    return found[1] if found else "what?"
print("hello" if sys.argv[1:] == ["greet"] else read() + sys.argv[1])
END
sed -i "s,READER,['/app/reader'\\, '/tests/grade.py']," /app/tool.py
rm -f /app/reader; cp /bin/cat /app/reader
"""
CAPABLE = "0100000202000000000000000200000000000000"  # CAP_DAC_OVERRIDE, permitted and effective.

#: What the suite finds in the workdir gives the program rights that a careful author does not mean it to have.
RIGHTS = [
    Attack("setuid", READ_BY + "chmod 6755 /app/reader"),
    Attack("setuid-of-a-hard-link", READ_BY + "chmod 4755 /app/reader; ln /app/reader /srv/reader; mv -f /srv/reader /app/reader"),
    Attack("file-capability", READ_BY
           + f"""{PYTHON} -c "import os; os.setxattr('/app/reader', 'security.capability', bytes.fromhex('{CAPABLE}'))" """),
    Attack("setgid-directory", READ_BY + "chgrp 0 /app; chmod 2777 /app"),
]  # fmt: skip

#: What stands where the workdir was; the suite is to copy, find and change nothing there.
LINKS = {
    "to-the-tests": "/tests",
    "to-the-verdict": "/logs/verifier",
    "to-the-system": "/etc",
    "to-the-root": "/",
    "to-nowhere": "/no/where",
    "to-work-elsewhere": "/srv/work",
    "to-itself": "/app",
}

#: Recorded when the image is built, and compared by the suite: every file of the system that can be changed.
SUMS = "find /*.* /etc /opt /root /home /srv /var/lib /usr/local -xdev ! -name hosts ! -name hostname ! -name resolv.conf " \
    "\\( -type f -exec md5sum {} + -o ! -type f -printf '%y %m %p %l\\n' \\) 2>/dev/null | sort"  # fmt: skip
DOCKERFILE = f"FROM python:3.11-slim-bookworm\nWORKDIR /image\nWORKDIR /app\nRUN {SUMS} > /image/sums\n"
VERDICT = 'echo "{\\"reward\\": $reward}" > /logs/verifier/reward.json\n'
COMPARE = f"reward=1; {SUMS} | diff /image/sums - || reward=0\n{VERDICT}"
CHANGES = {
    "configuration": "for f in ssl/openssl.cnf nsswitch.conf ld.so.conf.d/a.conf alternatives/awk environment profile.d/a.sh; do mkdir -p $(dirname /etc/$f); rm -f /etc/$f; echo x > /etc/$f; done",
    "users": "sed -i 's/^nobody:.*/nobody:x:0:0::\\/:\\/bin\\/sh/' /etc/passwd; echo 'a:x:0:0::/:/bin/sh' >> /etc/passwd; chmod 666 /etc/passwd",
    "homes": "for d in /root /home; do mkdir -p $d/.config; echo x > $d/.bashrc; echo x > $d/.config/a; done",
    "deletions": "rm -rf /etc/ssl /etc/profile /usr/local/lib /opt /home /var/lib/dpkg",
    "other-places": "mkdir -p /srv/a /opt/venv/bin /var/lib/a; touch /srv/a/b /opt/venv/bin/python3 /var/lib/a/b; mkfifo /srv/f",
    "pytest-files-at-the-root": "printf '[pytest]\\naddopts = --confcutdir=/\\n' > /pytest.ini; echo 'raise SystemExit' > /conftest.py",
    "what-suites-source": "mkdir -p ~/.local/bin; echo 'pytest() { return 0; }' > ~/.local/bin/env; cp ~/.local/bin/env ~/.cargo 2>/dev/null; true",
    "a-system-that-does-not-start": "rm -rf /etc /usr/lib /usr/lib64 /lib /lib64 /bin /usr/bin/bash 2>/dev/null; true",
}


# By day the whole system is compared, below.
@in_all_places(CHANGED_TOOLS, CLEAN, by_day=0)
def test_a_changed_tool_changes_nothing(attack: Attack, place: Place, play: Play, honest: Honest) -> None:
    played = play(attack, place)
    assert played.outcome == honest(attack, place)
    assert [round_.verdict.trusts for round_ in played.record.rounds if round_.verdict] == [(), ()]
    assert played.secrets == []


@in_all_places(RIGHTS, CLEAN)
def test_nothing_in_the_workdir_gives_the_program_rights(
    attack: Attack, place: Place, play: Play, honest: Honest
) -> None:
    if place.rootless and place.env == "sandbox":
        pytest.skip("there is one uid, so a program reads what its suite reads")
    played = play(attack, place)
    assert played.outcome == honest(attack, place)


@in_all_places([Attack(f"workdir-{name}", f"[ -L /app ] || {{ mkdir -p /srv/work; cp -a /app/. /srv/work; cd /; rm -rf /app; ln -s {target} /app; }}",
                       suite="careless") for name, target in LINKS.items()], CLEAN)  # fmt: skip
def test_a_link_in_place_of_the_workdir_leads_nowhere(attack: Attack, place: Place, play: Play, honest: Honest) -> None:
    suite = (
        # Where it is, it is empty, and what is written there is found nowhere else.
        '[ -d /app ] && [ ! -L /app ] && [ -z "$(ls -A /app)" ] && echo mine > written || exit 1\n'
        '[ ! -e /etc/written ] && [ ! -e /tests/written ] && [ ! -e /written ] && [ ! -e /srv/work ] || exit 1\n'
        "reward=1\n" + VERDICT
    )  # fmt: skip
    played = play(attack, place, files={"tests/test.sh": suite})
    assert [round_[1] for round_ in played.outcome.rounds] == [{"reward": 1.0}, {"reward": 1.0}], played.text


@in_all_places([Attack(f"changed-{name}", script) for name, script in CHANGES.items()], CLEAN)
def test_the_system_is_the_images_own(attack: Attack, place: Place, play: Play) -> None:
    files = {"environment/Dockerfile": DOCKERFILE, "tests/test.sh": COMPARE}
    played = play(attack, place, files=files)
    assert [round_[1] for round_ in played.outcome.rounds] == [{"reward": 1.0}, {"reward": 1.0}], played.text


STATE = Attack(
    "state",
    "mkdir -p /srv/elsewhere /var/lib; echo planted > /srv/elsewhere/passwd; echo mine > /app/mine; rm -f /app/tool.py;"
    "rm -rf /var/lib/shop /opt; ln -s /etc /var/lib/shop; ln -s /srv/elsewhere /opt; ln -s /etc /app/etc; mkdir -p /var/lib/rows;"
    "cp /bin/cat /var/lib/rows/suid; chmod 4755 /var/lib/rows/suid; mknod /app/null c 1 3; mknod /app/disk b 8 0; mkfifo /app/fifo",
)


@in_all_places([STATE], CLEAN)
def test_state_and_workdir_are_carried_over_without_what_links_lead_to(
    attack: Attack, place: Place, play: Play
) -> None:
    toml = '[metadata.evocode]\nverify_in = "clean"\nstate = ["/var/lib/shop", "/opt/passwd", "/var/lib/rows"]\n'
    steps = "\n".join(f'[[steps]]\nname = "round-{index}"\n' for index in (1, 2))
    suite = (
        "[ ! -e /var/lib/shop ] && [ ! -L /var/lib/shop ] && [ -d /opt ] && [ ! -L /opt ] && [ ! -e /opt/passwd ] || exit 1\n"
        "[ ! -e /srv/elsewhere ] && ! grep planted /etc/passwd && [ -f /var/lib/rows/suid ] && [ ! -u /var/lib/rows/suid ] || exit 1\n"
        # A link in the workdir is there as it is, and leads to the image's own.
        '[ "$(readlink /app/etc)" = /etc ] && [ -s /app/mine ] && [ ! -e /app/tool.py ] || exit 1\n'
        "for name in null disk fifo; do [ ! -e /app/$name ] || exit 1; done\n"
        "reward=1\n" + VERDICT
    )
    played = play(attack, place, files={"task.toml": f"{toml}\n{steps}", "tests/test.sh": suite})
    assert [round_[1] for round_ in played.outcome.rounds] == [{"reward": 1.0}, {"reward": 1.0}], played.text


NAMED = Attack(
    "nobody-is-root",
    "sed -i 's/^nobody:.*/nobody:x:0:0::\\/:\\/bin\\/sh/' /etc/passwd; echo 'mallory:x:0:0::/:/bin/sh' >> /etc/passwd",
    toml='[verifier]\nuser = "nobody"\n',
)


@in_all_places([NAMED], CLEAN)
def test_a_suite_that_runs_as_a_named_user_is_who_the_image_says(attack: Attack, place: Place, play: Play) -> None:
    suite = '[ "$(id -u)" = 65534 ] && ! grep -q mallory /etc/passwd || exit 1\nreward=1\n' + VERDICT
    played = play(attack, place, files={"tests/test.sh": suite})
    assert [round_[1] for round_ in played.outcome.rounds] == [{"reward": 1.0}, {"reward": 1.0}], played.text
