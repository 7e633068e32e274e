"""Nodes and links, as they are stored and read."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from service.api.models.common import Cursor, DatasetName, Given, Name, NodeId, Shown, Text
from service.api.models.search import ShownNode, ShownScores

Action = Literal["added", "changed", "unchanged"]
MOST_NODES = 1000
MOST_LINKS = 10_000
# They stand in the URL, and servers and proxies cut those off.
MOST_DELETED = 100


class GivenNode(Given):
    """A node to store; external_id is its identity within tenant and dataset."""

    external_id: Name = Field(examples=["guide.md"])
    node_type: Name = Field(examples=["article"])
    title: Text = Field("", examples=["Guide"])
    summary: Text = ""
    content: Text = Field("", examples=["Search combines keywords and vectors."])
    metadata: dict[str, Any] = Field(default_factory=dict, examples=[{}])
    parent: Name | None = Field(
        None, description="External id of the node it is a part of.", examples=[None]
    )
    section_path: Text | None = Field(None, examples=[None])
    order_index: int | None = Field(None, ge=0, le=2**31 - 1, examples=[None])
    header: Text | None = Field(None, examples=[None])
    doc_title: Text | None = Field(None, examples=[None])
    url: Text | None = Field(None, examples=[None])
    lang: Name | None = Field(None, examples=["en"])
    space_id: Name | None = Field(None, examples=[None])
    acl: list[Name] = Field(
        default_factory=list,
        max_length=100,
        description="Groups that may read it; none means all.",
        examples=[[]],
    )
    token_count: int | None = Field(None, ge=0, le=2**31 - 1, examples=[None])
    searchable: bool = True
    embedding: list[float] | None = Field(
        None,
        min_length=1,
        max_length=2000,
        description="A vector of the model named by embedder_version; else it is made here.",
        examples=[None],
    )


class GivenNodes(Given):
    """A batch of nodes: all are stored, or none."""

    nodes: list[GivenNode] = Field(min_length=1, max_length=MOST_NODES)
    dataset_name: DatasetName = "default"
    embedder_version: Name | None = Field(
        None, description="The model of the embeddings; needed where there are any."
    )

    @model_validator(mode="after")
    def _check_embeddings(self) -> GivenNodes:
        brought = [node.embedding is not None for node in self.nodes if node.searchable]
        if any(brought) and self.embedder_version is None:
            raise ValueError("embeddings need embedder_version, the model that made them")
        if self.embedder_version is not None and not all(brought):
            raise ValueError("with embedder_version every searchable node brings its embedding")
        return self


class ShownStoredNode(Shown):
    """What became of one node of a batch."""

    external_id: str = Field(examples=["guide.md"])
    node_id: int = Field(examples=[42])
    action: Action


class ShownStoredNodes(Shown):
    """What became of a batch, in its order."""

    nodes: list[ShownStoredNode]


class ShownNodes(Shown):
    """A page of nodes, by node_id."""

    nodes: list[ShownNode]
    next_cursor: Cursor = None


class ShownDeletedNode(Shown):
    """A node that is gone, by request or with its parent."""

    external_id: str
    node_id: int


class ShownDeletedNodes(Shown):
    """What is gone; ids that were not there are left out."""

    deleted: list[ShownDeletedNode]


class ShownSimilarNode(Shown):
    """A node like another one."""

    node: ShownNode
    scores: ShownScores


class ShownSimilarNodes(Shown):
    """Nodes like another one, best first."""

    hits: list[ShownSimilarNode]


class GivenLink(Given):
    """A directed link between two nodes, named by their external ids."""

    source: Name = Field(examples=["guide.md"])
    target: Name = Field(examples=["reference.md"])
    link_type: Name = "link"
    weight: float = Field(1.0, gt=0, le=1e6)
    source_dataset: Name | None = Field(None, description="If not the batch's.", examples=[None])
    target_dataset: Name | None = Field(None, description="If not the batch's.", examples=[None])


class GivenLinks(Given):
    """A batch of links: all are stored, or none."""

    links: list[GivenLink] = Field(min_length=1, max_length=MOST_LINKS)
    dataset_name: DatasetName = "default"


class ShownStoredLink(Shown):
    """What became of one link of a batch."""

    source_id: int
    target_id: int
    link_type: str
    action: Action


class ShownStoredLinks(Shown):
    """What became of a batch, in its order."""

    links: list[ShownStoredLink]


# --- the graph around some nodes ------------------------------------------------------------------


class GivenGraph(Given):
    """Nodes to look around."""

    node_ids: list[NodeId] = Field(min_length=1, max_length=50, examples=[[42]])
    max_nodes: int = Field(40, ge=1, le=200, description="Most nodes to return.")


class ShownGraphNode(Shown):
    """A node of the graph; rank is its PageRank divided by the tenant's largest."""

    node_id: int
    title: str
    header: str | None
    node_type: str
    rank: float | None
    asked: bool = Field(description="Whether it was asked for, or its section was.")


class ShownGraphLink(Shown):
    """A link of the graph."""

    source_id: int
    target_id: int
    weight: float


class ShownGraph(Shown):
    """What is linked within two steps; sections stand for their articles."""

    nodes: list[ShownGraphNode]
    links: list[ShownGraphLink]
