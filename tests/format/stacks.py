#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a file of call stacks, independently of libop: written from opd-stacks(5) only.

usage: stacks.py FILE

Prints one line for each stack with a count: event; application; process name; cgroup;
process:thread, with @CPU where CPUs are separated; end; state of a wait; frames as image+position,
with k for the kernel, or function(runtime:file:first line):line@image; the count. Every rule of the
format is checked on the way: a file that breaks one ends the program with exit code 1 and a line
that says which.
"""
import collections
import struct
import sys

HEADER = struct.Struct("<8sIIQI4sQ24s")
NODE = struct.Struct("<IHHQQQ")
ROOT, EVENT, APP, COMM, CGROUP, THREAD, END, FRAME, KERNEL, TEXT, STATE, RUNTIME, WAKER = range(13)
ABOVE = {THREAD, END, STATE, FRAME, KERNEL, RUNTIME}
BELOW = {EVENT: {ROOT}, APP: {EVENT}, COMM: {APP}, CGROUP: {COMM}, THREAD: {CGROUP}, END: {THREAD},
         FRAME: ABOVE, KERNEL: ABOVE, RUNTIME: ABOVE, TEXT: {ROOT, TEXT}, STATE: {THREAD, END},
         WAKER: {STATE, FRAME, KERNEL, RUNTIME}}
ENDS = ("complete", "cut", "no_row", "left_code", "no_table_yet", "too_deep", "no_room", "guessed")
STATES = (None, "blocked", "disk", "uninterruptible", "runnable", "preempted", "frozen")

Node = collections.namedtuple("Node", "parent kind records value image count")


class FormatError(Exception):
    """A file that breaks the rules of the format."""


def require(condition, text):
    if not condition:
        raise FormatError(text)


class Stacks:
    """`nodes` up to the first that breaks a rule; `fault` says which rule, or is None."""

    def __init__(self, data):
        require(len(data) >= HEADER.size, "shorter than a header")
        magic, node_bytes, nr_nodes, self.no_room, self.nr_cut, _, self.no_room_us, _ = HEADER.unpack_from(data)
        require(magic == b"opdstck1", "bad magic %r" % magic)
        require(node_bytes == NODE.size and 1 <= nr_nodes <= 1 << 25, "nodes of %d bytes, %d of them" % (node_bytes, nr_nodes))
        self.nodes, self.fault, self.nr_published = [], None, nr_nodes
        try:
            for number in range(nr_nodes):
                require(HEADER.size + (number + 1) * NODE.size <= len(data), "the file ends before node %d" % number)
                node = Node(*NODE.unpack_from(data, HEADER.size + number * NODE.size))
                self.check(number, node)
                self.nodes.append(node)
        except FormatError as error:
            self.fault = str(error)
        require(self.nodes, self.fault)

    def check(self, number, node):
        where = "node %d: " % number
        if not number:
            require(node.kind == ROOT and not node.parent, where + "no root")
            return
        require(node.kind in BELOW, where + "kind %d" % node.kind)
        require(node.parent < number, where + "its parent %d comes later" % node.parent)
        require(self.nodes[node.parent].kind in BELOW[node.kind], where + "kind %d below %d" % (
            node.kind, self.nodes[node.parent].kind))
        if node.kind == EVENT or (node.kind in (CGROUP, WAKER) and node.value):
            require(node.value < number and self.nodes[node.value].kind == TEXT, where + "no text")
        if node.kind == RUNTIME:
            text = node.value & 0xffffffff
            require(text < number and self.nodes[text].kind == TEXT, where + "no text")
        if node.kind == END:
            require(1 <= node.value < len(ENDS), where + "end %d" % node.value)

        if node.kind == STATE:
            require(1 <= node.value < len(STATES), where + "state %d" % node.value)

    def path(self, number):
        nodes = []
        while number:
            nodes.append(self.nodes[number])
            number = self.nodes[number].parent
        return nodes[::-1]

    def text(self, number):
        data = b"".join(struct.pack("<QQ", node.value, node.image) for node in self.path(number))
        return data.rstrip(b"\0").decode("utf-8", "surrogateescape")

    def total(self):
        return sum(node.count for node in self.nodes)

    def shown(self, node):
        if node.kind in (EVENT, CGROUP):
            return self.text(node.value) if node.value else "-"
        if node.kind == COMM:
            return struct.pack("<QQ", node.value, node.image).rstrip(b"\0").decode("utf-8", "surrogateescape")
        if node.kind == APP:
            return str(node.image)
        if node.kind == THREAD:
            return "%d:%d%s" % (node.value >> 32, node.value & 0xffffffff, "@%d" % (node.image - 1) if node.image else "")
        if node.kind == END:
            return "[%s]" % ENDS[node.value]
        if node.kind == RUNTIME:
            words = self.text(node.value & 0xffffffff).split("\x1f")
            return "%s(%s):%d@%d" % (words[2], ":".join((words[0], words[1], words[3])), node.value >> 32, node.image)
        if node.kind == STATE:
            return "[%s]" % STATES[node.value]
        if node.kind == WAKER:
            return "woken by %s@%d" % (self.text(node.value) if node.value else "-", node.image)
        return "%d+0x%x%s" % (node.image, node.value, "k" if node.kind == KERNEL else "")

    def records(self):
        """{line of a stack: how many waits are in its count}"""
        found = collections.Counter()
        for number, node in enumerate(self.nodes):
            if node.records:
                found[";".join(self.shown(step) for step in self.path(number))] += node.records
        return found

    def stacks(self):
        """{line of a stack: count}"""
        found = collections.Counter()
        for number, node in enumerate(self.nodes):
            if node.count:
                found[";".join(self.shown(step) for step in self.path(number))] += node.count
        return found


def read(path):
    with open(path, "rb") as stream:
        return Stacks(stream.read())


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: stacks.py FILE")
    try:
        stacks = read(sys.argv[1])
    except FormatError as error:
        sys.exit("stacks.py: %s" % error)
    for line, count in sorted(stacks.stacks().items()):
        print(line, count)
    if stacks.fault:
        sys.exit("stacks.py: %s" % stacks.fault)


if __name__ == "__main__":
    main()
