#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a timeline, independently of libop: written from opd-timeline(5) only.

usage: timeline.py FILE

Prints for each block a line with its span, then a line for each node with a weight, for each number
of the ledger and of the context. Every rule of the format is checked on the way: a file that breaks
one ends the program with exit code 1 and a line that says which. A torn end is no error.
"""
import ctypes
import struct
import sys

HEADER = struct.Struct("<8sQ")
HEAD = struct.Struct("<II")
LEVEL = struct.Struct("<QQQ")
TAIL = struct.Struct("<6QQIIIIHHI8sQ")
TEXTS, EVENTS, IMAGES, CODE, NODES, LEDGER, CONTEXT, RECORDS = range(1, 9)
(ROOT, SAMPLES, STACKS, APP, COMM, CGROUP, THREAD, END, IMAGE, FUNCTION, PLACE, KERNEL_FUNCTION, KERNEL_PLACE,
 STATE, RUNTIME) = range(15)
KINDS = ("root", "samples", "stacks", "app", "comm", "cgroup", "thread", "end", "image", "function", "place", "kernel-function",
         "kernel-place", "state", "runtime")
RAW_MAX, RATIO_MAX, RATIO_FREE, NODES_MAX, DEPTH_MAX = 8 << 20, 128, 4096, 1 << 18, 2048
MASK = (1 << 64) - 1


class FormatError(Exception):
    """A file that breaks the rules of the format."""


def require(condition, text):
    if not condition:
        raise FormatError(text)


def unpack(packed, raw_bytes):
    """The contents of a frame of Zstandard, by the C library: Python has no module for it."""
    if not hasattr(unpack, "library"):
        unpack.library = ctypes.CDLL("libzstd.so.1")
        unpack.library.ZSTD_decompress.restype = ctypes.c_size_t
        unpack.library.ZSTD_decompress.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    raw = ctypes.create_string_buffer(raw_bytes)
    require(unpack.library.ZSTD_decompress(raw, raw_bytes, packed, len(packed)) == raw_bytes, "not a frame of Zstandard")
    return raw.raw


def weight(index):
    value = (index + 1) * 0x9e3779b97f4a7c15 & MASK
    return (value ^ value >> 31) | 1


def seal_sum(data):
    """The checksum of format.md, "Symbols of JIT code"."""
    padded = data + bytes(-len(data) % 8)
    total = len(data) * weight(MASK - 1)
    for index, word in enumerate(struct.unpack("<%dQ" % (len(padded) // 8), padded)):
        total += word * weight(index)
    return total & MASK


class Numbers:
    """A section that is read from its begin on."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, nr_bytes):
        require(self.at + nr_bytes <= len(self.data), "a section ends too early")
        self.at += nr_bytes
        return self.data[self.at - nr_bytes:self.at]

    def unsigned(self, most=MASK):
        value = 0
        for nr in range(10):
            byte = self.take(1)[0]
            value |= (byte & 0x7f) << 7 * nr
            if byte < 0x80:
                require((byte or not nr) and value <= most, "number %d is too large or too long" % value)
                return value
        raise FormatError("a number is too long")

    def signed(self):
        value = self.unsigned()
        return value >> 1 if not value & 1 else -(value >> 1) - 1

    def column(self, nr, most=MASK):
        return [self.unsigned(most) for _ in range(nr)]


class Node:
    def __init__(self, parent):
        self.parent, self.depth = parent, parent.depth + 1 if parent else 0
        self.kind, self.value, self.image, self.own, self.rest, self.records, self.last_code = ROOT, 0, 0, 0, 0, 0, 0


def may_lie_below(kind, parent):
    if kind in (SAMPLES, STACKS):
        return parent == ROOT
    if kind == STATE:
        return STACKS <= parent <= END
    if kind == RUNTIME:
        return parent != ROOT
    return parent != ROOT and (kind > parent or kind >= FUNCTION)


