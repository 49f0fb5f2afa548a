"""Orders of pipeline schedules: each rank's sequence of actions by stage and microbatch.

Actions: F, a forward; B, a full backward; and its halves, I for the gradients of the stage's inputs, for which another
stage waits, and W for those of its parameters, which only the step's end needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

FORWARD, BACKWARD, INPUTS, WEIGHTS = "F", "B", "I", "W"


class Action(NamedTuple):
    """An action: written "3F0" for the forward of stage 3 with microbatch 0."""

    stage_index: int
    computation_type: str
    microbatch_index: int

    def __repr__(self) -> str:
        return f"{self.stage_index}{self.computation_type}{self.microbatch_index}"


PipelineOrder = dict[int, list[Action]]


def fill_drain(ranks: int, microbatches: int) -> PipelineOrder:
    """GPipe: all forwards, then all backwards."""
    numbers = range(microbatches)
    return {
        rank: [Action(rank, FORWARD, m) for m in numbers] + [Action(rank, BACKWARD, m) for m in numbers]
        for rank in range(ranks)
    }


def one_forward_one_backward(ranks: int, microbatches: int) -> PipelineOrder:
    """1F1B: as many forwards as there are later stages, then alternating backwards and forwards, then the remaining
    backwards.
    """
    made: PipelineOrder = {}
    for rank in range(ranks):
        ahead = min(microbatches, ranks - rank)
        made[rank] = [Action(rank, FORWARD, m) for m in range(ahead)]
        for m in range(microbatches):
            made[rank].append(Action(rank, BACKWARD, m))
            if ahead + m < microbatches:
                made[rank].append(Action(rank, FORWARD, ahead + m))
    return made


def looped_breadth_first(ranks: int, each: int, microbatches: int) -> PipelineOrder:
    """Lamy-Poirier, "Breadth-First Pipeline Parallelism" (2022): a stage runs all microbatches before the rank's next
    stage; backwards in the reverse order.
    """
    made: PipelineOrder = {}
    for rank in range(ranks):
        forwards = [(rank + turn * ranks, m) for turn in range(each) for m in range(microbatches)]
        made[rank] = [Action(stage, FORWARD, m) for stage, m in forwards]
        made[rank] += [Action(stage, BACKWARD, m) for stage, m in reversed(forwards)]
    return made


def microbatches_per_round(ranks: int, microbatches: int, name: str) -> int:
    """Return the microbatches that a stage runs before the rank's next stage. ValueError if rounds differ in length."""
    rounds = max(1, microbatches // ranks)
    if microbatches % rounds:
        raise ValueError(
            f"{name} requires the number of microbatches to be a multiple of the number of rounds ({rounds}), but got "
            f"{microbatches}."
        )
    return microbatches // rounds


def interleaved_one_forward_one_backward(
    ranks: int, each: int, microbatches: int, halves: bool = False
) -> PipelineOrder:
    """Interleaved 1F1B: Narayanan and others, "Efficient Large-Scale Language Model Training on GPU Clusters" (2021),
    section 2.2.

    With `halves` as in Qi and others, "Zero Bubble Pipeline Parallelism" (2023), section 2.1: fewer forwards run ahead,
    as the inputs' gradients come sooner, and a rank defers as many weight gradients as there are ranks before it, to
    fill its idle time.
    """
    length = microbatches_per_round(ranks, microbatches, "Zero bubble" if halves else "Interleaved 1F1B")
    total = each * microbatches

    def action_at(number: int, rank: int, backward: bool) -> tuple[int, int]:
        cycle, rest = divmod(number, length * each)
        turn, m = divmod(rest, length)
        turn = each - 1 - turn if backward else turn
        return rank + turn * ranks, cycle * length + m

    order: PipelineOrder = {}
    for rank in range(ranks):
        ahead = min(total, (each - 1) * length + (1 if halves else 2) * (ranks - 1 - rank))
        actions = order[rank] = []
        owed: list[tuple[int, int]] = []
        for number in range(ahead):
            stage, m = action_at(number, rank, False)
            actions.append(Action(stage, FORWARD, m))
        for number in range(total):
            if ahead + number < total:
                stage, m = action_at(ahead + number, rank, False)
                actions.append(Action(stage, FORWARD, m))
            stage, m = action_at(number, rank, True)
            actions.append(Action(stage, INPUTS if halves else BACKWARD, m))
            if halves:
                owed.append((stage, m))
                if len(owed) > rank or ahead + number >= total:
                    stage, m = owed.pop(0)
                    actions.append(Action(stage, WEIGHTS, m))
        actions += [Action(stage, WEIGHTS, m) for stage, m in owed]
    return order


def zero_bubble_v(ranks: int, microbatches: int) -> PipelineOrder:
    """ZB-V of Qi and others (2023), section 6: each rank has one stage of each half of the model, in a V.

    The first rank has the last stage, whose backward follows its forward immediately.
    """
    count = max(microbatches, 2 * ranks - 1)  # an order for too few microbatches is a longer one with gaps
    return {
        rank: [action for action in _v_shaped_order(ranks, rank, count) if action.microbatch_index < microbatches]
        for rank in range(ranks)
    }


def _v_shaped_order(ranks: int, rank: int, count: int) -> Iterator[Action]:
    stages = rank, 2 * ranks - 1 - rank
    done = {(kind, way): 0 for kind in (FORWARD, INPUTS, WEIGHTS) for way in (0, 1)}

    def next_action_of(kinds: str, way: int) -> Iterator[Action]:
        for kind in kinds:
            yield Action(stages[way], kind, done[kind, way])
            done[kind, way] += 1

    for _ in range(2 * (ranks - rank) - 1):
        yield from next_action_of("F", 0)
    for _ in range(rank):
        yield from next_action_of("F", 1)
        yield from next_action_of("F", 0)
    for _ in range(ranks - rank):
        yield from next_action_of("FIW", 1)
    while done[FORWARD, 1] < done[FORWARD, 0] or done[FORWARD, 0] < count:
        if done[FORWARD, 0] < count:
            yield from next_action_of("F", 0)
        yield from next_action_of("IW", 0)
        yield from next_action_of("FIW", 1)
    for _ in range(rank):
        yield from next_action_of("I", 0)
        yield from next_action_of("I", 1)
    for _ in range(ranks - rank):
        yield from next_action_of("IW", 0)
    for way in (1, 0):
        while done[WEIGHTS, way] < done[INPUTS, way]:
            yield from next_action_of("W", way)


def required_action(action: Action, last: int) -> Action | None:
    """Return the action of another stage whose results an action needs."""
    stage, kind, m = action
    if kind == FORWARD and stage > 0:
        return Action(stage - 1, FORWARD, m)
    if kind in (BACKWARD, INPUTS) and stage < last:
        return Action(stage + 1, BACKWARD, m)
    return None


def provided_action(action: Action) -> Action:
    """Return an action as its consumers name it: both kinds of backward provide gradients."""
    return action._replace(computation_type=BACKWARD) if action.computation_type == INPUTS else action


def messages_between_ranks(order: PipelineOrder, rank_of: dict[int, int]) -> dict[tuple[int, int], list[Action]]:
    """Return, by sender and receiver, the actions whose results are sent, in the sender's order."""
    last = max(rank_of)
    found: dict[tuple[int, int], list[Action]] = {}
    for rank, actions in order.items():
        for action in map(provided_action, actions):
            stage, kind, _ = action
            target = {FORWARD: stage + 1, BACKWARD: stage - 1}.get(kind, -1)
            if 0 <= target <= last and rank_of[target] != rank:
                found.setdefault((rank, rank_of[target]), []).append(action)
    return found
