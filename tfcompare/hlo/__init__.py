"""Compiled XLA programs: their instructions, what these cost, and the memory they need, from serialized `HloProto`s.

Field numbers are those of `hlo.proto` and `xla_data.proto` (OpenXLA).
"""
