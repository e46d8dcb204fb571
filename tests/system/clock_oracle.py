# SPDX-License-Identifier: GPL-3.0-or-later
"""A second opinion on the samples of opd's TIMER."""
import array
import fcntl
import mmap
import os
import struct
import threading

import opdtest

RING_BYTES = 32 << 20
PAGE = mmap.PAGESIZE
HEAD_AT, TAIL_AT = 1024, 1032  # in the control page
ENABLE, DISABLE = 0x2400, 0x2401
SAMPLE_TYPE, IDLE_LEFT_OUT = 3, 1 << 7  # PERF_SAMPLE_IP and _TID; attr.exclude_idle
LOOK_SECONDS = 1  # a ring has room for the samples of many of these
LOST, SAMPLE, MODES, USER = 2, 9, 7, 2  # PERF_RECORD_LOST and _SAMPLE; the part of `misc` that says where the CPU was


class ClockOracle:
    """An independent timer on every CPU, with rings that are large and never swapped. It has the samples
    of the time for which it is entered. A thread makes room in the rings, however long that is.
    """

    def __init__(self, period_ns):
        self.samples, self.rings, self.lost = array.array("Q"), [], False
        self.has_ended, self.reader = threading.Event(), threading.Thread(target=self.read_on, daemon=True)
        for cpu in range(os.sysconf("SC_NPROCESSORS_CONF")):
            event = opdtest.open_event(0, period_ns, SAMPLE_TYPE, cpu, True, IDLE_LEFT_OUT)
            if event is not None:  # the CPU is online
                self.rings.append((event, mmap.mmap(event, PAGE + RING_BYTES)))

    def __enter__(self):
        for event, _ in self.rings:
            fcntl.ioctl(event, ENABLE, 0)
        self.reader.start()
        return self

    def __exit__(self, *_):
        for event, _ in self.rings:
            fcntl.ioctl(event, DISABLE, 0)
        self.has_ended.set()
        self.reader.join()
        for event, ring in self.rings:
            ring.close()
            os.close(event)
        opdtest.require(not self.lost, "the ring of the second timer was full")

    def read_on(self):
        is_last = False
        while not is_last:
            is_last = self.has_ended.wait(LOOK_SECONDS)
            for _, ring in self.rings:
                self.read(ring)

    def read(self, ring):
        """Keeps process, mode and place in the page of each sample. No part of 8 bytes crosses the end of
        the ring.
        """
        head, = struct.unpack_from("=Q", ring, HEAD_AT)
        at, = struct.unpack_from("=Q", ring, TAIL_AT)
        while at < head:
            kind, misc, size = struct.unpack_from("=IHH", ring, PAGE + at % RING_BYTES)
            self.lost = self.lost or not size or kind == LOST
            if not size:
                return
            if kind == SAMPLE:
                address, = struct.unpack_from("=Q", ring, PAGE + (at + 8) % RING_BYTES)
                pid, = struct.unpack_from("=I", ring, PAGE + (at + 16) % RING_BYTES)
                self.samples.append(pid << 17 | (misc & MODES == USER) << 16 | address % PAGE)
            at += size
        struct.pack_into("=Q", ring, TAIL_AT, head)

    def nr_of(self, pid):
        return sum(sample >> 17 == pid for sample in self.samples)

    def nr_in(self, pids, ranges):
        """The samples of processes in functions of their program, which lies at any page."""
        return sum(sample >> 17 in pids and sample >> 16 & 1 and
                   any((sample % (1 << 16) - start) % PAGE < end - start for start, end in ranges) for sample in self.samples)
