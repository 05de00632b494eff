"""Asks for every capability within a time limit. What there was no time for is UNKNOWN, and says so."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from policysweep.errors import ModelServerRejected, PolicysweepError
from policysweep.probe import flags
from policysweep.probe.capabilities import ALL, ALONE, CHAT, SERVED, TOGETHER
from policysweep.probe.finding import Capability, Finding, Verdict, no, unknown
from policysweep.probe.ramp import Ramp, climb
from policysweep.probe.server import ModelServer

_CHECK_SECONDS = 30.0
_CHAT_SECONDS = 60.0
"""For the first call, which may have to wait for what the server did before."""
_AT_ONCE = 4
"""Checks that are asked at once of a server that writes at least `_FAST` tokens a second to one client."""
_FAST = 20.0
_ANSWER_SECONDS = 10.0
_ANSWER_TOKENS = (64, 1024)
"""An answer may take what the model writes in `_ANSWER_SECONDS`, within these limits: one that thinks first
wants hundreds of tokens, and a slow one has not the time for them.
"""
_MESSAGE_LIMIT = 240

Tell = Callable[[Capability, Finding], None]
"""Is told of each finding as it comes."""


@dataclass(slots=True)
class ProbeResult:
    """What was found out about a model. `ramp` is None when it was left out or nothing could be asked."""

    url: str
    model: str = ""
    rehearsal: bool = False
    findings: dict[str, Finding] = field(default_factory=dict)
    """By the capability's name, every capability in it."""
    ramp: Ramp | None = None
    seconds: float = 0.0

    def verdict(self, capability: Capability) -> Verdict:
        """The verdict on a capability."""
        return self.findings[capability.name].verdict


class Prober:
    """Probes `server` for `seconds` at most. Without `measures` repeatability and ramp are left out."""

    def __init__(self, server: ModelServer, seconds: float, *, measures: bool, tell: Tell) -> None:
        self._server = server
        self._measures = measures
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._ends = self._began + seconds
        self._result = ProbeResult(server.url)

    async def run(self) -> ProbeResult:
        """Ask for everything. Does not raise for what the server does."""
        result = self._result
        if await self._usable(SERVED) and await self._usable(CHAT):
            speed = tokens_per_second(result.findings[CHAT.name])
            self._server.answer_tokens = answer_tokens(speed)
            await self._find_together(_AT_ONCE if speed >= _FAST else 1)
            for capability in ALONE if self._measures else ALONE[:1]:
                await self._find(capability)
            if self._measures:
                result.ramp = await climb(self._server, self._ends)
        result.findings = self._completed(result.findings)
        result.model, result.rehearsal = self._server.model, self._server.rehearsal
        result.seconds = self._loop.time() - self._began
        return result

    async def _usable(self, capability: Capability) -> bool:
        return (await self._find(capability)).verdict.suffices(Verdict.PARTLY)

    async def _find_together(self, at_once: int) -> None:
        """Ask so many at once, and tell in the order of the table.

        A slow server would answer none of many in time; of one after the other it answers the first ones.
        """
        places = asyncio.Semaphore(at_once)

        async def asked(capability: Capability) -> Finding:
            async with places:
                return await self._asked(capability)

        tasks = [(capability, asyncio.create_task(asked(capability))) for capability in TOGETHER]
        for capability, task in tasks:
            self._found(capability, await task)

    async def _find(self, capability: Capability) -> Finding:
        return self._found(capability, await self._asked(capability))

    def _found(self, capability: Capability, finding: Finding) -> Finding:
        finding = self._with_remedy(capability, finding)
        self._result.findings[capability.name] = finding
        self._tell(capability, finding)
        return finding

    async def _asked(self, capability: Capability) -> Finding:
        began = self._loop.time()
        if began >= self._ends:
            return unknown("the time limit was reached before")
        ends = min(self._ends, began + (_CHAT_SECONDS if capability is CHAT else _CHECK_SECONDS))
        try:
            async with asyncio.timeout_at(ends):
                return await capability.check(self._server)
        except TimeoutError:
            return unknown(f"no answer within {self._loop.time() - began:.0f} s")
        except ModelServerRejected as error:
            said = self._short(error)
            return no(said, flags.TOOL_CALLING if flags.tool_calling_refused(said) else "")
        except PolicysweepError as error:
            return unknown(self._short(error))

    def _short(self, error: PolicysweepError) -> str:
        text = self._server.concealed(str(error)).replace(f"model server {self._server.url}", "the server")
        return text if len(text) <= _MESSAGE_LIMIT else f"{text[:_MESSAGE_LIMIT]}..."

    def _with_remedy(self, capability: Capability, finding: Finding) -> Finding:
        """The capability's remedy, where the finding has none and wants one."""
        if finding.mend or finding.verdict in (Verdict.YES, Verdict.UNKNOWN):
            return finding
        return Finding(finding.verdict, finding.detail, capability.mend, finding.data)

    def _completed(self, found: Mapping[str, Finding]) -> dict[str, Finding]:
        """All capabilities in their order; those that were not asked for say why."""
        why = "left out" if CHAT.name in found and len(found) > 2 else "not asked: the model does not answer"
        return {each.name: found.get(each.name) or unknown(why) for each in ALL}


def tokens_per_second(chat: Finding) -> float:
    """How fast the chat was; infinite where the server does not count tokens."""
    tokens, seconds = chat.data.get("tokens"), chat.data.get("seconds")
    if not isinstance(tokens, int) or not isinstance(seconds, float) or not tokens:
        return math.inf
    return tokens / max(seconds, 1e-3)


def answer_tokens(speed: float) -> int:
    """What an answer may take of a model that writes `speed` tokens a second."""
    least, most = _ANSWER_TOKENS
    return int(max(least, min(most, speed * _ANSWER_SECONDS)))
