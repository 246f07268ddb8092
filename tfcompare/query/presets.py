"""Predefined queries: each works for any runs. Those that read single events run only when they are chosen."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

from tfcompare.schema import IDLE, STEP_PARTS


@dataclass(frozen=True)
class Preset:
    """A query, a short title, the meaning of an empty result, and whether a single run always gives that."""

    title: str
    sql: str
    nothing: str
    is_of_two: bool = False


def _ready(title: str, sql: str, nothing: str, *, is_of_two: bool = False) -> Preset:
    return Preset(title, dedent(sql).strip(), nothing, is_of_two)


_PARTS = ", ".join(STEP_PARTS)

PRESETS = (
    _ready(
        "Ops whose time per step changed most",
        f"""
        -- the whole profile divided by all its steps, excluded ones too; ops are paired by their names
        SELECT host_or_device AS side, op_type, op_name,
               sum(self_time_us / step_count) FILTER (role = 'baseline') / 1000 AS baseline_ms_per_step,
               sum(self_time_us / step_count) FILTER (position = 1) / 1000 AS candidate_ms_per_step,
               coalesce(candidate_ms_per_step, 0) - coalesce(baseline_ms_per_step, 0) AS change_ms_per_step
        FROM op_stats JOIN run_info USING (run) JOIN runs USING (run)
        WHERE op_type <> '{IDLE}' AND (SELECT max(position) FROM runs) > 0
        GROUP BY ALL
        ORDER BY abs(change_ms_per_step) DESC
        LIMIT 30
        """,
        "No op was recorded, or there is no candidate to compare with the baseline.",
        is_of_two=True,
    ),
    _ready(
        "Time per step of each layer (the first two parts of an op's name)",
        f"""
        -- the whole profile divided by all its steps, excluded ones too
        SELECT host_or_device AS side, array_to_string(string_split(op_name, '/')[:2], '/') AS scope,
               sum(self_time_us / step_count) FILTER (role = 'baseline') / 1000 AS baseline_ms_per_step,
               sum(self_time_us / step_count) FILTER (position = 1) / 1000 AS candidate_ms_per_step,
               coalesce(candidate_ms_per_step, 0) - coalesce(baseline_ms_per_step, 0) AS change_ms_per_step
        FROM op_stats JOIN run_info USING (run) JOIN runs USING (run)
        WHERE op_type <> '{IDLE}' AND contains(op_name, '/')
        GROUP BY ALL
        ORDER BY abs(change_ms_per_step) DESC
        LIMIT 50
        """,
        "No op's name has parts: the profiles name no layers.",
    ),
    _ready(
        "Steps that took 1.5 times the median or longer, and which part grew",
        f"""
        WITH parts AS (
          UNPIVOT (SELECT run, host, step, duration_us, {_PARTS}
                   FROM steps WHERE included)
          ON {_PARTS}
          INTO NAME part VALUE part_us
        ), usual AS (
          SELECT run, host, part, median(part_us) AS usual_part_us, median(duration_us) AS median_us
          FROM parts GROUP BY ALL
        )
        SELECT run, host, step, duration_us, median_us, duration_us / median_us AS times_the_median,
               arg_max(part, part_us - usual_part_us) AS part_that_grew, max(part_us - usual_part_us) AS grew_by_us
        FROM parts JOIN usual USING (run, host, part)
        WHERE duration_us >= 1.5 * median_us
        GROUP BY run, host, step, duration_us, median_us
        ORDER BY times_the_median DESC
        """,
        "No step took 1.5 times the median of its run.",
    ),
    _ready(
        "Events of the slowest step of each run",
        """
        WITH slowest AS (
          SELECT run, position, host, step, start_us AS step_start_us, duration_us AS step_us
          FROM steps JOIN runs USING (run)
          WHERE included
          QUALIFY row_number() OVER (PARTITION BY run ORDER BY duration_us DESC) = 1
        )
        SELECT run, host, step, step_us, plane, line, name, op_name, start_us - step_start_us AS start_in_step_us,
               duration_us
        FROM spans JOIN slowest USING (run, host, step)
        QUALIFY row_number() OVER (PARTITION BY run ORDER BY duration_us DESC) <= 100
        ORDER BY position, duration_us DESC
        """,
        "The runs have no steps.",
    ),
    _ready(
        "Ops that run longer in the candidate, step by step",
        """
        -- the time of each op in each step, ops within it included, summed over hosts; steps without it do not count
        WITH by_step AS (
          SELECT position, host_or_device AS side, op_type, op_name, step, sum(spans.duration_us) AS us
          FROM spans JOIN steps USING (run, host, step) JOIN runs USING (run)
          WHERE included AND op_name <> '' AND position <= 1
          GROUP BY ALL
        ), of_baseline AS (
          SELECT side, op_type, op_name, median(us) AS baseline_median_us, max(us) AS baseline_longest_us
          FROM by_step WHERE position = 0 GROUP BY ALL
        )
        SELECT side, op_type, op_name, baseline_median_us, median(us) AS candidate_median_us,
               candidate_median_us - baseline_median_us AS longer_by_us, count(*) AS candidate_steps,
               count(*) FILTER (us > baseline_longest_us) AS steps_longer_than_all_of_the_baseline
        FROM by_step JOIN of_baseline USING (side, op_type, op_name)
        WHERE position = 1
        GROUP BY side, op_type, op_name, baseline_median_us
        HAVING longer_by_us > 0
        ORDER BY longer_by_us DESC
        LIMIT 50
        """,
        "No op of both runs takes longer in the steps of the candidate, or there are no steps or no candidate.",
        is_of_two=True,
    ),
    _ready(
        "Kernels that could use tensor cores and do not",
        """
        SELECT run, kernel_name, op_name, sum(total_duration_us) AS total_us, sum(occurrences) AS occurrences,
               100 * sum(total_duration_us) / any_value(all_us) AS percent_of_kernel_time
        FROM kernel_stats
        JOIN (SELECT run, sum(total_duration_us) AS all_us FROM kernel_stats GROUP BY run) USING (run)
        WHERE is_op_tensor_core_eligible AND NOT is_kernel_using_tensor_core
        GROUP BY run, kernel_name, op_name
        ORDER BY total_us DESC
        LIMIT 100
        """,
        "No such kernel was recorded: the runs have no kernels, or all that are eligible use tensor cores.",
    ),
    _ready(
        "What feeds the longest instruction of each run's XLA programs",
        """
        WITH longest AS (
          SELECT run, position, host, program, hlo_op AS to_hlo_op, self_time_us
          FROM hlo_ops JOIN runs USING (run)
          QUALIFY row_number() OVER (PARTITION BY run ORDER BY self_time_us DESC) = 1
        )
        SELECT run, program, to_hlo_op AS instruction, self_time_us, number, kind, from_hlo_op AS fed_by, shape,
               size_bytes / 1e6 AS size_mb
        FROM hlo_edges JOIN longest USING (run, host, program, to_hlo_op)
        ORDER BY position, number
        """,
        "The runs ran no programs of XLA, or their profiles lack these.",
    ),
    _ready(
        "What holds the memory at its peak, op by op",
        """
        SELECT run, host, memory_id, op_name, sum(allocation_bytes) / 1e6 AS allocated_mb,
               sum(occurrences) AS occurrences,
               100 * sum(allocation_bytes) / sum(sum(allocation_bytes)) OVER (PARTITION BY run, host, memory_id)
                 AS percent
        FROM memory_peak
        GROUP BY run, host, memory_id, op_name
        ORDER BY run, allocated_mb DESC
        """,
        "The runs recorded no memory.",
    ),
    _ready(
        "How much of the step time is waiting for input",
        """
        SELECT run, host, count(*) AS steps_counted, avg(duration_us) / 1000 AS mean_step_ms,
               avg(input_us) / 1000 AS mean_input_ms, 100 * sum(input_us) / sum(duration_us) AS input_percent,
               count(*) FILTER (input_us > duration_us / 2) AS steps_mostly_waiting
        FROM steps JOIN runs USING (run)
        WHERE included
        GROUP BY run, host, position
        ORDER BY position, host
        """,
        "The runs have no steps.",
    ),
    _ready(
        "How long devices were idle",
        f"""
        SELECT run, sum(self_time_us) FILTER (op_type = '{IDLE}') / 1000 AS idle_ms,
               sum(self_time_us) FILTER (op_type <> '{IDLE}') / 1000 AS busy_ms,
               100 * idle_ms / (idle_ms + busy_ms) AS idle_percent, any_value(device_count) AS devices
        FROM op_stats JOIN run_info USING (run)
        WHERE host_or_device = 'Device'
        GROUP BY run
        ORDER BY idle_percent DESC
        """,
        "The runs recorded no device: they computed on CPU.",
    ),
    _ready(
        "Ops that are in one run only",
        """
        SELECT host_or_device AS side, op_type, op_name, any_value(run) AS only_in,
               sum(occurrences) AS occurrences, sum(self_time_us) / 1000 AS self_time_ms
        FROM op_stats
        GROUP BY host_or_device, op_type, op_name
        HAVING count(DISTINCT run) = 1 AND (SELECT count(*) FROM runs) > 1
        ORDER BY self_time_ms DESC
        """,
        "Every op is in more than one of the runs, or there is one run only.",
        is_of_two=True,
    ),
    _ready(
        "Input pipelines of tf.data and their bottlenecks",
        """
        SELECT run, host, pipeline, calls, slow_calls, 100 * slow_calls / calls AS slow_percent,
               mean_latency_us, max_latency_us, bottleneck
        FROM tf_data_pipelines
        ORDER BY mean_latency_us DESC
        """,
        "No run recorded a pipeline of tf.data.",
    ),
)
