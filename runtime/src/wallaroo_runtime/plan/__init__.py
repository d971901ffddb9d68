"""Compiles a topology to stages, without Spark."""

from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.explain import explain
from wallaroo_runtime.plan.graph import mermaid
from wallaroo_runtime.plan.plan import Node, NodeKind, Plan, Stage

__all__ = ["Node", "NodeKind", "Plan", "Stage", "compile_topology", "explain", "mermaid"]
