"""The images in which what agents need is installed: they stay until somebody removes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.environments.docker.removal import remove

if TYPE_CHECKING:
    from docker import APIClient

_REPOSITORY, _LABEL, _INSTALLED = "evocode-agent", "evocode.image=agent", "evocode.installation"


@dataclass(frozen=True, slots=True)
class AgentImage:
    """An image with what an agent needs on top of a task's."""

    id: str
    name: str
    installed: str
    """What is installed, such as a package with its version."""
    size: int
    """Bytes, with all that it is built on."""
    in_use: bool
    """Whether a container or a snapshot is made of it."""

    def __str__(self) -> str:
        """Return its name, what is installed and its size."""
        return f"image {self.name} with {self.installed}, {self.size / 1e6:,.0f} MB"


def agent_images(client: APIClient) -> list[AgentImage]:
    """Return the agents' images of an engine, in order of what is installed."""
    with faults("listing the images of agents"):
        containers = client.containers(all=True)
        found = client.images(filters={"label": _LABEL})
        every = client.images(all=True)
    used = {each.get("ImageID") for each in containers} | {each.get("ParentId") for each in every}
    images = [
        AgentImage(
            id=each["Id"],
            name=each["RepoTags"][0],
            installed=(each.get("Labels") or {}).get(_INSTALLED, "what an agent needs"),
            size=int(each["Size"]),
            in_use=each["Id"] in used,
        )
        for each in found
        # Snapshots inherit the label.
        if any(name.startswith(f"{_REPOSITORY}:") for name in each.get("RepoTags") or ())
    ]
    return sorted(images, key=lambda image: (image.installed, image.name))


def remove_agent_image(client: APIClient, image: AgentImage) -> None:
    """Remove an image that is not in use; the next attempt of its agent installs it anew."""
    remove(client, "image", image.name, force=False)
