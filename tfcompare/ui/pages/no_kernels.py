"""What the kernel stats page says of runs without kernels: why there are none, and how to record them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from tfcompare.run import Run
from tfcompare.sources.logdir import FoundRun
from tfcompare.ui.frame.pair import Pair
from tfcompare.ui.frame.selection import SAMPLE_GPU_PAIR, Selection, sample_pair
from tfcompare.ui.frame.sidebar import HOME, link
from tfcompare.ui.widgets.text import as_code

OP_STATS, KERNEL_STATS = "pages/2_Op_stats.py", "pages/3_Kernel_stats.py"

HOW_TO_ALLOW = """
To record kernels, profile on a machine with a GPU whose profiler may be used:

- **NVIDIA:** `libcupti` has to be on the library path, and the driver has to let users profile: set the module option
  `NVreg_RestrictProfilingToAdminUsers=0`, or run the container with `--cap-add=SYS_ADMIN`.
- **AMD:** TensorFlow or JAX has to be built with ROCm's profiler, and the user has to be in the groups `render` and
  `video`; in a container pass on `/dev/kfd` and `/dev/dri`.
"""


def explain_missing(pair: Pair, selection: Selection, found: Sequence[FoundRun]) -> None:
    """Say which of the runs have no kernels and why; end the page where neither has any.

    Where the sample runs are among those found, the two on a simulated GPU are offered.
    """
    without = [run for run, rows in zip(pair.runs, pair.tables("kernel_stats"), strict=True) if rows.empty]
    if not without:
        return
    why, neither = " ".join(_why(run) for run in without), len(without) == len(pair.runs)
    st.info(f"There are no kernels to compare. {why}" if neither else f"{why} The other run stands alone here.")
    if any(run.info.device_type != "TPU" for run in without):
        with st.expander("How to record kernels", icon=":material/help:", expanded=neither):
            st.markdown(HOW_TO_ALLOW)
    if neither:
        if samples := sample_pair(found, SAMPLE_GPU_PAIR):
            on_gpu = replace(selection, baseline=samples[0], candidates=samples[1:], host=None)
            link(KERNEL_STATS, "Show the sample runs on a simulated GPU", on_gpu, icon=":material/memory:")
        link(OP_STATS, "Op stats shows what ran instead", selection, icon=":material/table_chart:")
        link(HOME, "Choose runs that were recorded on GPUs", selection, icon=":material/home:")
        st.stop()


def _why(run: Run) -> str:
    name, device = as_code(run.name), run.info.device_type
    if device == "TPU":
        return f"{name} ran on TPUs, whose programs are not made of kernels; their ops are in Op stats."
    if device == "GPU":
        return f"{name} ran on GPUs, but its profile holds no kernel events: the profiler was not let record them."
    return f"{name} holds no events of a GPU: it ran on the CPU, or the profiler was not let record the GPU."
