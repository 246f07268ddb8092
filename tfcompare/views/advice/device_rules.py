"""Rules for devices that wait: for launches, for copies, for other devices, or for unknown reasons."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfcompare.compare.steps.step_time_verdict import step_marker_call
from tfcompare.schema import DEVICE, UNEXPLAINED_PARTS
from tfcompare.schema.kernels import DEVICE_TO_HOST, HOST_TO_DEVICE
from tfcompare.units import share_of
from tfcompare.views.advice.facts import CORES, Facts, longest, with_gap
from tfcompare.views.advice.host_rules import BUSY_THREADS, HOST_OPS_SHARE, OTHER_SHARE, UNEXPLAINED_SHARE
from tfcompare.views.advice.model import DATA_GUIDE, GPU_GUIDE, SHARE, WORTH_IT, XLA_GUIDE, Figure, Found, code
from tfcompare.views.advice.xla_rules import awaited_copies
from tfcompare.views.input.figures import MODERATELY_SHARE

if TYPE_CHECKING:
    from collections.abc import Callable


LAUNCH_SHARE = 0.15
"""Of the step: the share from which TensorBoard's overview calls a program highly bound by kernel launches."""
COPY_SHARE = 0.1
"""Of the step: below that, copies between host and device are the batch and the loss."""
_COLLECTIVES, _WAITS = "device_collectives_us", "device_waits_us"
COLLECTIVE_OF_STEP = 0.1
"""Of the step, without computing at the same time: less is the end of an exchange that cannot be overlapped."""
WAITS_OF_STEP = 0.1
"""Of the step: from there on xprof suggests to look at barriers, and at the ends of asynchronous instructions."""
IDLE_SHARE = 0.2
"""Share of the step below which a device's idle time is acceptable."""
IDLE_PROFILE_SHARE = 0.5
"""Of a profile without steps, which holds the program's beginning and end too."""
UNUSED_DEVICE = 0.1
"""Share of the busiest device's time below which a device is considered unused."""
BUSY_CORES = 0.5
"""Threads within ops ÷ cores, on average over the profile: from there on, all cores are busy at times."""
ROOMY = 0.5
"""Share of its capacity below which a memory has room for a batch twice as large."""

LAUNCH_TIME = Figure("Kernel launch per step", "µs", lambda f: f.part_us("kernel_launch_us"))
LAUNCH_OF_STEP = Figure("Share of the step time", SHARE, lambda f: f.part_share("kernel_launch_us"))
KERNELS = Figure(
    "Kernels", "", lambda f: f.per_recorded_step(float(f.kernels["occurrences"].sum(min_count=1))), summed=True
)
KERNEL_TIME = Figure("Average kernel", "µs", lambda f: share_of(f.kernel_us, float(f.kernels["occurrences"].sum())))


def launch_bound(facts: Facts) -> Found | None:
    """The devices wait for the host to launch kernels."""
    if not LAUNCH_OF_STEP.of(facts) >= LAUNCH_SHARE:
        return None
    figures: tuple[Figure, ...] = (LAUNCH_OF_STEP, LAUNCH_TIME)
    found = f"No device is busy for {LAUNCH_TIME.text(facts)} of each step because the host is still launching work."
    if len(facts.kernels):
        figures = (*figures, KERNELS, KERNEL_TIME)
        found += f" A step has {KERNELS.text(facts)} kernels of {KERNEL_TIME.text(facts)} on average."
    how = (
        "Launch fewer and larger ones: put the whole step into one `jax.jit`, several steps into one `jax.lax.scan`, "
        "and use larger batches where memory allows."
        if facts.is_jax
        else "Launch fewer and larger ones: let XLA fuse ops with `tf.function(jit_compile=True)` (Keras: "
        "`model.compile(…, jit_compile=True)`), and use larger batches where memory allows."
    )
    title = f"The device waits for kernel launches {LAUNCH_OF_STEP.text(facts)} of the step"
    return Found(title, f"{found} {how}", figures, XLA_GUIDE, LAUNCH_OF_STEP.of(facts))


