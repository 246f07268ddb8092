"""What is imported only when it is needed: nobody waits for what he does not use."""

from __future__ import annotations

import subprocess
import sys

import tfcompare
from tests.profiles import GPU_RUNS, SAMPLE_RUNS

HEAVY = ("duckdb", "distributed", "mcp", "numba", "numpy", "pandas", "plotly", "pyarrow", "scipy", "streamlit", "xprof")
SCIPY = ("scipy.optimize", "scipy.special", "scipy.stats")  # numba imports the bare package


def loaded(script: str, names: tuple[str, ...]) -> list[str]:
    """Which of the modules a fresh Python has after the script."""
    tell = f"import sys\nprint(sorted(set({names!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", f"{script}\n{tell}"], capture_output=True, text=True, check=True)
    return eval(done.stdout.splitlines()[-1])


def test_the_package_itself_loads_nothing_heavy() -> None:
    script = "import tfcompare, tfcompare.cli, tfcompare.pytest_plugin"
    assert loaded(script, (*HEAVY, "tensorflow", "jax")) == []


def test_the_public_names_are_completed_without_loading_anything_heavy() -> None:
    assert dir(tfcompare) == sorted(tfcompare.__all__)
    assert all(hasattr(tfcompare, name) for name in tfcompare.__all__)
    assert loaded("import tfcompare\ndir(tfcompare)", HEAVY) == []


def test_check_loads_neither_a_user_interface_nor_charts_nor_a_database() -> None:
    words = ["check", *(str(path) for path in (SAMPLE_RUNS["filters_512_128"], SAMPLE_RUNS["filters_16_8"]))]
    script = f"from tfcompare import cli\nassert cli.main({words!r}) == 0"
    assert loaded(script, ("duckdb", "plotly", "streamlit")) == []


def test_diff_loads_neither_distributions_nor_optimizers_nor_what_draws_for_a_browser() -> None:
    words = ["diff", *(str(GPU_RUNS[name]) for name in ("h100_512_128", "h100_16_8"))]
    script = f"from tfcompare import cli\nassert cli.main({words!r}) == 0"
    others = ("scipy.optimize", "scipy.sparse", "scipy.stats", "tfcompare.render.html", "tfcompare.render.notebook")
    assert loaded(script, others) == []


def test_the_pages_load_neither_scipy_nor_xprof_nor_a_database() -> None:
    script = (
        "import importlib, pkgutil\nfrom tfcompare.ui import pages\nfrom tfcompare.views.registry import views\n"
        "for one in pkgutil.iter_modules(pages.__path__, 'tfcompare.ui.pages.'):\n"
        "    importlib.import_module(one.name)\n"
        "assert len(views()) > 5"
    )
    assert loaded(script, (*SCIPY, "xprof", "duckdb", "distributed", "tensorflow")) == []


def test_comparing_loads_no_scipy_and_an_interval_its_functions_and_not_its_distributions() -> None:
    comparing = ("pandas", *SCIPY, "xprof", "duckdb", "streamlit", "plotly")
    script = (
        f"import sys, tfcompare.comparison\nfound = set({comparing!r}) & set(sys.modules)\n"
        "assert found == {'pandas'}, found\n"
        "import numpy as np\nfrom tfcompare.compare.stats.estimates import _student\n"
        "quantile, p = _student(np.array([4.0, np.inf]), np.array([2.776445105, 0.0]))\n"
        "assert np.allclose(quantile, [2.776445105, 1.959963985]) and np.allclose(p, [0.05, 1.0])"
    )
    assert loaded(script, ("scipy", "scipy.stats")) == ["scipy"]
