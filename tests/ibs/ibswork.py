# SPDX-License-Identifier: GPL-3.0-or-later
"""
Generates IBS samples in the functions of a real binary, and the expected result: for each derived
event and function the sum that predicates.py computes, and the facts of the memory view. This file
does not use opd's decoder.
"""
import bisect
import collections
import struct

import ibsdata
import predicates

# Damages after which a sample still has an address, or cannot be decoded.
DAMAGES = (ibsdata.damage_val, ibsdata.damage_caps, ibsdata.damage_short, ibsdata.damage_uneven, ibsdata.damage_extra,
           ibsdata.unknown_caps, ibsdata.missing_words, ibsdata.old_fetch)
USELESS_LENGTHS = (0, 3, 4, 12, 27, 29, 59, 61)
BUCKET_STEPS = 8
SOURCE_EVENTS = {0xf260: "L1", 0xf261: "L2", 0xf262: "L3", 0xf263: "node cache", 0xf264: "near cache", 0xf265: "far cache",
                 0xf266: "DRAM", 0xf267: "DRAM", 0xf268: "PMEM", 0xf269: "PMEM", 0xf26a: "CXL", 0xf26b: "CXL", 0xf26c: "IO",
                 0xf26d: "peer"}

Placed = collections.namedtuple("Placed", "record ip")


class Functions:
    """Functions of an image that is mapped somewhere; [(name, first offset, offset after the
    last)], as elfsyms has them.
    """

    def __init__(self, ranges, base):
        self.ranges = sorted({start: (start, end, name) for name, start, end in ranges if end > start}.values())
        self.starts = [start for start, _, _ in self.ranges]
        self.base = base

    def random_address(self, rng):
        start, end, _ = rng.choice(self.ranges)
        return self.base + rng.randrange(start, end)

    def name_at(self, address):
        at = bisect.bisect_right(self.starts, address - self.base) - 1
        return self.ranges[at][2] if at >= 0 and address - self.base < self.ranges[at][1] else None


def cut_short(record):
    return record._replace(reason="cut short", alike=False)


def wrong_length(rng, record):
    length = rng.choice([n for n in USELESS_LENGTHS if n < len(record.payload) and (record.kind == ibsdata.OP or n != 59)])
    short = length < 4 + 8 * ibsdata.WORDS_MIN[record.kind]
    return record._replace(payload=record.payload[:length], alike=False,
                           reason="too few registers" if short else "no whole number of registers")


def random_placed(rng, cpu, functions, damaged):
    """One sample. The address in its registers and the interrupted address are in two functions."""
    kind = ibsdata.FETCH if rng.random() < 0.4 else ibsdata.OP
    words = ibsdata.random_words(rng, kind, ibsdata.announced(kind, cpu.caps))
    words[1] = functions.random_address(rng)
    record = ibsdata.Record(kind, ibsdata.pack(cpu.caps, words), "decoded", True)
    if rng.random() < damaged:
        choice = rng.randrange(len(DAMAGES) + 2)
        if choice < len(DAMAGES):
            record = ibsdata.Record(kind, *DAMAGES[choice](rng, cpu, kind, words), False)
        else:
            record = cut_short(record) if choice == len(DAMAGES) else wrong_length(rng, record)
    return Placed(record, functions.random_address(rng))


def address_of(placed):
    """The address at which a sample is counted."""
    return struct.unpack_from("<Q", placed.record.payload, 12)[0] if ibsdata.has_address(placed.record) else placed.ip


def bucket_last(latency):
    """The last latency of a bucket: one bucket for each latency up to 15, then eight for each
    doubling.
    """
    if latency < 2 * BUCKET_STEPS:
        return latency
    width = 1 << latency.bit_length() - 4
    return latency // width * width + width - 1


def memory_facts(cpu, placed):
    """[(fact, amount)] of the memory view for one op."""
    events = predicates.events(cpu, ibsdata.OP, placed.record.payload)
    caps, *words = struct.unpack_from("<I7Q", placed.record.payload)
    facts = [(fact, 1) for fact, number in (("loads", 0xf201), ("stores", 0xf202), ("tlb hits", 0xf203), ("tlb l2 hits", 0xf204),
                                            ("tlb misses", 0xf205), ("branches", 0xf103), ("mispredicted", 0xf104),
                                            ("remote", 0xf241)) if number in events]
    facts += [("source " + name, 1) for number, name in SOURCE_EVENTS.items() if number in events]
    prefetch = predicates.has_l2_bits(cpu) and predicates.bits(words[4], 21)
    if 0xf201 in events and 0xf206 in events and not prefetch:
        latency = predicates.bits(words[4], 32, 47)
        facts += [("latency sum", latency), ("bucket %d" % bucket_last(latency), 1)]
    return facts


def expected(cpu, samples, functions):
    """({event number: {function: amount}}, {function: {fact: amount}}, {kind: {reason: samples}}).
    """
    events = collections.defaultdict(collections.Counter)
    memory = collections.defaultdict(collections.Counter)
    reasons = (collections.Counter(), collections.Counter())
    for placed in samples:
        record = placed.record
        reasons[record.kind][record.reason] += 1
        if record.reason != "decoded":
            continue
        name = functions.name_at(address_of(placed))
        for number, amount in predicates.events(cpu, record.kind, record.payload).items():
            events[number][name] += amount
        if record.kind == ibsdata.OP:
            for fact, amount in memory_facts(cpu, placed):
                memory[name][fact] += amount
    return events, memory, reasons