class Block:
    """`events` {number: (name, unit, role)}, `nodes` without the root, `ledger` and `context` as rows."""

    def __init__(self, data, offset):
        require(offset + HEAD.size <= len(data), "no block")
        magic, self.nr_bytes = HEAD.unpack_from(data, offset)
        require(magic == 0x6b6c6270 and HEAD.size + TAIL.size <= self.nr_bytes <= len(data) - offset, "no block")
        end = offset + self.nr_bytes
        (*clocks, payload_sum, self.number, nr_levels, raw_bytes, packed_bytes, self.gap, self.flags, block_bytes, magic,
         total) = TAIL.unpack_from(data, end - TAIL.size)
        self.begin, self.end = tuple(clocks[:3]), tuple(clocks[3:])
        require(magic == b"opdblock" and block_bytes == self.nr_bytes and nr_levels <= 7, "no tail")
        at = end - TAIL.size - LEVEL.size * nr_levels
        require(at - packed_bytes == offset + HEAD.size, "the parts of the block do not add up")
        require(seal_sum(data[at:end - 8]) == total, "wrong sum of the tail")
        self.levels = [LEVEL.unpack_from(data, at + i * LEVEL.size) for i in range(nr_levels)]
        packed = data[offset + HEAD.size:at]
        require(seal_sum(packed) == payload_sum, "wrong sum of the payload")
        require(packed_bytes <= raw_bytes <= min(RAW_MAX, RATIO_FREE + RATIO_MAX * packed_bytes), "packed too well")
        self.decode(packed if packed_bytes == raw_bytes else unpack(packed, raw_bytes))

    def decode(self, payload):
        sections, rest = {}, Numbers(payload)
        while rest.at < len(payload):
            number, length = rest.unsigned(), rest.unsigned()
            require(number not in sections, "section %d twice" % number)
            sections[number] = Numbers(rest.take(length))
        require(set(range(1, 8)) <= set(sections), "a section is missing")
        self.texts = [""] + [self.text(sections[TEXTS]) for _ in range(sections[TEXTS].unsigned(0xffff))]
        part = sections[EVENTS]
        self.events = [(self.texts[part.unsigned(len(self.texts) - 1)], part.unsigned(), part.unsigned())
                       for _ in range(part.unsigned(4096))]
        part, images = sections[IMAGES], []
        for _ in range(part.unsigned(0xffff + 1)):
            images.append(part.unsigned() + (images[-1] if images else 0))
            require(len(images) < 2 or images[-1] > images[-2], "images are not in order")
        self.images = images
        self.code = self.read_code(sections[CODE])
        self.nodes = self.read_nodes(sections[NODES])
        for node in self.nodes if RECORDS in sections else ():
            node.records = sections[RECORDS].unsigned(0xffff)
        part = sections[LEDGER]
        self.ledger = [(part.unsigned(len(self.events) - 1), self.texts[part.unsigned(len(self.texts) - 1)], part.signed())
                       for _ in range(part.unsigned(1 << 16))]
        part = sections[CONTEXT]
        self.context = [tuple(part.column(3)) for _ in range(part.unsigned(1 << 16))]

    def text(self, part):
        data = part.take(part.unsigned(4096))
        require(data and 0 not in data, "a text is empty or has a NUL")
        return data.decode("utf-8", "surrogateescape")

    def read_code(self, part):
        nr = part.unsigned(1 << 18)
        steps, kinds, values = part.column(nr), part.column(nr), part.column(nr)
        code, image = [], 0
        for step, kind, value in zip(steps, kinds, values):
            image += step
            require(image < len(self.images) and FUNCTION <= kind <= KERNEL_PLACE, "code of no image or kind")
            if code and code[-1][:2] == (image, kind):
                value += code[-1][2]
            require(not code or code[-1] < (image, kind, value), "code is not in order")
            code.append((image, kind, value))
        return code

    def read_nodes(self, part):
        nr, root = part.unsigned(NODES_MAX - 1), Node(None)
        nodes, before = [], root
        for nr_up in part.column(nr):
            require(nr_up <= before.depth, "above the root")
            for _ in range(nr_up):
                before = before.parent
            before = Node(before)
            require(before.depth <= DEPTH_MAX, "too deep")
            nodes.append(before)
        for node, kind in zip(nodes, part.column(nr)):
            require(ROOT < kind <= RUNTIME and may_lie_below(kind, node.parent.kind),
                    "kind %d below %d" % (kind, node.parent.kind))
            node.kind = kind
        for node in nodes:
            self.read_key(part, node)
        for node, own in zip(nodes, part.column(nr)):
            node.own = own
        for node, rest in zip(nodes, part.column(nr)):
            node.rest = rest
        require(sum(node.own + node.rest for node in nodes) < 1 << 63, "weights are too large")
        return nodes

    def read_key(self, part, node):
        if node.kind in (SAMPLES, STACKS):
            node.value = part.unsigned(len(self.events) - 1)
        elif node.kind in (APP, IMAGE):
            node.image = self.images[part.unsigned(len(self.images) - 1)]
        elif node.kind in (COMM, CGROUP, RUNTIME):
            node.value = part.unsigned(len(self.texts) - 1)
        elif node.kind == THREAD:
            node.value = part.unsigned(0xffffffff) << 32 | part.unsigned(0xffffffff)
            node.image = part.unsigned(1 << 32)
        elif node.kind in (END, STATE):
            node.value = part.unsigned(0xffffffff)
        else:
            node.parent.last_code += part.unsigned(len(self.code) - 1 - node.parent.last_code)
            image, kind, node.value = self.code[node.parent.last_code]
            node.image = self.images[image]
            require(kind == node.kind, "code of kind %d in a node of kind %d" % (kind, node.kind))

    def shown(self, node):
        if node.kind in (SAMPLES, STACKS):
            return "%s %s" % (KINDS[node.kind], self.events[node.value][0])
        if node.kind in (COMM, CGROUP):
            return self.texts[node.value]
        if node.kind == RUNTIME:
            return self.texts[node.value].replace("\x1f", ":")
        if node.kind == THREAD:
            return "%d:%d@%d" % (node.value >> 32, node.value & 0xffffffff, node.image)
        if node.kind in (APP, IMAGE):
            return "%s %d" % (KINDS[node.kind], node.image)
        if node.kind in (END, STATE):
            return "[%s%d]" % ("state " if node.kind == STATE else "", node.value)
        return "%d+0x%x%s%s" % (node.image, node.value, "~" if node.kind in (PLACE, KERNEL_PLACE) else "",
                                "k" if node.kind >= KERNEL_FUNCTION else "")

    def weights(self):
        """{path: (own, rest)}"""
        found = {}
        for node in self.nodes:
            if node.own or node.rest:
                path, at = [], node
                while at.parent:
                    path.append(self.shown(at))
                    at = at.parent
                before = found.get(";".join(path[::-1]), (0, 0))
                found[";".join(path[::-1])] = (before[0] + node.own, before[1] + node.rest)
        return found

    def total(self, kind, event):
        """The sum of all weights below the node of a kind and event."""
        below, total = set(), 0
        for node in self.nodes:
            if id(node.parent) in below or (node.kind == kind and node.value == event):
                below.add(id(node))
                total += node.own + node.rest
        return total

    def first(self):
        return min(self.begin[0], self.end[0])

    def last(self):
        return max(self.begin[0], self.end[0])


