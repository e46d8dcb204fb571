# SPDX-License-Identifier: GPL-3.0-or-later
"""A perf.data file as perf writes it on a machine of either byte order, made from
perf.data-file-format.txt and perf_event_open(2): two events with sample_id_all, processes with
mappings by inode and by build-id, stacks by frame pointers, losses, kernel code that comes.
"""
import struct

MMAP2, LOST, COMM, EXIT, FORK, SAMPLE, KSYMBOL, MMAP = 10, 2, 3, 4, 7, 9, 17, 1
FINISHED_ROUND, BUILD_ID_RECORD = 68, 67
KERNEL_MODE, USER_MODE, HAS_BUILD_ID, IS_EXEC = 1, 2, 1 << 14, 1 << 13
IN_KERNEL, IN_USER = (1 << 64) - 128, (1 << 64) - 512  # marks in a call chain
SAMPLE_TYPE = 1 << 16 | 1 | 2 | 4 | 1 << 5 | 1 << 7 | 1 << 8  # identifier, ip, tid, time, chain, cpu, period
FLAGS = {"mmap": 8, "comm": 9, "task": 13, "sample_id_all": 18, "mmap2": 23, "comm_exec": 24, "ksymbol": 29, "build_id": 34}
ATTR_BYTES, HEADER_BYTES = 128, 104
BUILD_ID, HOSTNAME, RELEASE, ARCH, EVENT_DESC = 2, 3, 4, 6, 12
EVENTS = ("cpu-clock", 0, 1000000, 501), ("page-faults", 2, 1, 502)
KERNEL, KERNEL_BYTES, PROGRAM_OF_BPF = 0xffffffff81000000, 0x1000000, 0xffffffffc0100000


class Recording:
    """Of the host `host` and the machine `arch`; `is_big` is its byte order."""

    def __init__(self, is_big, host, arch):
        self.order, self.is_big = "<>"[is_big], is_big
        self.host, self.arch, self.time, self.data, self.build_ids = host, arch, 10 ** 9, [], []
        self.sampled = {}

    def pack(self, shape, *values):
        return struct.pack(self.order + shape, *values)

    def name(self, text):
        """Padded to words, with a NUL at least."""
        data = text.encode()
        return data + bytes(8 - len(data) % 8)

    def put(self, kind, misc, body, pid=0, event=0):
        """A record of the kernel, with the trailer of sample_id_all where it is no sample."""
        if kind not in (SAMPLE, FINISHED_ROUND):
            body += self.pack("IIQIIQ", pid, pid, self.time, 0, 0, EVENTS[event][3])
        self.time += 1000
        self.data.append(self.pack("IHH", kind, misc, 8 + len(body)) + body)

    def kernel(self):
        self.put(MMAP, KERNEL_MODE, self.pack("iIQQQ", -1, 0, KERNEL, KERNEL_BYTES, KERNEL) + self.name("[kernel.kallsyms]_text"))
        self.put(KSYMBOL, KERNEL_MODE, self.pack("QIHH", PROGRAM_OF_BPF, 64, 1, 0) + self.name("bpf_prog_0011223344556677_count"))

    def process(self, pid, parent, comm):
        self.put(FORK, 0, self.pack("IIIIQ", pid, parent, pid, parent, self.time), parent)
        self.put(COMM, IS_EXEC, self.pack("II", pid, pid) + self.name(comm), pid)

    def mapping(self, pid, path, start, nr_bytes, offset, build_id=None, inode=0):
        if build_id:
            misc, what = USER_MODE | HAS_BUILD_ID, bytes((len(build_id), 0, 0, 0)) + build_id.ljust(20, b"\0")
        else:
            misc, what = USER_MODE, self.pack("IIQQ", 8, 1, inode, 0)
        self.put(MMAP2, misc, self.pack("IIQQQ", pid, pid, start, nr_bytes, offset) + what + self.pack("II", 5, 2) +
                 self.name(path), pid)

    def file_build_id(self, path, build_id):
        """In the list that perf writes at the end."""
        body = self.pack("i", -1) + build_id.ljust(20, b"\0") + bytes((len(build_id), 0, 0, 0)) + self.name(path)
        self.build_ids.append(self.pack("IHH", BUILD_ID_RECORD, USER_MODE | 1 << 15, 8 + len(body)) + body)

    def sample(self, pid, frames, count=1, event=0, kernel=()):
        """`frames` from the function that ran to the outermost caller."""
        chain = ([IN_KERNEL, *kernel] if kernel else []) + ([IN_USER, *frames] if frames else [])
        for _ in range(count):
            body = self.pack("QQIIQIIQ", EVENTS[event][3], (kernel or frames)[0], pid, pid, self.time, pid % 2, 0, EVENTS[event][2])
            self.put(SAMPLE, KERNEL_MODE if kernel else USER_MODE, body + self.pack("%dQ" % (1 + len(chain)), len(chain), *chain))
        self.sampled[event] = self.sampled.get(event, 0) + count

    def lost(self, number, event=0):
        self.put(LOST, 0, self.pack("QQ", EVENTS[event][3], number), event=event)

    def exit(self, pid, parent):
        self.put(EXIT, 0, self.pack("IIIIQ", pid, parent, pid, parent, self.time), pid)

    def round(self):
        self.put(FINISHED_ROUND, 0, b"")

    def attr(self, config, period):
        """The flags are bit fields: a big-endian machine begins them at the other end of each byte."""
        flags = sum(1 << bit for bit in FLAGS.values()).to_bytes(8, "little")
        if self.is_big:
            flags = bytes(int("{:08b}".format(byte)[::-1], 2) for byte in flags)
        head = self.pack("IIQQQQ", 1, ATTR_BYTES, config, period, SAMPLE_TYPE, 4)
        return (head + flags).ljust(ATTR_BYTES, b"\0")

    def text(self, text):
        data = self.name(text)
        return self.pack("I", len(data)) + data

    def event_desc(self):
        body = self.pack("II", len(EVENTS), ATTR_BYTES)
        for name, config, period, identifier in EVENTS:
            body += self.attr(config, period) + self.pack("I", 1) + self.text(name) + self.pack("Q", identifier)
        return body

    def file(self):
        ids_at = HEADER_BYTES
        attrs_at = ids_at + 8 * len(EVENTS)
        data_at = attrs_at + (ATTR_BYTES + 16) * len(EVENTS)
        data = b"".join(self.data)
        sections = {BUILD_ID: b"".join(self.build_ids), HOSTNAME: self.text(self.host), RELEASE: self.text("6.1.0-other"),
                    ARCH: self.text(self.arch), EVENT_DESC: self.event_desc()}
        words = (HEADER_BYTES, ATTR_BYTES + 16, attrs_at, data_at - attrs_at, data_at, len(data), 0, 0,
                 sum(1 << number for number in sections), 0, 0, 0)
        out = (b"PERFILE2"[::-1] if self.is_big else b"PERFILE2") + self.pack("12Q", *words)
        out += b"".join(self.pack("Q", event[3]) for event in EVENTS)
        for i, (_, config, period, _) in enumerate(EVENTS):
            out += self.attr(config, period) + self.pack("QQ", ids_at + 8 * i, 8)
        out += data
        place = len(out) + 16 * len(sections)
        for number in sorted(sections):
            out += self.pack("QQ", place, len(sections[number]))
            place += len(sections[number])
        return out + b"".join(sections[number] for number in sorted(sections))
