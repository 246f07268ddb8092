"""Folders inside and outside a fence, and ways to ask for what lies outside."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def yard(tmp_path: Path) -> Path:
    """`root/runs` to be opened; `secret`, `rooted` and links to them not."""
    for name in ("root/runs", "secret", "rooted"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "secret" / "vm.xplane.pb").write_bytes(b"")
    links = {"out": "../secret", "up": "..", "circle": "circle", "file.xplane.pb": "../secret/vm.xplane.pb"}
    for name, target in links.items():
        (tmp_path / "root" / name).symlink_to(target)
    (tmp_path / "root" / "runs" / "twice").symlink_to("../out")
    return tmp_path


WAYS_OUT = [
    "{yard}/secret",
    "{yard}/root/../secret",
    "{yard}/root/runs/../../secret",
    "../secret",
    "runs/../../secret",
    "./../secret",
    "{yard}",
    "{yard}/rooted",
    "/",
    "/etc/passwd",
    "{yard}/root/out",
    "out",
    "out/vm.xplane.pb",
    "runs/twice",
    "up/secret",
    "file.xplane.pb",
    "circle/x",
    "circle",
    "~",
    "~root",
    "~/logs",
    "",
    "runs\0/../../secret",
    "file://{yard}/secret",
    "file:{yard}/secret",
    "s3://bucket/logs",
    "simplecache::file://{yard}/secret",
    "//{yard}/secret",
    "/proc/self/root{yard}/secret",
    "/proc/self/cwd",
    "/dev/fd/0",
]