class Timeline:
    """`blocks`, and `torn`: the bytes behind the last one."""

    def __init__(self, data):
        require(len(data) < HEADER.size or HEADER.unpack_from(data)[0] == b"opdtime1", "bad magic")
        self.blocks, offsets, at = [], [], HEADER.size
        try:
            while at < len(data):
                self.blocks.append(Block(data, at))
                offsets.append(at)
                at += self.blocks[-1].nr_bytes
        except FormatError as error:
            self.fault = str(error)
        else:
            self.fault = None
        self.torn = max(len(data) - at, 0)
        for number, block in enumerate(self.blocks):
            self.check_levels(number, block, offsets)

    def check_levels(self, number, block, offsets):
        """Level k of the index covers the 8^k blocks before."""
        require(block.number == number, "block %d has number %d" % (number, block.number))
        require(len(block.levels) == sum(8 ** k <= number for k in range(7)), "block %d has not all levels" % number)
        for k, (offset, first, last) in enumerate(block.levels):
            covered = self.blocks[number - 8 ** k:number]
            require(offset == offsets[number - 8 ** k], "level %d of block %d leads elsewhere" % (k, number))
            require(first == min(b.first() for b in covered) and last == max(b.last() for b in covered),
                    "level %d of block %d has another span" % (k, number))


def read(path):
    with open(path, "rb") as stream:
        return Timeline(stream.read())


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: timeline.py FILE")
    try:
        timeline = read(sys.argv[1])
    except FormatError as error:
        sys.exit("timeline.py: %s" % error)
    for block in timeline.blocks:
        print("block %d begin %d %d %d end %d %d %d gap %d flags %d bytes %d" % (
            block.number, *block.begin, *block.end, block.gap, block.flags, block.nr_bytes))
        for path, (own, rest) in sorted(block.weights().items()):
            print(" ", path, own, rest)
        for event, name, amount in block.ledger:
            print("  ledger", block.events[event][0], name, amount)
        for row in block.context:
            print("  context", *row)
    if timeline.fault:
        sys.exit("timeline.py: %s, %d bytes at the end" % (timeline.fault, timeline.torn))


if __name__ == "__main__":
    main()
