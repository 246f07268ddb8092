"""How input pipelines are built differently."""

from __future__ import annotations

import pytest

from tests.frames.tf_data_calls import call
from tests.tf_data_runs import plain, prefetched
from tests.views.flat import KNOWN_TRUTH, only_pair, pair_of
from tests.xspace_builder import line, plane, space
from tfcompare.compare.work.input_changes import InputChanges, input_changes
from tfcompare.comparison import compare
from tfcompare.run import load

STEPS = 4


def saved(folder, build):
    """A run whose steps take an element from the pipeline of `build`."""
    threads = [[], []]
    for step in range(STEPS):
        for thread, events in zip(threads, build(step), strict=True):
            thread += events
    lines = [line(name, *events) for name, events in zip(("python", "pool"), threads, strict=True) if events]
    folder.mkdir()
    (folder / "vm.xplane.pb").write_bytes(space(plane("/host:CPU", *lines)))
    return load(folder)


def test_what_only_one_side_has_is_added_or_removed(tmp_path) -> None:
    ours, theirs = saved(tmp_path / "plain", plain), saved(tmp_path / "prefetched", prefetched)
    assert input_changes(only_pair(compare(ours, theirs))) == InputChanges(added=("Prefetch",))
    assert input_changes(only_pair(compare(theirs, ours))) == InputChanges(removed=("Prefetch",))
    assert input_changes(only_pair(compare(ours, ours))) == InputChanges()


@pytest.mark.parametrize(
    ("autotune", "changed"),
    [("true", ()), ("false", ("ParallelMap: parallelism 2 → 6",))],
)
def test_what_tf_data_tunes_itself_is_no_change_of_how_the_pipeline_is_built(tmp_path, autotune, changed) -> None:
    def mapped(parallelism: int):
        def build(step: int):
            at, settings = 10_000 * step, {"parallelism": parallelism, "autotune": autotune}
            top = [call("Root", at, 900, 1), call("Root::ParallelMap", at + 10, 800, 2, 1, **settings)]
            return [*top, call("Root::ParallelMap::TFRecord", at + 20, 90, 3, 2)], []

        return build

    sides = [saved(tmp_path / name, mapped(at_once)) for name, at_once in (("a", 2), ("b", 6))]
    assert input_changes(only_pair(compare(*sides))) == InputChanges(changed=changed)


def test_a_parallel_map_replaces_a_map() -> None:
    pair = only_pair(compare(load(KNOWN_TRUTH / "map_5ms"), load(KNOWN_TRUTH / "map_parallel_5ms")))
    assert input_changes(pair) == InputChanges(changed=("Map → ParallelMap",))


def test_a_reader_that_opens_a_file_in_few_executions_is_no_change() -> None:
    """In a few executions of one of the two captures, a file is opened by `TensorSlice`."""
    assert input_changes(pair_of("filters_512_128", "filters_16_8")) == InputChanges()


def test_without_a_pipeline_on_a_side_nothing_is_said() -> None:
    pair = only_pair(compare(load(KNOWN_TRUTH / "jax_layers"), load(KNOWN_TRUTH / "map_5ms")))
    assert input_changes(pair) == InputChanges()