def launch_threads(facts: Facts) -> Found | None:
    """The devices wait for launches while the host's cores are busy with other ops."""
    load = share_of(BUSY_THREADS.of(facts), CORES.of(facts))
    if facts.is_jax or facts.info.device_type != "GPU":
        return None
    if not (LAUNCH_OF_STEP.of(facts) >= LAUNCH_SHARE and load >= BUSY_CORES):
        return None
    text = (
        f"No device is busy for {LAUNCH_TIME.text(facts)} of each step while the host launches work, and on average "
        f"{BUSY_THREADS.text(facts)} threads are within an op, on {CORES.text(facts)} cores: launches share "
        "threads with other ops. `TF_GPU_THREAD_MODE=gpu_private` with `TF_GPU_THREAD_COUNT=2` gives each GPU threads "
        "of its own for launching."
    )
    figures = (LAUNCH_OF_STEP, LAUNCH_TIME, BUSY_THREADS, CORES)
    return Found("Launches share the host's threads with other ops", text, figures, GPU_GUIDE)


def _copies(kind: str, column: str) -> Callable[[Facts], float]:
    def take(facts: Facts) -> float:
        """The sum, NaN without such copies and where one of them is not told."""
        values = facts.copies.loc[facts.copies["kind"] == kind, column].astype("float64")
        return facts.per_recorded_step(float(values.sum(min_count=max(len(values), 1))))

    return take


def _exposed_share(facts: Facts, kind: str) -> float:
    """The share of step time in which copies of that kind keep the devices; without steps, of the devices' time."""
    copying = _copies(kind, "duration_us")(facts)
    copying = 0.0 if math.isnan(copying) else copying
    if not facts.has_parts:
        return share_of(copying, sum(facts.device_us.values()))
    waiting = facts.part_share("output_us" if kind == DEVICE_TO_HOST else "input_us")
    return min(waiting, share_of(copying, facts.step_us * max(len(facts.device_us), 1)))


def copies(facts: Facts) -> Found | None:
    """Copying between host and devices takes a good part of the step."""
    if not facts.has_device:
        return None
    shares = {kind: _exposed_share(facts, kind) for kind in (DEVICE_TO_HOST, HOST_TO_DEVICE)}
    if not sum(shares.values()) >= COPY_SHARE:
        return None
    kind = max(shares, key=shares.__getitem__)
    label = "Share of the step time" if facts.has_parts else "Share of the devices' time"
    share = Figure(label, SHARE, lambda f: _exposed_share(f, DEVICE_TO_HOST) + _exposed_share(f, HOST_TO_DEVICE))
    time = Figure(f"Copies {kind}", "µs", _copies(kind, "duration_us"), summed=True)
    size = Figure(f"Copied {kind}", "bytes", _copies(kind, "size_bytes"), summed=True)
    amount = "" if math.isnan(size.of(facts)) else f" for {size.text(facts)}"
    found = f"Copies from {kind} take {time.text(facts)} {facts.each}{amount}."
    how = _FETCH_LESS[facts.is_jax] if kind == DEVICE_TO_HOST else _SEND_LESS[facts.is_jax]
    title = f"Copying between host and device takes {share.text(facts)} of the {'step' if facts.has_parts else 'time'}"
    link = GPU_GUIDE if kind == DEVICE_TO_HOST else f"{DATA_GUIDE}#prefetching"
    return Found(title, f"{found} {how}", (share, time, size), link, sum(shares.values()))


_FETCH_LESS = {
    False: "Fetch less and less often: `.numpy()`, printing and summaries every few steps, sums instead of whole "
    "tensors. An op that only runs on the host fetches its arguments too: see `_HostRecv` and `_Recv` in Op stats.",
    True: "Fetch less and less often: `np.asarray(…)`, printing and logging every few steps, sums instead of whole "
    "arrays; keep the state on the device from step to step.",
}
_SEND_LESS = {
    False: "Send narrow types (`uint8` images) and cast on the device, and send ahead of the step: end the pipeline "
    "with `tf.data.experimental.prefetch_to_device('/GPU:0')`.",
    True: "Send narrow types (`uint8` images) and cast on the device, and call `jax.device_put` for the next batch "
    "before the step that uses this one; it does not wait.",
}


