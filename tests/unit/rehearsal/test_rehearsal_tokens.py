from __future__ import annotations

from policysweep.models.rehearsal import tokens
from policysweep.models.rehearsal.draft import Draft, ToolUse

from .support import assistant, system, tool, user

LONG = "x" * 3000


def pieces(*messages: dict[str, object], tools: list[dict[str, object]] | None = None) -> list[str]:
    return list(tokens.prompt_pieces(list(messages), tools or []))


def test_four_characters_are_a_token() -> None:
    assert [tokens.count(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]
    assert tokens.count_draft(Draft()) == 1
    assert tokens.count_draft(Draft("abcd", (ToolUse("name", "{}"),))) == 3


def test_long_messages_are_cut_and_tools_come_first() -> None:
    cut = pieces(system(LONG), user("hi"), tools=[tool("first")])
    assert "first" in cut[0]
    assert [len(piece) for piece in cut[1:4]] == [1024, 1024, 3000 + len("system\n") - 2048]
    assert cut[4] == "user\nhi"


def test_tool_calls_are_part_of_the_prompt() -> None:
    call = assistant(Draft(tool_uses=(ToolUse("lookup", '{"a":1}'),)))
    assert "lookup" in pieces(call)[0]


def test_a_repeated_prefix_is_cached_and_the_last_piece_never() -> None:
    cache = tokens.PrefixCache(100_000)
    first = pieces(system(LONG), user("one"))
    assert cache.measure(first).cached == 0
    again = cache.measure(first)
    assert again.cached == again.prompt - tokens.count(first[-1])
    longer = cache.measure([*first, "assistant\nyes"])
    assert longer.cached == again.prompt


def test_a_change_at_the_front_misses_everything_behind_it() -> None:
    cache = tokens.PrefixCache(100_000)
    cache.measure(pieces(system("a"), user(LONG)))
    assert cache.measure(pieces(system("b"), user(LONG))).cached == 0


def test_the_least_recently_used_goes_first() -> None:
    cache = tokens.PrefixCache(capacity=tokens.count("system\n") + 2 * 256 + 60)
    one, two = pieces(system("1" * 1000), user("?")), pieces(system("2" * 1000), user("?"))
    cache.measure(one)
    cache.measure(two)
    cache.measure(one)
    cache.measure(pieces(system("3" * 1000), user("?")))
    assert cache.measure(one).cached > 0
    assert cache.measure(two).cached == 0


def test_identifiers_are_stable_and_as_many_as_counted() -> None:
    text = "The quick brown fox"
    assert tokens.identifiers(text) == tokens.identifiers(text)
    assert len(tokens.identifiers(text)) == tokens.count(text)
