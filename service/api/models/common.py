"""What the shapes of the API have in common."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

LARGEST_NODE_ID = 2**31 - 1


class Given(BaseModel):
    """What a caller sends; a name that is not known is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Shown(BaseModel):
    """What a caller is shown; it can be read from the value of the same fields."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


def refuse_nul(text: str) -> str:
    """Return a text that PostgreSQL can hold."""
    if "\x00" in text:
        raise ValueError("has a NUL byte in it")
    return text


def refuse_blank(text: str) -> str:
    """Return a text that has something in it."""
    if not text.strip():
        raise ValueError("is empty")
    return text


Text = Annotated[str, AfterValidator(refuse_nul)]
Question = Annotated[
    str,
    Field(
        min_length=1,
        max_length=4000,
        pattern=r"\S",
        description="What to look for, in words.",
        examples=["How is BM25 computed?"],
    ),
    AfterValidator(refuse_nul),
    AfterValidator(refuse_blank),
]
Name = Annotated[Text, Field(min_length=1, max_length=500)]
DatasetName = Annotated[
    Name, Field(description="The dataset within the tenant.", examples=["docs"])
]
NodeTypes = Annotated[
    list[Name],
    Field(min_length=1, max_length=20, description="Types of nodes to keep; all if left out."),
]
NodeId = Annotated[int, Field(ge=1, le=LARGEST_NODE_ID, examples=[42])]
Share = Annotated[float, Field(ge=0, le=1)]
Metadata = Annotated[
    dict[str, Any], Field(description="Keys and values that a node's metadata must have.")
]
Cursor = Annotated[
    str | None,
    Field(description="Where the next page starts; null on the last page.", examples=[None]),
]


class Timing(Shown):
    """How long a step took."""

    step: str = Field(examples=["search"])
    milliseconds: float = Field(examples=[3.2])
