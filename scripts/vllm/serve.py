"""Serves a test model with vLLM on the CPU, at http://127.0.0.1:PORT/v1, under the name of the model.

    python -m scripts.vllm.serve tiny --port 8723                    until it is stopped
    python -m scripts.vllm.serve smollm --port 8723 -- COMMAND...    while COMMAND runs, with its exit code

The server of a command writes to --log.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.vllm.build import OFFLINE, BuildError, Built, build

START_SECONDS = 1200
"""How long a server may take to answer: half a minute on a quiet machine, many on a busy one."""

ENVIRONMENT = {
    **OFFLINE,
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    # Threads that spin while they wait for one another starve each other on a machine that is busy.
    "KMP_BLOCKTIME": "0",
}


class Served(NamedTuple):
    """How a model is served: its context in tokens, and the threads that compute it."""

    context: int
    threads: int


MODELS = {"tiny": Served(32_768, threads=1), "smollm": Served(16_384, threads=2)}
"""The models by name."""


class ServeError(Exception):
    """Why nothing is served."""


def command(built: Built, model: str, port: int, context: int | None = None) -> list[str]:
    """The vLLM server for `model`. vLLM's own command looks for a package of another name and would fail."""
    length = str(context or MODELS[model].context)
    return [
        *(str(built.python), "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(built.models / model), "--served-model-name", model),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--max-model-len", length, "--dtype", "bfloat16", "--enforce-eager"),
        # Of a prompt in chunks that is sampled with a seed, the engine for CPUs dies.
        *("--no-enable-chunked-prefill", "--max-num-batched-tokens", length),
        *("--enable-prefix-caching", "--enable-prompt-tokens-details"),
        *("--enable-auto-tool-choice", "--tool-call-parser", "hermes"),
        # A model that may write spaces between the parts of JSON can write them for ever.
        *("--structured-outputs-config", '{"backend":"xgrammar","disable_any_whitespace":true}'),
    ]


def environment(model: str) -> dict[str, str]:
    """The environment of a server for `model`."""
    return {**os.environ, **ENVIRONMENT, "OMP_NUM_THREADS": str(MODELS[model].threads)}


_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """In the child, before vLLM: no server outlives tests that were killed."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Server:
    """A vLLM server as a child process, with its log in a file."""

    def __init__(self, model: str, port: int, log: Path, context: int | None = None) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self.root = f"http://127.0.0.1:{port}"
        self.log = log
        self._environment = environment(model)
        self._command = command(build(), model, port, context)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers. Raises ServeError when it ends before, or takes too long."""
        with self.log.open("ab") as log:
            # In a session of its own: the engine is a process of its own, and both have to be stopped.
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            if (code := self._process.poll()) is not None:
                raise ServeError(f"vLLM ended with code {code} at start, see {self.log}")
            if time.monotonic() > deadline:
                self.kill()
                raise ServeError(f"vLLM did not answer within {START_SECONDS} s, see {self.log}")
            time.sleep(0.2)

    def answers(self) -> bool:
        """Whether its health check passes."""
        try:
            with urllib.request.urlopen(f"{self.root}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self) -> None:
        """Stop it in order, or by force when it takes longer than 30 seconds."""
        self._signal(signal.SIGTERM)
        try:
            if self._process is not None:
                self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            pass
        self.kill()

    def kill(self) -> None:
        """Kill it with all its processes, as a lost machine would."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return


def main(argv: Sequence[str]) -> int:
    """Serve, alone or around a command; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path, default=Path("build/vllm.log"), help="where the server writes")
    parser.add_argument("--context", type=int, help="tokens of the context, less than the model's own")
    end = argv.index("--") if "--" in argv else len(argv)
    args, around = parser.parse_args(argv[:end]), argv[end + 1 :]
    if not around:
        served = command(build(), args.model, args.port, args.context)
        os.execve(served[0], served, environment(args.model))
    args.log.parent.mkdir(parents=True, exist_ok=True)
    server = Server(args.model, args.port, args.log, args.context)
    try:
        server.start()
        return subprocess.run(around).returncode
    finally:
        server.stop()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (BuildError, ServeError) as error:
        sys.exit(f"error: {error}")
