"""An XSpace as plain Python values, from our columns or from the protobuf library: equal where both read the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.protobufs import messages
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import Stats

Plain = dict[str, Any]
KINDS = {0: None, 7: "ref_value"} | {
    number: f"{kind}_value" for number, kind in enumerate(("double", "uint64", "int64", "str", "bytes"), 2)
}


def xplane_pb2() -> Any:
    """TensorFlow's own messages."""
    return messages("tsl.profiler.protobuf.xplane_pb2")


def by_protobuf(data: bytes) -> Plain:
    """What the protobuf library reads from `data`."""
    message = xplane_pb2().XSpace.FromString(data)
    return {
        "hostnames": tuple(message.hostnames),
        "errors": tuple(message.errors),
        "warnings": tuple(message.warnings),
        "planes": [_plane_of_message(plane) for plane in message.planes],
    }


def _plane_of_message(plane: Any) -> Plain:
    stat_names = {key: value.name for key, value in plane.stat_metadata.items()}
    event_names = {key: value.name for key, value in plane.event_metadata.items()}

    def stat(message: Any) -> tuple[str, str | None, Any]:
        kind = message.WhichOneof("value")
        value = getattr(message, kind) if kind else None
        if kind == "ref_value":
            value = stat_names.get(value - (1 << 64) if value >> 63 else value, "")  # the ids of the map are signed
        return stat_names.get(message.metadata_id, ""), kind, value

    def event(message: Any) -> tuple[Any, ...]:
        return (
            event_names.get(message.metadata_id, ""),
            message.offset_ps,
            message.duration_ps,
            message.num_occurrences,
            [stat(s) for s in message.stats],
        )

    return {
        "id": plane.id,
        "name": plane.name,
        "stats": {name: value for name, _, value in map(stat, plane.stats)},
        "lines": [
            {"id": line.id, "name": line.name, "timestamp_ns": line.timestamp_ns, "events": [*map(event, line.events)]}
            for line in plane.lines
        ],
        "metadata": {
            key: (value.name, value.display_name, [stat(s) for s in value.stats])
            for key, value in plane.event_metadata.items()
        },
    }


def by_columns(space: XSpace) -> Plain:
    """The same from our columns."""
    stats = _by_owner(space, space.event_stats)
    of_metadata = _by_owner(space, space.metadata_stats)
    used = space.lines.event_count > 0
    origin = int(space.lines.timestamp_ns[used].min()) if used.any() else 0
    names = space.metadata_names[space.events.metadata].tolist()
    start, duration = space.events.start_ps.tolist(), space.events.duration_ps.tolist()
    occurrences = space.events.occurrences.tolist()

    def events(line: int) -> list[tuple[Any, ...]]:
        begin = (int(space.lines.timestamp_ns[line]) - origin) * 1000
        first = int(space.lines.first_event[line])
        rows = range(first, first + int(space.lines.event_count[line]))
        offset = [0 if occurrences[i] else start[i] - begin for i in rows]
        return [
            (names[i], at, duration[i], occurrences[i], stats.get(i, [])) for i, at in zip(rows, offset, strict=True)
        ]

    def metadata(plane: int) -> Plain:
        rows = np.flatnonzero(space.metadata_plane == plane).tolist()
        return {
            int(space.metadata_ids[i]): (
                space.metadata_names[i],
                space.metadata_display_names[i],
                of_metadata.get(i, []),
            )
            for i in rows
        }

    return {
        "hostnames": space.hostnames,
        "errors": space.errors,
        "warnings": space.warnings,
        "planes": [
            {
                "id": plane.id,
                "name": plane.name,
                "stats": plane.stats,
                "lines": [
                    {
                        "id": int(space.lines.id[i]),
                        "name": space.lines.name[i],
                        "timestamp_ns": int(space.lines.timestamp_ns[i]),
                        "events": events(i),
                    }
                    for i in plane.lines
                ],
                "metadata": metadata(plane.index),
            }
            for plane in space.planes
        ],
    }


def _by_owner(space: XSpace, stats: Stats) -> dict[int, list[tuple[str, str | None, Any]]]:
    names = {code: name for name, code in space.stat_names.items()}
    out: dict[int, list[tuple[str, str | None, Any]]] = {}
    columns = (stats.owner, stats.name, stats.kind, stats.value, stats.length)
    for owner, name, kind, value, length in zip(*(c.tolist() for c in columns), strict=True):
        out.setdefault(owner, []).append((names[name], KINDS[kind], _value(space, kind, value, length)))
    return out


def _value(space: XSpace, kind: int, value: int, length: int) -> Any:
    name = KINDS[kind]
    if name is None or name == "int64_value":
        return value if name else None
    if name == "uint64_value":
        return value % (1 << 64)
    if name == "double_value":
        return float(np.int64(value).view(np.float64))
    if name == "ref_value":
        return space.stat_labels[value]
    content = space.buffer[value : value + length].tobytes()
    return content if name == "bytes_value" else content.decode()
