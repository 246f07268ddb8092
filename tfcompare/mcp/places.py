"""Which places a client may name: those below the roots that the server was started with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tfcompare.errors import TfcompareError
from tfcompare.render.report import FORMATS, Format, form_of
from tfcompare.sources.allowed_roots import Outside, is_run_inside, resolve_inside
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.logdir.files import is_profile
from tfcompare.sources.logdir.runs import find_runs


@dataclass(frozen=True)
class Places:
    """The folders, with links resolved, that contain all that is read or written. Relative paths start at the first."""

    roots: tuple[Path, ...]

    def resolve(self, place: str) -> str:
        """The path that a client names, with links resolved. Raises `Outside`."""
        return str(resolve_inside(place, self.roots))

    def as_typed(self, path: object) -> str:
        """A path as a client can name it: relative to the first root where it is below that."""
        first = self.roots[0]
        return str(path.relative_to(first)) if isinstance(path, Path) and path.is_relative_to(first) else str(path)

    def in_sentence(self, text: str) -> str:
        """A sentence with its paths as a client can name them."""
        return text.replace(f"{self.roots[0]}/", "")

    def runs_at(self, *places: str) -> list[FoundRun]:
        """The runs at and below resolved places. Raises `Outside` if a link leads out, else as `find_runs`."""
        found = find_runs(*places)
        for run in found:
            if not is_run_inside(run, self.roots):
                raise Outside(self.as_typed(run.path), self.roots)
        return found

    def new_report(self, path: str, form: str) -> tuple[Path, Format]:
        """(where a report of this form may be written, the form). Raises `TfcompareError` for a place that may not be
        written to: outside, in the folder of a profile, or where there is a file already."""
        target = Path(self.resolve(path))
        if form not in FORMATS or form_of(target) != form:
            raise TfcompareError(f"{path}: its suffix and the format {form!r} differ; a report is .html, .md or .json")
        if not target.parent.is_dir():
            raise TfcompareError(f"{path}: its folder does not exist; name a folder that does")
        if ("plugins", "profile") in zip(target.parts, target.parts[1:], strict=False) or any(
            is_profile(one.name) for one in target.parent.iterdir()
        ):
            raise TfcompareError(f"{path}: lies in the folder of a profile; write the report outside of it")
        if target.exists():
            raise TfcompareError(f"{path}: exists, and no file is overwritten; choose another name")
        return target, form_of(target)


def below(runs: Sequence[FoundRun], folder: Path) -> list[FoundRun]:
    """Those of the runs that are at or below a folder."""
    return [run for run in runs if Path(run.path).is_relative_to(folder)]
