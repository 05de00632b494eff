"""The kinds of fields that a sweep file has: what a name, an address or a number may be.

Each check returns the value unchanged or raises ValueError, which pydantic turns into a problem of the field.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt

from policysweep.v1 import judge_pb2

INT32_MAX = 2**31 - 1


class Part(BaseModel):
    """Settings that are frozen and refuse fields that they do not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def run_name(name: str) -> str:
    """The name of a run, unchanged; ValueError for what cannot name a folder and a Kubernetes object."""
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name):
        raise ValueError(f"must be 1 to 63 of a-z, 0-9 and - (not at the ends), not {name!r}")
    return name


def agent_name(name: str) -> str:
    """The name of an agent, unchanged; ValueError for what cannot name a file, a label or a folder."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", name):
        raise ValueError(f"must be 1 to 63 of A-Z, a-z, 0-9 and . _ - (not first), not {name!r}")
    return name


def target(target: str) -> str:
    """A gRPC target."""
    if "://" in target and not target.startswith(("dns://", "xds://")):
        raise ValueError("must be a gRPC target such as dns:///agent-qwen:50052, without http://")
    if not re.fullmatch(r"(unix:|xds:///)\S+|\S+:\d{1,5}", target):
        raise ValueError(f"must be a gRPC target with a port, such as dns:///agent:50052, not {target!r}")
    return target


def bank_store(store: str) -> str:
    """Where a bank service keeps what outlives it: a directory, or the URL of a Qdrant server."""
    if store == "memory":
        raise ValueError("must outlive the bank service, or a run that stops could not be resumed")
    if not store or ("://" in store and not store.startswith(("http://", "https://"))):
        raise ValueError("must be a directory, or the URL of a Qdrant server such as http://qdrant:6333")
    return store


def model_url(url: str) -> str:
    """The base URL of an OpenAI-compatible server, without credentials."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be the base URL of an OpenAI-compatible server, such as http://vllm:8000/v1")
    if parts.username or parts.password or parts.query:
        raise ValueError("must hold no credentials: name an environment variable in api_key_env instead")
    return url


def rubric_name(rubric: str) -> str:
    """NAME@VERSION."""
    parse_rubric(rubric)
    return rubric


def parse_rubric(text: str) -> judge_pb2.RubricRef:
    """Read NAME@VERSION; ValueError when it is not that."""
    name, at, version = text.partition("@")
    if not (name and at and version.isdecimal() and int(version) > 0):
        raise ValueError(f"must be NAME@VERSION, such as drip-r@1, not {text!r}")
    return judge_pb2.RubricRef(name=name, version=int(version))


def variable(name: str) -> str:
    """The name of an environment variable."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError("must be the name of an environment variable, not the key itself")
    return name


def distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of which none occurs twice."""
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"must not repeat {', '.join(twice)}")
    return names


RunName = Annotated[str, AfterValidator(run_name)]
AgentName = Annotated[str, AfterValidator(agent_name)]
RubricName = Annotated[str, AfterValidator(rubric_name)]
ModelUrl = Annotated[str, AfterValidator(model_url)]
Variable = Annotated[str, AfterValidator(variable)]
Target = Annotated[str, AfterValidator(target)]
BankStore = Annotated[str, AfterValidator(bank_store)]
Count = Annotated[StrictInt, Field(ge=1, le=INT32_MAX)]
Seconds = Annotated[float, Field(gt=0, strict=True)]
Names = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(distinct)]
Targets = Annotated[tuple[Target, ...], Field(min_length=1), AfterValidator(distinct)]
PersonaName = Literal["DIRECT", "FAIR", "AGREEABLE", "HELPFUL", "VERY_HELPFUL"]
