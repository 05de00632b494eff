from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from policysweep.report.html.embed import script_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(JSON)
def test_it_is_the_same_json_and_cannot_end_a_script(value: object) -> None:
    text = script_json(value)
    assert json.loads(text) == value
    assert not set("<>&\u2028\u2029") & set(text)


def test_no_number_is_not_a_word() -> None:
    assert script_json([float("nan"), float("inf")]) == "[null,null]"


def test_the_end_of_a_script_is_harmless() -> None:
    assert script_json("</script><!--\u2028") == r'"\u003c/script\u003e\u003c!--\u2028"'
