"""What tests of stores share."""

from __future__ import annotations

from tests.sources.remote.conftest import cache_folder, memory, s3, s3_for_all

__all__ = ["cache_folder", "memory", "s3", "s3_for_all"]
