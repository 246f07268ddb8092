"""A JAX program on CPU with asynchronous dispatch: calls return at once, and a thread of the runtime runs programs."""

from __future__ import annotations

from dataclasses import dataclass

from tests.xspace_builder import Event, event, line, plane, space

DISPATCH_US = 20.0
"""What the host needs for a step, its marker, if it does not block in it."""
GAP_US = 5.0
"""From the end of one execution to the start of the next."""
_ONE_CALL, _ON_DEVICES = (
    "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice",
    "CommonPjRtLoadedExecutable::Execute",
)
_POOL = 15  # the kind of context that thread pools record


@dataclass(frozen=True)
class AsyncCpuProgram:
    """Each step calls `functions`, whose executions of two instructions last `execution_us` (one for each step).

    `blocks`: the host waits for the result within each step; `run_ids`: instructions have a `run_id`, as from JAX 0.8;
    `calls_have_run_id`: so have the calls; `lost`: so many executions at the end are not recorded; `earlier`: so many
    executions were launched before the profile began; `independent`: the inputs of each call are there;
    `programs`: each function is so many programs of one name, which take turns, and each counts its runs by itself.
    """

    execution_us: tuple[float, ...]
    functions: tuple[str, ...] = ("step",)
    blocks: bool = False
    run_ids: bool = True
    calls_have_run_id: bool = False
    lost: int = 0
    earlier: int = 0
    independent: bool = False
    programs: int = 1

    def profile(self) -> bytes:
        """The bytes of an `.xplane.pb` file."""
        host: list[Event] = []
        worker: list[Event] = []
        executions: list[tuple[str, int, float, float, int]] = []
        now, free, context = 0.0, 10.0, 100
        for number in range(self.earlier):
            executions.append((self.functions[0], number - self.earlier, free, self.execution_us[0], 10 + number))
            free += self.execution_us[0] + GAP_US
        for number, execution_us in enumerate(self.execution_us):
            begin = now
            for position, function in enumerate(self.functions):
                called = now + 4 + 6 * position
                runs = {"run_id": 1000 * position + number} if self.calls_have_run_id else {}
                host.append(event(f"PjitFunction({function})", called - 1, 5))
                host.append(event(_ONE_CALL if not runs else f"{_ON_DEVICES} (jit_{function})", called, 3, runs))
                if not executions or self.independent:  # the call itself hands the program to the pool
                    host.append(event("ThreadpoolListener::Record", called + 1, 0, _pt=_POOL, _p=context))
                start = max(free, called + 6)
                executions.append((function, 1000 * position + number, start, execution_us, context))
                free = start + execution_us + GAP_US
                context += 1
            end = now + DISPATCH_US if not self.blocks else free
            host.append(event("train", begin, end - begin, step_num=7 + number, _r=1))
            now = end + 2
        for function, run, start, execution_us, its_context in executions[: len(executions) - self.lost]:
            worker += self._execution(function, run, start, execution_us, its_context)
        return space(
            plane(
                "/host:CPU",
                line("python", *sorted(host, key=lambda e: (e.offset_ps, -e.duration_ps)), id=1),
                line("tf_XLAPjRtCpuClient/1", *worker, id=2),
            )
        )

    def _execution(self, function: str, run: int, start: float, execution_us: float, context: int) -> list[Event]:
        """The events of one execution on the runtime's thread. Its end hands the next one to the pool."""
        turn = run % self.programs
        program = self.functions.index(function)
        stats = {"hlo_module": f"jit_{function}", "program_id": 50 + program + 10 * turn}
        runs = {"run_id": run // self.programs - 5000 * turn} if self.run_ids else {}
        half = execution_us / 2
        hands_over = [event("ThreadpoolListener::Record", start + execution_us, 0, _pt=_POOL, _p=context + 1)]
        return [
            event("ThreadpoolListener::StartRegion", start - 2, 0, _ct=_POOL, _c=context),
            event(f"dot.{program}", start, half, {"hlo_op": f"dot.{program}"} | stats | runs),
            event(f"tanh.{program}", start + half, half, {"hlo_op": f"tanh.{program}"} | stats | runs),
            *(hands_over if not self.independent else []),
            event("ThreadpoolListener::StopRegion", start + execution_us + 1, 0),
        ]
