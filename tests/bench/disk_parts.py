#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Shows what the disk space of a session is used for. Usage: disk_parts.py SESSION-DIR.

It prints the blocks of: nodes in use, hash tables, the rest of the sample files (headers, free
nodes, ends of last blocks), directories, and other files. Then it prints the addresses: how many
there are, how many have one sample, and how they are distributed over kinds of images and files.
"""
import collections
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "format"))
import reader  # noqa: E402

PARTS = ("nodes in use", "hash tables", "room and heads", "directories", "table of images", "other files")
VALUE = struct.Struct("<8xI4x")
NODE_BYTES = reader.NODE.size
BLOCK = 512
LARGEST = 5
LIMITS = (16, 128, 512, 2048, 8192)


class Parts:
    """The bytes of a session by part, and the nodes of its sample files."""

    def __init__(self):
        self.bytes = collections.Counter({part: 0 for part in PARTS})
        self.files = []  # (nodes in use, path) of each sample file
        self.nodes, self.once, self.samples = 0, 0, 0
        self.kinds = collections.Counter()
        # by application: samples, addresses, bytes with the directories that are its own
        self.apps = collections.defaultdict(lambda: [0, 0, 0])

    def total(self):
        return sum(self.bytes.values())


def kind_of(path):
    """What the samples lie in, by the last image of the path."""
    image = path.rsplit("{dep}/", 1)[1]
    if image.startswith("{kern}/") or image.startswith("{root}/proc/kallsyms/"):
        return "kernel"
    return "anonymous" if image.startswith("{anon:") else "files"


def app_of(path):
    return path.split("/", 2)[2].split("/{dep}", 1)[0]


def add_sample_file(parts, path, data, blocks):
    size, current_size = struct.unpack_from("<II", data, reader.HEADER.size)
    used, table = NODE_BYTES * (current_size - 1), 4 * size if any(data[reader.NODES_OFFSET + NODE_BYTES * size:]) else 0
    parts.bytes["nodes in use"] += used
    parts.bytes["hash tables"] += table
    parts.bytes["room and heads"] += blocks - used - table
    first = reader.NODES_OFFSET + NODE_BYTES
    values = [value for value, in VALUE.iter_unpack(data[first:first + used])]
    for i, number in enumerate((sum(values), len(values), blocks)):
        parts.apps[app_of(path)][i] += number
    parts.nodes += len(values)
    parts.once += values.count(1)
    parts.samples += sum(values)
    parts.kinds[kind_of(path)] += len(values)
    parts.files.append((len(values), path))


def find(session_dir):
    """Everything below the session directory; nobody counts in it meanwhile."""
    parts = Parts()
    for directory, names, files in os.walk(session_dir):
        for name in names + files:
            path = os.path.join(directory, name)
            blocks = os.lstat(path).st_blocks * BLOCK
            if name in names:
                parts.bytes["directories"] += blocks
                if "/{dep}" in path:
                    parts.apps[app_of(os.path.relpath(path, session_dir))][2] += blocks
            elif "{dep}/" in path and not name.endswith(".jo"):
                with open(path, "rb") as stream:
                    add_sample_file(parts, os.path.relpath(path, session_dir), stream.read(), blocks)
            else:
                parts.bytes["table of images" if name == "dcookies" else "other files"] += blocks
    return parts


def show(parts):
    total = parts.total()
    for part in PARTS:
        print("%-16s %12.0f kB %6.1f %%" % (part, parts.bytes[part] / 1e3, 100 * parts.bytes[part] / total))
    print("%-16s %12.0f kB, %.1f bytes for each address" % ("all", total / 1e3, total / max(1, parts.nodes)))
    print("%d samples at %d addresses, %d of them once: %s" % (
        parts.samples, parts.nodes, parts.once, ", ".join("%s %d" % kind for kind in sorted(parts.kinds.items()))))
    below = ["%d of fewer than %d" % (sum(nodes < limit for nodes, _ in parts.files), limit) for limit in LIMITS]
    print("%d files: %s addresses" % (len(parts.files), ", ".join(below)))
    for nr_nodes, path in sorted(parts.files, reverse=True)[:LARGEST]:
        print("%12d %s" % (nr_nodes, path.split("/", 2)[2]))


if __name__ == "__main__":
    show(find(sys.argv[1]))
