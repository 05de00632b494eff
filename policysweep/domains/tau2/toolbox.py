"""The tools of one side of a domain: how models see them, what their arguments are, which of them write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import orjson

from policysweep.domains.tau2.arguments import Schema
from policysweep.domains.tau2.tables import DatabaseHash, copy_on_write
from policysweep.v1 import episode_pb2 as ep


class Toolbox:
    """A tau2-bench toolkit over its original database, which is never changed.

    `definitions` are the tools as a model is shown them, `schemas` their arguments by name, and `writes` the
    names of those that change the database. `requestor` is who calls, in the package's words, `tool_call` its
    class of a call.
    """

    def __init__(
        self, toolkit: Any, requestor: Literal["assistant", "user"], tool_call: Callable[..., Any]
    ) -> None:
        self._toolkit = toolkit
        self.requestor = requestor
        self.tool_call = tool_call
        functions = [tool.openai_schema["function"] for tool in toolkit.get_tools().values()]
        self.schemas: Mapping[str, Schema] = {each["name"]: each["parameters"] for each in functions}
        self.definitions = tuple(_definition(function) for function in functions)
        self.writes = frozenset(name for name in self.schemas if toolkit.tool_type(name).value == "write")
        self.hash = DatabaseHash(toolkit.db)

    def copy(self) -> Any:
        """The toolkit over a copy of the database."""
        return type(self._toolkit)(copy_on_write(self._toolkit.db))

    def data(self) -> dict[str, Any]:
        """The original database as plain data: tables by name, records by id."""
        found: dict[str, Any] = self._toolkit.db.model_dump()
        return found

    def database_schema(self) -> str:
        """JSON Schema of the database, as text: what its tables and fields are, without a record."""
        return orjson.dumps(self._toolkit.db.get_json_schema()).decode()

    def initial_hash(self) -> str:
        """SHA-256 of the original database, hex."""
        return self.hash.of(copy_on_write(self._toolkit.db))

    def fits(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Whether a call has all arguments that the tool requires and none that it does not know."""
        schema = self.schemas[name]
        return set(schema.get("required", ())) <= set(arguments) <= set(schema.get("properties", {}))


def _definition(function: Mapping[str, Any]) -> ep.ToolDefinition:
    return ep.ToolDefinition(
        name=function["name"],
        description=function["description"],
        parameters_json=orjson.dumps(function["parameters"]).decode(),
    )
