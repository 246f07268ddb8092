"""The server: Streamlit on the app, and what the pages are made with imported before the first visitor comes.

Run by its path, as `tfcompare serve` does; the arguments are those of `streamlit`. `streamlit run app.py` serves the
same, with a first page that takes a second or two longer.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from threading import Thread

_ALSO = ("pyarrow.parquet", "scipy.special")
"""What is imported when it is first needed, which is soon."""


def import_all() -> None:
    """Import what all pages need. What cannot be imported is reported by the page that needs it."""
    import tfcompare.ui

    pages = (module.name for module in walk_packages(tfcompare.ui.__path__, "tfcompare.ui."))
    for name in (*(page for page in pages if not page.endswith(".server")), *_ALSO):
        with suppress(Exception):
            import_module(name)


def load_all() -> None:
    """Import what all pages need, and load what reads profiles: it is compiled if this is the first time."""
    import_all()
    with suppress(Exception):
        from tfcompare.frames import load_loops

        load_loops()


def main() -> None:
    """Become the server."""
    sys.path.append(str(Path(__file__).parents[3]))  # a checkout that is not installed
    Thread(target=load_all, name="tfcompare-imports", daemon=True).start()
    from streamlit.web.cli import main as streamlit

    streamlit(prog_name="streamlit")


if __name__ == "__main__":
    main()
