"""Model calls: the `ChatModel` protocol, its OpenAI-compatible client and the rehearsal model server."""
