"""What is printed where nobody looks at a terminal: the log of a pod."""

from __future__ import annotations

import io

from rich.console import Console

from policysweep.sweep.display import Display
from policysweep.sweep.runner import Progress


def test_a_message_in_a_log_is_one_line() -> None:
    written = io.StringIO()
    display = Display(Progress(), Console(file=written, width=40))
    text = "unit 1 of strict failed: model server http://model/v1 broke off before its answer was whole"
    display.event(text)
    assert written.getvalue() == f"{text}\n"