def uneven_devices(facts: Facts) -> Found | None:
    """A device is almost idle while another one works."""
    if len(facts.device_us) < 2:
        return None
    busiest, least = (pick(facts.device_us, key=lambda d: facts.device_us[d]) for pick in (max, min))
    if not facts.device_us[least] < UNUSED_DEVICE * facts.device_us[busiest]:
        return None
    most, little = (_time_of(device) for device in (busiest, least))
    how = (
        "Spread the batch over all devices (`jax.sharding`), or leave that one out (`CUDA_VISIBLE_DEVICES`)."
        if facts.is_jax
        else "Spread the batch over all devices with `tf.distribute.MirroredStrategy()`, or leave that one out: "
        "`tf.config.set_visible_devices(…)`."
    )
    text = (
        f"{code(least)} works {little.text(facts)} {facts.each}, {code(busiest)} {most.text(facts)}. {how} This "
        "is expected if it has another role (variables, a parameter server)."
    )
    return Found(f"{code(least)} idles while others work", text, (little, most), GPU_GUIDE)


def _idle_us(facts: Facts) -> float:
    return facts.idle_us.get(DEVICE, math.nan)


def _time_of(device: str) -> Figure:
    return Figure(
        "Time of ops", "µs", lambda f: f.per_recorded_step(f.device_us.get(device, math.nan)), device, summed=True
    )


DEVICE_IDLE = Figure("Idle time of the devices", "µs", lambda f: f.per_recorded_step(_idle_us(f)), summed=True)
IDLE_OF_PROFILE = Figure(
    "Share of the devices' time", SHARE, lambda f: share_of(_idle_us(f), _idle_us(f) + f.side_us(DEVICE))
)
IDLE_OF_STEP = Figure(
    "Share of the step time",
    SHARE,
    lambda f: 1 - f.device_busy_share - f.device_part_share(_WAITS) - _exposed_share(f, HOST_TO_DEVICE),
)
IDLE_TIME = Figure("No device busy, per step", "µs", lambda f: IDLE_OF_STEP.of(f) * f.step_us)


def idle_device(facts: Facts) -> Found | None:
    """The devices wait, and no other rule explains why."""
    if not facts.has_device:
        return None
    if facts.has_parts:
        return _idle_in_steps(facts)
    if facts.info.has_steps or not IDLE_OF_PROFILE.of(facts) >= IDLE_PROFILE_SHARE:
        return None
    text = (
        f"The devices are idle for {DEVICE_IDLE.text(facts)} between their first and last op, summed over all of "
        "them. The profile has no steps, so nothing tells what they wait for, or whether it was recorded while the "
        f"program started. Record again with each step inside `{step_marker_call([facts.info])}`."
    )
    title = f"The devices idle {IDLE_OF_PROFILE.text(facts)} of the time"
    return Found(title, text, (IDLE_OF_PROFILE, DEVICE_IDLE), GPU_GUIDE)


_OF_OTHER_RULES = {"kernel_launch_us": LAUNCH_SHARE, "host_compute_us": HOST_OPS_SHARE, "compile_us": WORTH_IT}


def _idle_in_steps(facts: Facts) -> Found | None:
    if not IDLE_OF_STEP.of(facts) >= IDLE_SHARE:
        return None
    limits = {**_OF_OTHER_RULES, "input_us": MODERATELY_SHARE}
    is_explained = any(facts.part_share(part) >= limit for part, limit in limits.items())
    if is_explained or OTHER_SHARE.of(facts) >= UNEXPLAINED_SHARE:
        return None
    text = (
        f"No device is busy for {IDLE_TIME.text(facts)} of each step, shared among launches, input, host ops "
        "and unexplained time. Give the device more to do at a time: a larger batch, and fewer, larger kernels."
    )
    title = f"The device idles {IDLE_OF_STEP.text(facts)} of the step"
    text, figures = with_gap(text, (IDLE_OF_STEP, IDLE_TIME), facts)
    return Found(title, text, figures, GPU_GUIDE, IDLE_OF_STEP.of(facts))


COLLECTIVE_TIME = Figure("Collectives that nothing overlaps, per step", "µs", lambda f: f.device_part_us(_COLLECTIVES))
COLLECTIVE_SHARE = Figure("Share of the step time", SHARE, lambda f: f.device_part_share(_COLLECTIVES))


