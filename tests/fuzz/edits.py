"""Changes to a profile: to its fields, and to its bytes without regard to structure."""

from __future__ import annotations

import random

from tests.fuzz.tree import Node, encode, messages, take_apart
from tests.xspace import fuzz_inputs


def edited(data: bytes, donor: bytes, rng: random.Random) -> bytes:
    """A profile with fields dropped, doubled, moved, taken from another one, numbers and names replaced."""
    tree, other = take_apart(data), take_apart(donor)
    for _ in range(rng.choice((1, 1, 2, 3, 5, 8, 20))):
        _edit(tree, other, rng)
    return encode(tree)


def _edit(tree: list[Node], donor: list[Node], rng: random.Random) -> None:
    """One change of structure or content."""
    found = [(kind, nodes) for kind, nodes in messages(tree) if nodes]
    if not found:
        return
    kinds = sorted({kind for kind, _ in found})
    kind = rng.choice(kinds)
    nodes = rng.choice([n for k, n in found if k == kind])
    at = rng.randrange(len(nodes))
    node = nodes[at]
    what = rng.randrange(11)
    if what == 0:
        del nodes[at]
    elif what == 1:
        nodes.insert(rng.randrange(len(nodes) + 1), node.copy())
    elif what == 2:
        rng.shuffle(nodes)
    elif what == 3:
        others = [n for k, n in messages(donor) if k == kind and n]
        if others:
            nodes.insert(at, rng.choice(rng.choice(others)).copy())
    elif what == 4 and rng.random() < 0.3:
        nodes[at:at] = [node.copy() for _ in range(rng.choice((10, 100, 2000) if len(node.encode()) < 50 else (10,)))]
    elif what == 5:
        node.number = rng.choice((rng.randrange(1, 12), rng.randrange(1, 1 << 29)))
    elif what == 6:
        forms = ((0, 5), (1, b"12345678"), (2, b"abc"), (5, b"1234"), (3, b""), (4, b""), (7, b""))
        (node.wire, node.content), node.kind = rng.choice(forms), ""
    else:
        _replace_value(rng.choice([n for _, ns in found for n in ns if not isinstance(n.content, list)] or [node]), rng)


def _replace_value(node: Node, rng: random.Random) -> None:
    if isinstance(node.content, int):
        node.content = rng.choice((rng.choice(fuzz_inputs.NUMBERS), rng.randrange(40), node.content + 1))
    elif isinstance(node.content, bytes) and node.wire == 2:
        node.content = rng.choice((rng.choice(fuzz_inputs.TEXTS), rng.choice(fuzz_inputs.TEXTS), node.content * 2))
        if rng.random() < 0.002:
            node.content = node.content * (1 + (1 << 20) // (1 + len(node.content)))
    elif isinstance(node.content, bytes):
        node.content = rng.randbytes(len(node.content))


def damaged_bytes(content: bytes, rng: random.Random) -> bytes:
    """Some changes to single bytes and stretches."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        if not data:
            break
        at = rng.randrange(len(data))
        length = min(rng.choice((1, 2, 8, 64, 512)), len(data) - at)
        what = rng.randrange(7)
        if what == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif what == 1:
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif what == 2:
            del data[at : at + length]
        elif what == 3:
            data[at:at] = data[at : at + length]
        elif what == 4:
            data[at:at] = b"\xff" * rng.randrange(1, 12)
        elif what == 5:
            data[at:at] = rng.randbytes(length)
        elif rng.random() < 0.3:
            del data[at:]
    return bytes(data)
