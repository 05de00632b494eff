"""Configuration of a service: one frozen model, read once at start.

Each field has one name everywhere: the flag `--model-url`, the environment variable
`POLICYSWEEP_<SERVICE>_MODEL_URL` and the key `model_url` of the YAML file that `--config` names. Flags win
over the environment, the environment over the file.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml
from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    CliSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from policysweep.errors import InputError
from policysweep.rpc.tls import Credentials, tls_files

Config = TypeVar("Config", bound="ServiceConfig")


class ServiceConfig(BaseSettings):
    """What every service can be told."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid")

    listen: str = Field("127.0.0.1:0", description="HOST:PORT to serve gRPC on; port 0 takes a free one.")
    metrics_listen: str = Field("", description="HOST:PORT to serve metrics on; empty serves none.")
    tls_cert: str = Field(
        "", description="File with the certificate of this service, in PEM form; empty for no TLS."
    )
    tls_key: str = Field("", description="File with the key of that certificate.")
    tls_ca: str = Field(
        "", description="File with the authorities that the certificates of clients and servers must be of."
    )
    health_listen: str = Field(
        "",
        description="HOST:PORT to serve gRPC health on without TLS, for probes that can show no certificate; "
        "empty serves it on `listen` alone.",
    )
    drain_seconds: float = Field(
        30.0, ge=0, description="How long calls in flight may take to finish after SIGTERM, in seconds."
    )
    max_connection_age_seconds: float = Field(
        300.0, gt=0, description="Age at which client connections are renewed, in seconds."
    )
    log_level: str = Field("info", description="debug, info, warning or error.")
    stop_on_stdin_eof: bool = Field(
        False, description="Stop when standard input ends, so that a child ends with its parent."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment first, then what was given to the constructor: the YAML file's content."""
        return env_settings, init_settings

    def credentials(self) -> Credentials | None:
        """What the service shows on every connection; None without TLS. InputError for unusable files."""
        files = tls_files(self.tls_cert, self.tls_key, self.tls_ca)
        return Credentials(files) if files else None


class ModelEndpoint(BaseSettings):
    """Where a model is served and how it is sampled. Mixed into the config of a service that calls one."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid")

    model_url: str = Field(
        ..., description="Base URL of the OpenAI-compatible server, for example http://host:8000/v1."
    )
    model: str = Field(..., description="Name under which the server serves the model.")
    api_key_env: str = Field(
        "", description="Name of the environment variable that holds the server's API key; empty for none."
    )
    temperature: float = Field(0.0, ge=0, le=2, description="Sampling temperature; 0 is greedy.")
    top_p: float = Field(1.0, gt=0, le=1, description="Nucleus mass; 1 is off.")
    max_tokens: int = Field(1024, ge=1, description="Limit on the tokens of one answer.")
    context_tokens: int = Field(
        0,
        ge=0,
        description="Context of the model in tokens, prompt and answer together, for a server that does not "
        "report it as max_model_len; 0 for none.",
    )
    model_timeout_seconds: float = Field(
        120.0, gt=0, description="Limit on one model call, in seconds; the caller's deadline may be shorter."
    )

    def api_key(self) -> str | None:
        """The API key from the environment; InputError when the named variable is not set."""
        return key_from("api_key_env", self.api_key_env)


def key_from(field: str, variable: str) -> str | None:
    """The key that the environment variable holds which a setting names; None when it names none.

    Raises InputError when there is no such variable. The message quotes nothing that may be the key itself.
    """
    if not variable:
        return None
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", variable):
        raise InputError(f"{field} must be the name of an environment variable, not the key itself")
    key = os.environ.get(variable)
    if not key:
        raise InputError(f"{field} names {variable}, which is not set in the environment")
    return key


def load_config(cls: type[Config], service: str, argv: Sequence[str] | None = None) -> Config:
    """Read a service's configuration from flags, environment and file.

    Raises InputError that names the field for a value that does not fit; a flag that does not exist ends
    the process with exit code 2 and the list of flags.
    """
    path, flags = _take_config_flag(sys.argv[1:] if argv is None else argv)
    content = read_mapping(path) if path else {}
    bases: tuple[type, ...] = (cls,)
    # The names depend on the service, and a settings class carries its own.
    named: Any = type(cls.__name__, bases, {"model_config": _naming(service), "__doc__": cls.__doc__})
    cli: CliSettingsSource[Any] = CliSettingsSource(named, cli_parse_args=list(flags))
    try:
        return cast(Config, named(_cli_settings_source=cli, **content))
    except ValidationError as error:
        raise InputError("; ".join(_problem(detail) for detail in error.errors())) from None


def _naming(service: str) -> SettingsConfigDict:
    return SettingsConfigDict(
        env_prefix=f"POLICYSWEEP_{service.upper()}_",
        cli_prog_name=f"python -m services.{service}",
        cli_kebab_case=True,
        cli_implicit_flags=True,
        cli_hide_none_type=True,
        cli_enforce_required=False,
    )


def _take_config_flag(argv: Sequence[str]) -> tuple[Path | None, Sequence[str]]:
    if "--config" not in argv:
        return None, argv
    at = argv.index("--config")
    if at + 1 == len(argv):
        raise InputError("--config needs a file")
    return Path(argv[at + 1]), [*argv[:at], *argv[at + 2 :]]


def read_mapping(path: Path) -> Mapping[str, Any]:
    """The content of a YAML file that holds one mapping."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: must hold a mapping of settings")
    return content


def _problem(detail: Any) -> str:
    flag = "--" + ".".join(str(part) for part in detail["loc"]).replace("_", "-")
    if detail["type"] == "missing":
        return f"{flag} is missing"
    if detail["type"] == "extra_forbidden":
        return f"{flag} is not a setting of this service"
    return f"{flag}: {detail['msg']} (got {detail['input']!r})"