def collectives(facts: Facts) -> Found | None:
    """The devices exchange data and compute nothing meanwhile."""
    if not COLLECTIVE_SHARE.of(facts) >= COLLECTIVE_OF_STEP:
        return None
    how = (
        "Exchange less: gradients in `jnp.bfloat16`, a sharding that keeps large arrays on their device, a larger "
        "batch per step. And let XLA overlap the rest: on GPUs with "
        "`XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true`."
        if facts.is_jax
        else "Exchange less often and in larger pieces: a larger batch per replica, gradients in 16 bits "
        "(`mixed_float16`), `tf.distribute.experimental.CommunicationOptions(bytes_per_pack=…)`."
    )
    text = (
        f"For {COLLECTIVE_TIME.text(facts)} of each step, on average over the devices, a device exchanges data, or "
        f"waits for the slowest to do so, and computes nothing itself. Compare the hosts first: a slow one "
        f"delays all. {how}"
    )
    title = f"Exchanges between devices take {COLLECTIVE_SHARE.text(facts)} of the step"
    return Found(title, text, (COLLECTIVE_SHARE, COLLECTIVE_TIME), GPU_GUIDE, COLLECTIVE_SHARE.of(facts))


WAIT_TIME = Figure("Devices wait, per step", "µs", lambda f: f.device_part_us(_WAITS))
WAIT_SHARE = Figure("Share of the step time", SHARE, lambda f: f.part_share(_WAITS))


def device_waits(facts: Facts) -> Found | None:
    """The devices wait, and it is not known that they do so for copies (`awaited_copies`)."""
    if not WAIT_SHARE.of(facts) >= WAITS_OF_STEP or awaited_copies(facts) is not None:
        return None
    text = (
        f"For {WAIT_TIME.text(facts)} of each step, on average over the devices, a device waits at a barrier, or for "
        "the end of asynchronous work, and does not compute, copy or communicate itself. Compare hosts and devices "
        "first: a slow one, or one that starts late, delays all at a barrier. Work that is awaited needs something to "
        "compute beside it."
    )
    title = f"Devices wait {WAIT_SHARE.text(facts)} of the step"
    return Found(title, text, (WAIT_SHARE, WAIT_TIME), XLA_GUIDE, WAIT_SHARE.of(facts))


def _fullest(facts: Facts, column: str) -> float:
    """A column of the device memory that was fullest since the program began; NaN without one."""
    rows = facts.device_memory
    if rows.empty:
        return math.nan
    highest = rows[["peak_bytes", "peak_heap_bytes"]].max(axis=1)  # of the profile, and since the program began
    rows = rows.assign(most_bytes=highest, share=highest / rows["capacity_bytes"])
    return float(longest(rows, "share")[column])


MOST_HELD = Figure(
    "Most in use since start, of the fullest device memory", "bytes", lambda f: _fullest(f, "most_bytes")
)
FULLEST_CAPACITY = Figure("Its capacity", "bytes", lambda f: _fullest(f, "capacity_bytes"))
_OF_HOST = ("kernel_launch_us", "host_compute_us", *UNEXPLAINED_PARTS)
HOST_ONLY_TIME = Figure("Device waits for the host, per step", "µs", lambda f: sum(map(f.part_us, _OF_HOST)))
HOST_ONLY_SHARE = Figure("Share of the step time", SHARE, lambda f: sum(map(f.part_share, _OF_HOST)))


def larger_batch(facts: Facts) -> Found | None:
    """The devices wait for the host in each step, and their memory has room for a larger batch."""
    if not (facts.has_device and share_of(MOST_HELD.of(facts), FULLEST_CAPACITY.of(facts)) < ROOMY):
        return None
    if not HOST_ONLY_SHARE.of(facts) >= IDLE_SHARE:
        return None
    text = (
        f"The fullest memory of a device held {MOST_HELD.text(facts)} of {FULLEST_CAPACITY.text(facts)} at most since "
        f"the program began, and for {HOST_ONLY_TIME.text(facts)} of each step the device waits for launches, host ops "
        "and what is unexplained. Most of that is the same for a larger batch: double the batch as long as the step "
        "takes less than twice as long, and compare examples per second. The learning rate may have to follow."
    )
    title = f"A larger batch fits, and the device waits for the host {HOST_ONLY_SHARE.text(facts)} of the step"
    figures = (HOST_ONLY_SHARE, HOST_ONLY_TIME, MOST_HELD, FULLEST_CAPACITY)
    return Found(title, text, figures, GPU_GUIDE)  # how much of it a batch makes up for, only a trial tells


RULES = (launch_bound, launch_threads, copies, collectives, device_waits, uneven_devices, idle_device, larger_batch)
