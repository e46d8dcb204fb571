# SPDX-License-Identifier: GPL-3.0-or-later
"""
Generates IBS samples: payloads of PERF_SAMPLE_RAW for CPUs of every generation, valid and damaged,
and perf.data files with them. Written from the description of the registers (doc/ibs.md), not from
the decoder.
"""
import collections
import os
import struct

FETCH, OP = 0, 1
KIND_NAMES = ("fetch", "op")
PMU_TYPES = (8, 9)
WORDS_MIN = (3, 7)

CAP_AVAIL, CAP_BR_TARGET, CAP_FETCH_EXTD, CAP_DATA4, CAP_ZEN4 = 1 << 0, 1 << 5, 1 << 9, 1 << 10, 1 << 11
CAPS_KNOWN = (1 << 20) - 1

FETCH_VAL, FETCH_EN = 1 << 49, 1 << 48
OP_VAL, OP_EN = 1 << 18, 1 << 17

Cpu = collections.namedtuple("Cpu", "family model caps")
CPUS = (
    Cpu(0x10, 0x02, 0x7), Cpu(0x10, 0x0a, 0x1f), Cpu(0x12, 0x01, 0xff), Cpu(0x14, 0x02, 0xff), Cpu(0x15, 0x02, 0xff),
    Cpu(0x15, 0x13, 0xff), Cpu(0x15, 0x30, 0xff), Cpu(0x15, 0x65, 0x7ff), Cpu(0x16, 0x00, 0xff), Cpu(0x17, 0x31, 0x3ff),
    Cpu(0x19, 0x01, 0x3ff), Cpu(0x19, 0x21, 0x3ff), Cpu(0x19, 0x44, 0x3fd), Cpu(0x19, 0x11, 0xbff), Cpu(0x1a, 0x02, 0x81bff),
    Cpu(0x1a, 0x44, 0x81bff), Cpu(0x1a, 0x51, 0x9fbff),
)

# Why a record cannot be decoded, in the words of the decoder; "decoded" is a valid record.
REASONS = ("decoded", "cut short", "too few registers", "no whole number of registers", "no capability word",
           "more registers than announced", "not valid", "no address")

# alike: perf 6.1 understands its words as opd does.
Record = collections.namedtuple("Record", "kind payload reason alike")


def announced(kind, caps):
    """The number of registers that a present kernel stores."""
    if kind == FETCH:
        return WORDS_MIN[FETCH] + bool(caps & CAP_FETCH_EXTD)
    return WORDS_MIN[OP] + bool(caps & CAP_BR_TARGET) + bool(caps & CAP_DATA4)


def random_address(rng):
    return rng.choice((rng.getrandbits(47), 0xffffffff80000000 | rng.getrandbits(30), rng.getrandbits(56),
                       0x400000 | rng.getrandbits(20)))


def random_words(rng, kind, nr_words):
    """Random registers with valid bits for "this is a sample"; most addresses are plausible."""
    words = [rng.getrandbits(64) for _ in range(nr_words)]
    if kind == FETCH:
        words[0] |= FETCH_VAL | FETCH_EN
        words[1] = random_address(rng) or 1
        if nr_words > 3:
            words[3] = rng.getrandbits(16)
    else:
        words[0] |= OP_VAL | OP_EN
        words[1] = random_address(rng)
        for i in (2, 3, 4):
            words[i] &= rng.getrandbits(64) | rng.getrandbits(64)
        if rng.random() < 0.2:
            words[4] &= ~3
    return words


def pack(caps, words):
    return struct.pack("<I%dQ" % len(words), caps, *words)


def damage_val(rng, cpu, kind, words):
    words[0] &= ~(FETCH_VAL if kind == FETCH else OP_VAL)
    return pack(cpu.caps, words), "not valid"


def damage_caps(rng, cpu, kind, words):
    return pack(cpu.caps & ~CAP_AVAIL, words), "no capability word"


def damage_short(rng, cpu, kind, words):
    return pack(cpu.caps, words)[:rng.randrange(4 + 8 * WORDS_MIN[kind])], "too few registers"


def damage_uneven(rng, cpu, kind, words):
    return pack(cpu.caps, words) + bytes(rng.randrange(1, 8)), "no whole number of registers"


def damage_extra(rng, cpu, kind, words):
    """Three registers more than announced; no old kernel stored that many."""
    return pack(cpu.caps, words + [rng.getrandbits(64)] * 3), "more registers than announced"


