"""What the policybank service can be told."""

from __future__ import annotations

from pydantic import Field

from policysweep.config import ModelEndpoint, ServiceConfig, key_from


class PolicyBankConfig(ServiceConfig, ModelEndpoint):
    """Keeps banks of policy entries.

    The model settings are those of the curator, the model that writes entries.
    """

    # A few entries with five sections each.
    max_tokens: int = Field(6_000, ge=1, description="Limit on the tokens of one answer.")
    curator_attempts: int = Field(
        3, ge=1, le=10, description="Answers asked for until one can be used, the first included."
    )
    store: str = Field(
        ...,
        min_length=1,
        description="Where banks are kept: a directory, the URL of a Qdrant server such as "
        "http://qdrant:6333, or `memory` to keep them as long as the process runs.",
    )
    store_grpc_port: int = Field(6334, ge=1, le=65535, description="gRPC port of the Qdrant server.")
    store_api_key_env: str = Field(
        "", description="Name of the environment variable that holds the Qdrant server's API key."
    )
    collection_prefix: str = Field(
        "policysweep",
        pattern="^[A-Za-z0-9_-]{1,64}$",
        description="Begins the names of the Qdrant collections.",
    )
    cached_banks: int = Field(512, ge=1, description="Banks whose history is kept in memory.")
    embedder_url: str = Field(
        "",
        description="Base URL of an OpenAI-compatible server with /embeddings, for example "
        "http://host:8000/v1; empty for the offline model.",
    )
    embedder_model: str = Field("", description="Name under which that server serves the embedding model.")
    embedder_dimension: int = Field(0, ge=0, description="Numbers in a vector of that model.")
    embedder_api_key_env: str = Field(
        "", description="Name of the environment variable that holds that server's API key; empty for none."
    )
    cached_vectors: int = Field(4_096, ge=1, description="Texts whose vectors are kept in memory.")
    synapse_limit: int = Field(1, ge=1, description="Exemplars that Synapse recalls; 3 in the original.")
    synapse_characters: int = Field(8_000, ge=200, description="Characters of an exemplar's trajectory.")
    awm_limit: int = Field(0, ge=0, description="Past tasks whose workflows AWM recalls; 0 for all.")
    reasoning_bank_limit: int = Field(1, ge=1, description="Past tasks whose items ReasoningBank recalls.")
    reasoning_bank_items: int = Field(3, ge=1, le=10, description="Items that ReasoningBank keeps of a task.")
    policy_bank_limit: int = Field(5, ge=1, description="Entries that a recall from a PolicyBank gives.")

    def store_api_key(self) -> str | None:
        """The Qdrant server's API key; InputError when the named variable is not set."""
        return key_from("store_api_key_env", self.store_api_key_env)

    def embedder_api_key(self) -> str | None:
        """The embedding server's API key; InputError when the named variable is not set."""
        return key_from("embedder_api_key_env", self.embedder_api_key_env)
