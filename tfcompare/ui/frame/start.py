"""The server: runs Streamlit on the app, and imports what the pages need before the first visitor comes.

Run as a script by `tfcompare serve`; the arguments are those of `streamlit`. `streamlit run app.py` serves the same
pages, but the first one takes a second or two longer.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from threading import Thread


def import_all() -> None:
    """Import what all pages need. Import errors are reported by the page that needs the module."""
    import tfcompare.ui

    pages = (module.name for module in walk_packages(tfcompare.ui.__path__, "tfcompare.ui."))
    for name in (*(page for page in pages if not page.endswith(".start")), "scipy.special"):
        with suppress(Exception):
            import_module(name)


def load_all() -> None:
    """Import what all pages need, and load the profile reader, which is compiled on first use."""
    with suppress(Exception):
        from tfcompare.ui.frame.loading import start_reader

        Thread(target=start_reader, name="tfcompare-reader", daemon=True).start()
    import_all()


def main() -> None:
    """Replace this process with the server."""
    sys.path.append(str(Path(__file__).parents[3]))  # for a checkout that is not installed
    Thread(target=load_all, name="tfcompare-imports", daemon=True).start()
    from streamlit.web.cli import main as streamlit

    streamlit(prog_name="streamlit")


if __name__ == "__main__":
    main()