def unknown_caps(rng, cpu, kind, words):
    """A future CPU: registers after the known ones are unknown, the known ones are unchanged."""
    extra = rng.randrange(3)
    if kind == FETCH and cpu.caps & CAP_DATA4 and extra == 1:
        extra = 2  # one more would be the length of old kernels
    return pack(cpu.caps | 1 << rng.randrange(20, 32), words + [rng.getrandbits(64)] * extra), "decoded"


def missing_words(rng, cpu, kind, words):
    return pack(cpu.caps, words[:rng.randrange(WORDS_MIN[kind], len(words) + 1)]), "decoded"


def no_address(rng, cpu, kind, words):
    if kind == FETCH:
        words[1] = 0
    is_early_zen3 = cpu.family == 0x19 and cpu.model < 0x10
    return pack(cpu.caps, words), "no address" if kind == FETCH and is_early_zen3 else "decoded"


def old_fetch(rng, cpu, kind, words):
    """A fetch as kernels before 5.10 stored it: the last words are those of an op."""
    if kind == OP or not cpu.caps & CAP_BR_TARGET:
        return pack(cpu.caps, words), "decoded"
    tail = [random_address(rng) | 0x10000] + [rng.getrandbits(64)] * bool(cpu.caps & CAP_DATA4)
    return pack(cpu.caps, words[:3] + tail), "decoded"


DAMAGES = (damage_val, damage_caps, damage_short, damage_uneven, damage_extra, unknown_caps, missing_words, no_address, old_fetch)


def random_record(rng, cpu, damaged=0.2):
    """One record, and the expected result of decoding it."""
    kind = FETCH if rng.random() < 0.4 else OP
    words = random_words(rng, kind, announced(kind, cpu.caps))
    damage = rng.choice(DAMAGES) if rng.random() < damaged else None
    if damage:
        payload, reason = damage(rng, cpu, kind, words)
    else:
        payload, reason = pack(cpu.caps, words), "decoded"
    return Record(kind, payload, reason, reason == "decoded" and damage not in (missing_words, old_fetch))


# ---- perf.data, as tools/perf/Documentation/perf.data-file-format.txt describes it ----

ATTR_BYTES = 128
HEADER_BYTES = 104
FEATURE_ARCH, FEATURE_CPUID, FEATURE_PMU_MAPPINGS, FEATURE_PMU_CAPS = 6, 9, 16, 31
SAMPLE_IP, SAMPLE_TID, SAMPLE_TIME, SAMPLE_RAW, SAMPLE_IDENTIFIER = 1 << 0, 1 << 1, 1 << 2, 1 << 10, 1 << 16
SAMPLE_TYPE = SAMPLE_IDENTIFIER | SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_RAW
EVENT_IDS = (101, 102)
SECOND_ID = 103
RECORD_SAMPLE, RECORD_MMAP2, MISC_USER, MISC_USER_EXACT = 9, 10, 2, 0x4002
PERIOD = 100000
PID = 77
OP_CNT_CTL = 1 << 19
RIP_INVALID, CAP_RIP_INVALID = 1 << 38, 1 << 7
PROT_EXEC = 5


def string(text):
    data = text.encode() + b"\0"
    data += bytes(-len(data) % 64)
    return struct.pack("<I", len(data)) + data


def attr(kind, period=PERIOD, by_cycles=False):
    """The attr of fetches, or of ops counted by dispatched ops or by cycles; with sample_id_all."""
    config = OP_CNT_CTL if kind == OP and not by_cycles else 0
    data = struct.pack("<IIQQQQQ", PMU_TYPES[kind], ATTR_BYTES, config, period, SAMPLE_TYPE, 0, 1 << 18)
    return data + bytes(ATTR_BYTES - len(data))


def features(cpu):
    pmus = b"".join(struct.pack("<I", PMU_TYPES[kind]) + string("ibs_" + KIND_NAMES[kind]) for kind in (FETCH, OP))
    result = [(FEATURE_ARCH, string("x86_64")), (FEATURE_CPUID, string("AuthenticAMD,%d,%d,1" % (cpu.family, cpu.model))),
              (FEATURE_PMU_MAPPINGS, struct.pack("<I", 2) + pmus)]
    if cpu.caps & CAP_ZEN4:
        caps = struct.pack("<I", 1) + string("zen4_ibs_extensions") + string("1")
        result.append((FEATURE_PMU_CAPS, struct.pack("<I", 2) + b"".join(caps + string("ibs_" + name) for name in KIND_NAMES)))
    return result


