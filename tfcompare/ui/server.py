"""The server: Streamlit on the app, and what the pages are made with imported before the first visitor comes.

Run by its path, as `tfcompare serve` does; the arguments are those of `streamlit`. `streamlit run app.py` serves the
same, with a first page that takes a second or two longer.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from threading import Thread

_ALSO = ("pyarrow.parquet", "scipy.special")
"""What is imported when it is first needed, which is soon."""


def import_all() -> None:
    """Import what all pages need. What cannot be imported is told by the page that needs it."""
    ui = Path(__file__).parent
    for name in (
        *(f"tfcompare.ui.{module.name}" for module in iter_modules([str(ui)]) if module.name != "server"),
        *_ALSO,
    ):
        try:
            import_module(name)
        except Exception:
            continue


def prepare() -> None:
    """Import, and let the garbage collector look at none of it again.

    Streamlit has it look at everything after each run of a page, and everything waits for it meanwhile.
    """
    gc.disable()
    try:
        import_all()
    finally:
        gc.freeze()
        gc.enable()


def main() -> None:
    """Become the server."""
    sys.path.append(str(Path(__file__).parents[2]))  # a checkout that is not installed
    Thread(target=prepare, name="tfcompare-imports", daemon=True).start()
    from streamlit.web.cli import main as streamlit

    streamlit(prog_name="streamlit")


if __name__ == "__main__":
    main()
