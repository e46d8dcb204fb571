#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a session of sample files, independently of libop: written from the description of the format only.

usage: reader.py [--session=NAME] [--keys] [--strict] SESSION-DIR

Prints one line per sample file, tab-separated: application, image, event, count, unit mask, tgid,
tid, cpu, total.
With --keys, each is followed by its keys and counts, indented; with --strict, headers must agree
with names. Every rule of the format is checked on the way: the first
file that breaks one ends the program with exit code 1 and one line that says which and how.
"""
import argparse
import collections
import os
import re
import struct
import sys

MAGIC = b"DAE\n"
VERSION = 0x13
ORDER = {"little": "<", "big": ">"}[os.environ.get("OPD_BYTE_ORDER", sys.byteorder)]  # of the machine that wrote them
HEADER = struct.Struct(ORDER + "4s6I4xdQI4xQQ")
DESCRIPTOR = struct.Struct(ORDER + "II24s")
NODE = struct.Struct(ORDER + "QII")
PACK_HEAD = struct.Struct(ORDER + "8sIIQ")
PACK_ROW = struct.Struct(ORDER + "QII")
SEAL_BYTES = 16
NODES_OFFSET = 104
BYTES_PER_NODE = 20
CALLER_SEPARATORS = ("{dep}", "{cg}")

Header = collections.namedtuple(
    "Header", "magic version cpu_type event unit_mask count is_kernel cpu_speed mtime cg_to_is_kernel anon_start cg_to_anon_start")
Name = collections.namedtuple("Name", "app image callee event count unit_mask tgid tid cpu")


class FormatError(Exception):
    """A file or name that breaks the rules of the format."""


class SampleFile:
    """One sample file: its name taken apart, its header, and `keys`, a dictionary from key to
    count.
    """

    def __init__(self, path, name, header, keys, nr_nodes):
        self.path, self.name, self.header, self.keys, self.nr_nodes = path, name, header, keys, nr_nodes

    @property
    def total(self):
        return sum(self.keys.values())


def require(condition, path, text):
    if not condition:
        raise FormatError("%s: %s" % (path, text))


def bucket_of(key, size):
    folded = (key >> 32) ^ (key & 0xffffffff)
    return (folded ^ (folded >> 8)) & (size - 1)


def parse_header(path, data):
    require(len(data) >= HEADER.size, path, "shorter than a header")
    header = Header(*HEADER.unpack_from(data, 0))
    require(header.magic == MAGIC, path, "bad magic %r" % header.magic)
    require(header.version == VERSION, path, "version 0x%x" % header.version)
    require(header.is_kernel in (0, 1), path, "is_kernel is %d" % header.is_kernel)
    require(data[28:32] == bytes(4) and data[52:56] == bytes(4), path, "padding of the header is not zero")
    return header


def parse_descriptor(path, data):
    size, current_size, padding = DESCRIPTOR.unpack_from(data, HEADER.size)
    require(padding == bytes(24), path, "padding of the descriptor is not zero")
    require(size >= 1 and size & (size - 1) == 0, path, "size %d is no power of two" % size)
    require(len(data) == NODES_OFFSET + BYTES_PER_NODE * size, path, "length %d does not fit size %d" % (len(data), size))
    require(1 <= current_size <= size, path, "current_size %d of %d" % (current_size, size))
    return size, current_size


def check_hash(path, data, size, nodes, closed):
    """Every node is reached exactly once, from the bucket of its key; or, in a session that is
    closed, none is.
    """
    table = struct.unpack_from("%s%dI" % (ORDER, size), data, NODES_OFFSET + NODE.size * size)
    if closed and not any(table):
        return
    seen = set()
    for bucket, index in enumerate(table):
        while index:
            require(index <= len(nodes), path, "bucket %d leads to node %d, which is not in use" % (bucket, index))
            require(index not in seen, path, "node %d is reached twice" % index)
            seen.add(index)
            key, _, following = nodes[index - 1]
            require(bucket_of(key, size) == bucket, path, "key 0x%x is in bucket %d" % (key, bucket))
            index = following
    require(len(seen) == len(nodes), path, "%d of %d nodes are reached" % (len(seen), len(nodes)))


def parse_samples(path, data, check_links=True, closed=False):
    """The header, {key: count} and the number of nodes of a sample file's bytes. `check_links`
    False: the file is being written; `closed`: it never will be again.
    """
    header = parse_header(path, data)
    require(len(data) >= NODES_OFFSET, path, "shorter than header and descriptor")
    size, current_size = parse_descriptor(path, data)
    require(data[NODES_OFFSET:NODES_OFFSET + NODE.size] == bytes(NODE.size), path, "node 0 is in use")
    nodes = [NODE.unpack_from(data, NODES_OFFSET + NODE.size * i) for i in range(1, current_size)]
    if check_links:
        check_hash(path, data, size, nodes, closed)
    keys = collections.Counter()
    for key, value, _ in nodes:
        keys[key] += value
    return header, dict(keys), len(nodes)


def take_image(parts, path, first):
    """Takes one image-part off the front of the list `parts`; returns its display text as a tuple
    (kind, name).
    """
    require(parts, path, "an image is missing")
    kind = parts.pop(0)
    if kind.startswith("{anon:") and kind.endswith("}"):
        require(not first, path, "an anonymous region cannot be the application")
        require(parts, path, "the region is missing")
        region = parts.pop(0).split(".")
        require(len(region) == 3 and region[0].isdigit(), path, "bad region")
        require(all(x.startswith("0x") and int(x, 16) >= 0 for x in region[1:]), path, "bad addresses of the region")
        process = "" if region[:2] == ["0", "0x0"] else "tgid:%s " % region[0]
        label = re.sub(r"^jit-[0-9a-f]+$", "anon", kind[6:-1])  # JIT code without a name
        return "anon", "%s (%srange:%s-%s)" % (label, process, region[1], region[2])
    require(kind in ("{root}", "{kern}"), path, "image begins with %s" % kind)
    words = []
    while parts and parts[0] not in CALLER_SEPARATORS and not (len(parts) == 1):
        words.append(parts.pop(0))
    require(words and all(words), path, "empty image name")
    require(kind == "{root}" or len(words) == 1, path, "{kern} name with a slash")
    return kind[1:-1], "/" + "/".join(words)


def parse_class(text, path):
    if text == "all":
        return None
    require(text.isdigit(), path, "%r is neither a number nor all" % text)
    return int(text)


def parse_name(path):
    """Takes a path below samples/<session>/ apart."""
    parts = path.split("/")
    app = take_image(parts, path, True)
    require(parts and parts.pop(0) == "{dep}", path, "{dep} is missing")
    image, callee = take_image(parts, path, False), None
    if parts and parts[0] == "{cg}":
        parts.pop(0)
        callee = take_image(parts, path, False)
    require(len(parts) == 1, path, "no event part at the end")
    fields = parts[0].split(".")
    require(len(fields) == 6 and all(fields), path, "event part without six fields")
    require(fields[1].isdigit() and fields[2].isdigit(), path, "count and unit mask are not decimal")
    return Name(app, image, callee, fields[0], int(fields[1]), int(fields[2]), *(parse_class(f, path) for f in fields[3:]))


def check_header_against_name(path, header, name):
    """What a good writer makes agree, though a reader may not rely on it."""
    require(header.count in (name.count & 0xffffffff, 0xffffffff), path, "header says count %d" % header.count)
    require(header.unit_mask == name.unit_mask, path, "header says unit mask %d" % header.unit_mask)
    if name.event == "TIMER":
        require(header.cpu_type == 4 and header.event == 0, path,
                "TIMER with cpu_type %d event %d" % (header.cpu_type, header.event))
    if name.image[0] == "anon":
        start = int(name.image[1].rsplit("range:", 1)[1].split("-")[0], 16)
        require(header.anon_start == start, path, "anon_start 0x%x is not the region's" % header.anon_start)
    else:
        require(header.anon_start == 0, path, "anon_start without a region")
    if name.callee and name.callee[0] == "anon":
        start = int(name.callee[1].rsplit("range:", 1)[1].split("-")[0], 16)
        require(header.cg_to_anon_start == start, path, "cg_to_anon_start 0x%x is not the callee's" % header.cg_to_anon_start)
    else:
        require(header.cg_to_anon_start == 0, path, "cg_to_anon_start without a region")
    require(name.callee or not header.cg_to_is_kernel, path, "cg_to_is_kernel without a callee")
    if name.image[0] == "kern":
        require(header.is_kernel == 1 or name.image[1] not in ("/no-vmlinux",), path, "kernel image without is_kernel")


def list_files(session):
    """Paths of all sample files below a samples/<session> directory, sorted."""
    found = []
    for root in ("{root}", "{kern}"):
        for directory, _, names in os.walk(os.path.join(session, root)):
            found += [os.path.relpath(os.path.join(directory, n), session) for n in names if not n.endswith(".jo")]
    return sorted(found)


def packed_files(session):
    """{path: (header, {key: count}, number of nodes)} of the file `packed` of a samples/<session> directory."""
    try:
        with open(os.path.join(session, "packed"), "rb") as stream:
            data = stream.read()
    except FileNotFoundError:
        return {}
    magic, version, nr_files, index = PACK_HEAD.unpack_from(data)
    require(magic == b"opd-pack" and version == 1, "packed", "not a pack")
    require(index + PACK_ROW.size * nr_files + SEAL_BYTES == len(data), "packed", "another length")
    found, before = {}, b""
    for at in range(nr_files):
        offset, path_bytes, nr_nodes = PACK_ROW.unpack_from(data, index + PACK_ROW.size * at)
        path = data[offset:offset + path_bytes]
        require(before < path, "packed", "paths are not sorted")
        before = path
        offset += (path_bytes + 7) // 8 * 8
        header = parse_header(os.fsdecode(path), data[offset:offset + HEADER.size])
        keys = collections.Counter()
        for i in range(nr_nodes):
            key, value, unused = NODE.unpack_from(data, offset + HEADER.size + NODE.size * i)
            require(value and not unused, "packed", "node %d of %s" % (i, os.fsdecode(path)))
            keys[key] += value
        found[os.fsdecode(path)] = header, dict(keys), nr_nodes
    return found


def jit_object(base, path, name):
    """The object that names the JIT code of an anonymous region: {anon:LABEL}/TGID.jo beside the
    region's directory. None without one.
    """
    if name.image[0] != "anon":
        return None
    region = os.path.dirname(path)
    found = os.path.join(os.path.realpath(base), os.path.dirname(region), os.path.basename(region).split(".")[0] + ".jo")
    return found if os.path.exists(found) else None


def read_session(session_dir, session="current", live=False, strict=False):
    """
    All sample files of a session. `live`: the daemon is counting, so links between nodes are not
    looked at. `strict`: a header must
    agree with the name of its file, and all files of an image with each other.
    """
    base = os.path.join(session_dir, "samples", session)
    files, mtimes = [], {}
    in_tree = list_files(base)
    packed = packed_files(base)  # after the tree: what is packed meanwhile is there before its file is gone
    for path in sorted(set(in_tree) | set(packed)):
        name = parse_name(path)
        try:
            with open(os.path.join(base, path), "rb") as stream:
                header, keys, nr_nodes = parse_samples(path, stream.read(), not live, session != "current")
        except FileNotFoundError:
            header, keys, nr_nodes = (packed if path in packed else packed_files(base))[path]
        if strict:
            check_header_against_name(path, header, name)
            first = mtimes.setdefault(name.image, header.mtime)
            require(first == header.mtime, path, "mtime %d, another file of the image has %d" % (header.mtime, first))
        found = jit_object(base, path, name)
        if found:
            name = name._replace(image=("jo", found))
        files.append(SampleFile(path, name, header, keys, nr_nodes))
    return files


def label(image):
    return image[1]


def print_file(sample_file, with_keys):
    name = sample_file.name
    classes = ["all" if x is None else str(x) for x in (name.tgid, name.tid, name.cpu)]
    fields = [label(name.app), label(name.image)] + ([label(name.callee)] if name.callee else [])
    print("\t".join(fields + [name.event, str(name.count), str(name.unit_mask)] + classes + [str(sample_file.total)]))
    if with_keys:
        for key in sorted(sample_file.keys):
            print("\t0x%x\t%d" % (key, sample_file.keys[key]))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][7:])
    parser.add_argument("--session", default="current")
    parser.add_argument("--keys", action="store_true")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("directory")
    options = parser.parse_args()
    try:
        for sample_file in read_session(options.directory, options.session, strict=options.strict):
            print_file(sample_file, options.keys)
    except (FormatError, OSError) as error:
        print("reader.py: %s" % error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