def sample(record, number, ip=0x401000, pid=PID, event_id=None):
    """A PERF_RECORD_SAMPLE; its time is its number. The length in a record that is cut short is
    larger than the record.
    """
    event_id = event_id or EVENT_IDS[record.kind]
    raw = struct.pack("<I", len(record.payload) + 64 * (record.reason == "cut short")) + record.payload
    raw += bytes(-len(raw) % 8)
    body = struct.pack("<QQIIQ", event_id, ip, pid, pid, number) + raw
    return struct.pack("<IHH", RECORD_SAMPLE, MISC_USER_EXACT, 8 + len(body)) + body


def mapping(start, nr_bytes, offset, path, pid=PID):
    """A PERF_RECORD_MMAP2 at time 0, with the inode that the file has on this machine."""
    status, name = os.stat(path), path.encode() + b"\0"
    name += bytes(-len(name) % 8)
    body = struct.pack("<IIQQQIIQQII", pid, pid, start, nr_bytes, offset, os.major(status.st_dev), os.minor(status.st_dev),
                       status.st_ino, 0, PROT_EXEC, 2) + name + struct.pack("<IIQQ", pid, pid, 0, EVENT_IDS[FETCH])
    return struct.pack("<IHH", RECORD_MMAP2, MISC_USER, 8 + len(body)) + body


def with_address(record, ip):
    """The record with another address, if it has an address."""
    if len(record.payload) < 20:
        return record
    return record._replace(payload=record.payload[:12] + struct.pack("<Q", ip) + record.payload[20:])


def has_address(record):
    """False: the address register is invalid, and the interrupted address counts instead."""
    if record.kind == FETCH:
        return True
    caps, = struct.unpack_from("<I", record.payload)
    data, = struct.unpack_from("<Q", record.payload, 20)
    return not (caps & CAP_RIP_INVALID and data & RIP_INVALID)


def write_perf_data(path, cpu, records):
    write_perf_records(path, cpu, b"".join(sample(record, number) for number, record in enumerate(records, 1)))


def write_perf_records(path, cpu, data, second=None, without=()):
    """`second`: the attr of another event, whose samples have SECOND_ID. `without`: numbers of
    features to leave out. Returns the offset of the end of the records.
    """
    events = [(attr(kind), EVENT_IDS[kind]) for kind in (FETCH, OP)] + ([(second, SECOND_ID)] if second else [])
    ids_at = HEADER_BYTES
    attrs_at = ids_at + 8 * len(events)
    attrs_bytes = len(events) * (ATTR_BYTES + 16)
    data_at = attrs_at + attrs_bytes
    sections = [section for section in features(cpu) if section[0] not in without]
    bitmap = sum(1 << number for number, _ in sections)
    at = data_at + len(data) + 16 * len(sections)
    table = b""
    for _, content in sections:
        table += struct.pack("<QQ", at, len(content))
        at += len(content)
    with open(path, "wb") as stream:
        stream.write(struct.pack("<8s8Q4Q", b"PERFILE2", HEADER_BYTES, ATTR_BYTES + 16, attrs_at, attrs_bytes,
                                 data_at, len(data), 0, 0, bitmap, 0, 0, 0))
        stream.write(b"".join(struct.pack("<Q", number) for _, number in events))
        for index, (content, _) in enumerate(events):
            stream.write(content + struct.pack("<QQ", ids_at + 8 * index, 8))
        stream.write(data + table + b"".join(content for _, content in sections))
    return data_at + len(data)


RECORD_ATTR, RECORD_ROUND, RECORD_FEATURE = 64, 68, 80


def user_record(kind, body=b""):
    body += bytes(-len(body) % 8)
    return struct.pack("<IHH", kind, 0, 8 + len(body)) + body


def write_perf_stream(path, cpu, data):
    """As perf writes to a pipe, but with the features after the records."""
    with open(path, "wb") as stream:
        stream.write(struct.pack("<8sQ", b"PERFILE2", 16))
        for kind in (FETCH, OP):
            stream.write(user_record(RECORD_ATTR, attr(kind) + struct.pack("<Q", EVENT_IDS[kind])))
        stream.write(data + b"".join(user_record(RECORD_FEATURE, struct.pack("<Q", number) + content) for number,
                                     content in features(cpu)))
