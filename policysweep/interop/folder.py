"""The folder of an export: there in full, or not at all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from policysweep.errors import InputError


@contextmanager
def output_folder(output: Path, *, force: bool) -> Iterator[Path]:
    """A folder beside `output` to write into; it takes the place of `output` once all went well.

    An `output` that is not empty is refused with InputError, unless `force` is given: then files of the same
    names are replaced, and others stay. InputError also when nothing can be written there.
    """
    if output.exists() and not output.is_dir():
        raise InputError(f"{output} is a file: name a folder")
    try:
        if output.is_dir() and any(output.iterdir()) and not force:
            raise InputError(
                f"{output} is not empty: name another folder, or give --force to replace files in it"
            )
        place = output.resolve()
        place.parent.mkdir(parents=True, exist_ok=True)
        aside = place.with_name(f".{place.name}.{secrets.token_hex(4)}.tmp")
        aside.mkdir()
        try:
            yield aside
            _move(aside, place)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise InputError(f"cannot write {output}: {error.strerror or error}") from error


def _move(aside: Path, place: Path) -> None:
    if not place.exists() or not any(place.iterdir()):
        aside.rename(place)
        return
    for file in sorted(path for path in aside.rglob("*") if path.is_file()):
        target = place / file.relative_to(aside)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)
