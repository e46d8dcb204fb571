# SPDX-License-Identifier: GPL-3.0-or-later
"""Sample files for the tests of the reporting tools, in the byte order of the machine that the tools
are built for: OPD_BYTE_ORDER (big, little) where that is not this one.
"""
import ctypes
import gzip
import lzma
import os
import struct
import sys

TIMER = 4
ALL = "all.all.all"
ORDER = {"little": "<", "big": ">"}[os.environ.get("OPD_BYTE_ORDER", sys.byteorder)]
HEADER = struct.Struct(ORDER + "4s6I4xdQI4xQQ")


def bucket(key, size):
    folded = (key >> 32) ^ (key & 0xffffffff)
    return (folded ^ (folded >> 8)) & (size - 1)


def pack_zstd(data):
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_compress.restype = ctypes.c_size_t
    packed = ctypes.create_string_buffer(len(data) + 4096)
    nr_bytes = zstd.ZSTD_compress(packed, ctypes.c_size_t(len(packed)), data, ctypes.c_size_t(len(data)), 3)
    return packed.raw[:nr_bytes]


PACKERS = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": pack_zstd}


def write_samples(path, samples, cpu_type=TIMER, event=0, mask=0, count=0, kernel=0, anon_start=0):
    size = 128
    while size < len(samples) + 1:
        size *= 2
    nodes, table = bytearray(16 * size), [0] * size
    for i, (key, value) in enumerate(samples, 1):
        at = bucket(key, size)
        struct.pack_into(ORDER + "QII", nodes, 16 * i, key, value, table[at])
        table[at] = i
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as stream:
        stream.write(HEADER.pack(b"DAE\n", 0x13, cpu_type, event, mask, count, kernel, 0.0, 1, 0, anon_start, 0))
        stream.write(struct.pack(ORDER + "II24x", size, len(samples) + 1) + nodes +
                     struct.pack("%s%dI" % (ORDER, size), *table))


def put_image(session_dir, image, samples, event="TIMER.0.0." + ALL, session="current", app=None, **header):
    """The samples of a file in an application (by default the file itself), with the numbers in the
    event's name.
    """
    below = "{root}%s/{dep}/{root}%s/%s" % (app or image, image, event)
    fields = event.split(".")
    write_samples(os.path.join(session_dir, "samples", session, below), samples, mask=int(fields[2]),
                  count=int(fields[1]), **header)


def write_ledger(session, stored, ended="stopped", event="TIMER", count=0, **numbers):
    """The ledger of opd in a session's directory: so many samples of one event stored, and what
    else is said, lost_no_space=3.
    """
    lost = sum(value for name, value in numbers.items() if name.startswith("lost_") and name != "lost_kernel")
    values = dict(received=stored + lost, stored=stored, unattributed=0, lost_kernel=0)
    values.update(numbers)
    with open(os.path.join(session, "ledger"), "w", encoding="ascii") as stream:
        stream.write("opd-ledger 1\nended\t%s\nbegin\t1795230000.125000000\nend\t1795231800.000000000\nevent\t%s\t%d\t0\t%s\n" % (
            ended, event, count, "\t".join("%s=%d" % pair for pair in values.items())))
