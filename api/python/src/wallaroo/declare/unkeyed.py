"""Gives keys to messages that reach a state step without a key, as releases of Wallaroo 0.6 did."""

import uuid
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from wallaroo.declare.pipeline import Merge, Pipeline, PipelineNode

REFUSE, ONE_KEY, RANDOM_KEY = "refuse", "one key", "random key"
CHOICES = (REFUSE, ONE_KEY, RANDOM_KEY)


class RandomKey:
    """Gives each message a random key that no other message has.

    Example:
        >>> RandomKey().extract_key("a") != RandomKey().extract_key("a")
        True

    Source: Wallaroo 0.6.1.
    """

    def name(self) -> str:
        """Return the name of the step."""
        return RANDOM_KEY

    def extract_key(self, data: Any) -> bytes:
        """Return a new random key for any message."""
        return uuid.uuid4().bytes


def with_keys(pipeline: Pipeline, keyless: Mapping[PipelineNode, Collection[PipelineNode]], choice: str) -> Pipeline:
    """Return a copy of a pipeline in which messages without keys get a key before they reach a state step.

    Args:
        pipeline: The pipeline as it was declared.
        keyless: For each state step the inputs whose messages have no key.
        choice: `ONE_KEY` or `RANDOM_KEY`.
    """
    copies: dict[PipelineNode, PipelineNode] = {}

    def keyed(node: PipelineNode) -> PipelineNode:
        inputs = [again(each) for each in node.inputs if each in keyless[node]]
        method, value = ("collect", None) if choice == ONE_KEY else ("key_by", RandomKey())
        # The number puts the inserted step right before the step that needs keys.
        return PipelineNode(node.number - 0.5, method, "steps", value, None, node.location, tuple(inputs))

    def again(node: PipelineNode) -> PipelineNode:
        if node not in copies:
            inputs = [again(each) for each in node.inputs if each not in keyless.get(node, ())]
            if node in keyless:
                inputs.append(keyed(node))
            copies[node] = replace(node, inputs=tuple(inputs))
        return copies[node]

    ends, merges, misplaced = pipeline.parts
    again_all = [Merge(each.location, tuple(map(again, each.left)), tuple(map(again, each.right))) for each in merges]
    return Pipeline(tuple(map(again, ends)), tuple(again_all), misplaced)
