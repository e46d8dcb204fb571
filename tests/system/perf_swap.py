# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes perf.data files apart for the tests of opimport: single records, a flag that the kernel
sets wrongly, and a copy in the other byte order. Written from perf.data-file-format.txt and
perf_event_open(2).
"""
import collections
import copy
import struct

MAGIC = b"PERFILE2"
FILE_HEADER_WORDS = 13
MMAP, LOST, COMM, EXIT, THROTTLE, UNTHROTTLE = range(1, 7)
FORK, SAMPLE, MMAP2, LOST_SAMPLES, KSYMBOL, BPF_EVENT = 7, 9, 10, 13, 17, 18
FINISHED_ROUND, ID_INDEX, COMPRESSED = 68, 69, 81
IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD = 1 << 16, 1, 2, 4, 8, 64, 512, 128, 256
MISC_BUILD_ID = 1 << 14
SAMPLE_WORDS = ((IDENTIFIER, "q"), (IP, "q"), (TID, "dd"), (TIME, "q"), (ADDR, "q"), (ID, "q"), (STREAM_ID, "q"),
                (CPU, "dd"), (PERIOD, "q"))
TRAILER_WORDS = ((TID, "dd"), (TIME, "q"), (ID, "q"), (STREAM_ID, "q"), (CPU, "dd"), (IDENTIFIER, "q"))
# The numbers in a body by their sizes (d: 4 bytes, q: 8, w: 2); the rest of the body is a name.
BODIES = {MMAP: "ddqqq", LOST: "qq", COMM: "dd", EXIT: "ddddq", FORK: "ddddq", THROTTLE: "qqq", UNTHROTTLE: "qqq",
          MMAP2: "ddqqqddqqdd", LOST_SAMPLES: "q", KSYMBOL: "qdww", BPF_EVENT: "wwd"}
SIZES = {"d": 4, "q": 8, "w": 2}
ATTR_SHAPE = "ddqqqq"
KEPT_FEATURES = (3, 4, 6, 12)
EVENT_DESC = 12

Record = collections.namedtuple("Record", "offset type misc size")


class PerfData:
    """A file of this host's byte order, in memory."""

    def __init__(self, path):
        with open(path, "rb") as stream:
            self.bytes = bytearray(stream.read())
        self.words = struct.unpack_from("<13Q", self.bytes)
        self.attr_size, self.attrs, self.data = self.words[2], self.words[3:5], self.words[5:7]
        first = self.attrs[0]
        self.sample_type = struct.unpack_from("<Q", self.bytes, first + 24)[0]
        flags = [struct.unpack_from("<Q", self.bytes, at + 40)[0]
                 for at in range(first, first + self.attrs[1], self.attr_size)]
        self.sample_id_all = bool(flags[0] >> 18 & 1)
        self.asks_build_ids = any(flag >> 34 & 1 for flag in flags)

    def records(self):
        at, end = self.data[0], self.data[0] + self.data[1]
        while at < end:
            record = Record(at, *struct.unpack_from("<IHH", self.bytes, at))
            yield record
            at += record.size

    def part(self, path):
        """A file of the directory that this is the first file of: records from beginning to end."""
        part = copy.copy(self)
        with open(path, "rb") as stream:
            part.bytes = bytearray(stream.read())
        part.data = (0, len(part.bytes))
        return part

    def mend_flags(self):
        """Clears the flag that the kernel leaves set for another profiler, and that makes perf
        abort. Returns how many records had it.
        """
        nr_mended = 0
        for record in self.records():
            if record.type == MMAP2 and record.misc & MISC_BUILD_ID and not self.asks_build_ids:
                struct.pack_into("<H", self.bytes, record.offset + 4, record.misc & ~MISC_BUILD_ID)
                nr_mended += 1
        return nr_mended

    def write(self, path, data=None):
        with open(path, "wb") as stream:
            stream.write(self.bytes if data is None else data)

    def trailer(self):
        return "".join(shape for bit, shape in TRAILER_WORDS if self.sample_type & bit) if self.sample_id_all else ""

    # ---- the other byte order ----

    def swap_record(self, out, record):
        at, end = record.offset + 8, record.offset + record.size
        swap(out, record.offset, "dww")
        if record.type == SAMPLE:
            swap(out, at, "".join(shape for bit, shape in SAMPLE_WORDS if self.sample_type & bit))
        elif record.type in BODIES:
            swap(out, at, BODIES[record.type])
            swap(out, end - sum(SIZES[c] for c in self.trailer()), self.trailer())
        elif record.type == ID_INDEX:
            swap(out, at, "q" * ((end - at) // 8))
        elif record.type != FINISHED_ROUND:
            raise ValueError("a record of type %d is not swapped" % record.type)

    def swap_attr(self, out, at, size):
        swap(out, at, ATTR_SHAPE[:2] + ATTR_SHAPE[2:])
        out[at + 40:at + 48] = bytes(int("{:08b}".format(byte)[::-1], 2) for byte in out[at + 40:at + 48])
        swap(out, at + 48, "dd" + "q" * 4 + "dd" + "q" + "dwwdd" [:5] + "q"[:max(0, (size - 120) // 8)])

    def swap_feature(self, out, number, at):
        length, = struct.unpack_from("<I", self.bytes, at)
        swap(out, at, "d")
        if number != EVENT_DESC:
            return
        attr_size, = struct.unpack_from("<I", self.bytes, at + 4)
        swap(out, at + 4, "d")
        at += 8
        for _ in range(length):
            self.swap_attr(out, at, attr_size)
            at += attr_size
            nr_ids, name_bytes = struct.unpack_from("<II", self.bytes, at)
            swap(out, at, "dd")
            at += 8 + name_bytes
            swap(out, at, "q" * nr_ids)
            at += 8 * nr_ids

    def swapped(self):
        """The same file as a machine of the other byte order writes it, without the parts that only
        perf's own reports need.
        """
        skipped = {66, 73, 74, 78, 79, 82}
        records = [r for r in self.records() if r.type not in skipped]
        body = bytearray(self.bytes)
        for record in records:
            self.swap_record(body, record)
        data = b"".join(bytes(body[r.offset:r.offset + r.size]) for r in records)
        for at in range(self.attrs[0], self.attrs[0] + self.attrs[1], self.attr_size):
            offset, size = struct.unpack_from("<QQ", self.bytes, at + self.attr_size - 16)
            self.swap_attr(body, at, self.attr_size - 16)
            swap(body, at + self.attr_size - 16, "qq")
            swap(body, offset, "q" * (size // 8))
        out = bytearray(body[:self.data[0]]) + data
        table, bits, place = bytearray(), 0, len(out) + 16 * len(KEPT_FEATURES)
        sections = b""
        for number, (offset, size) in self.features():
            if number not in KEPT_FEATURES:
                continue
            self.swap_feature(body, number, offset)
            table += struct.pack(">QQ", place + len(sections), size)
            sections += bytes(body[offset:offset + size])
            bits |= 1 << number
        words = list(self.words[:5]) + [self.data[0], len(data), 0, 0, bits, 0, 0, 0]
        struct.pack_into(">13Q", out, 0, *words)
        out[:8] = MAGIC[::-1]
        return bytes(out + table + sections)

    def features(self):
        at = sum(self.data)
        for number in range(256):
            if self.words[9 + number // 64] >> number % 64 & 1:
                yield number, struct.unpack_from("<QQ", self.bytes, at)
                at += 16


def swap(out, at, shape):
    """Turns the bytes of each number round, in place."""
    for kind in shape:
        size = SIZES[kind]
        out[at:at + size] = out[at:at + size][::-1]
        at += size
