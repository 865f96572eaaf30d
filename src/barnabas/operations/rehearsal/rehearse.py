"""Runs a rehearsal: one thing after another happens on a stage, and the result is compared with the beginning. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.config.server_config import ServerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import RECOVERING
from barnabas.operations.errors import OperationError
from barnabas.operations.rehearsal.happenings import Happening, catch_up, pass_time
from barnabas.operations.rehearsal.outcome import Outcome, Sizes, compare
from barnabas.operations.rehearsal.stage import Stage, Step
from barnabas.wire.records.metadata import PartitionChangeRecord


class Scene(NamedTuple):
    """The cluster that a rehearsal begins with. `config` is that of a controller. What is not known is empty, or None."""

    image: MetadataImage
    config: ServerConfig
    voters: Sequence[int] = ()
    sizes: Sizes | None = None


class Rehearsal(NamedTuple):
    """The steps with their records, the image after them, and what changes."""

    steps: list[Step]
    image: MetadataImage
    outcome: Outcome

    @property
    def refusals(self) -> list[str]:
        return [refusal for step in self.steps for refusal in step.refusals]


def rehearse(scene: Scene, happenings: Iterable[Happening], *, at_once: bool = False) -> Rehearsal:
    """Let things happen one after another. Raises OperationError for what the cluster does not have.

    Followers catch up after each, and in the end the periodic elections are held. With `at_once`, neither is done.
    """
    if scene.image.metadata_version is None:
        raise OperationError("it has no metadata.version yet, so nothing can be decided", resource="the metadata")
    stage = Stage(scene.image, scene.config, voters=scene.voters)
    for happening in happenings:
        happening.carry_out(stage)
        if not at_once:
            catch_up(stage)
    if not (at_once or stage.has_lost_quorum):
        pass_time(stage)
    unclean = {
        (record.topic_id, record.partition_id)
        for step in stage.steps
        for record, _ in step.records
        if isinstance(record, PartitionChangeRecord) and record.leader_recovery_state == RECOVERING
    }
    outcome = compare(scene.image, stage.image, scene.config, scene.sizes, unclean, stage.dead)
    return Rehearsal(stage.steps, stage.image, outcome)
