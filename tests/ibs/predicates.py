# SPDX-License-Identifier: GPL-3.0-or-later
"""
Computes the derived events of IBS from single bits of the registers, event by event, as the table
of oprofile 0.9.9 and the description of the registers define them. It does not use the decoder, and
its results must equal those of the decoder.
"""
import struct

FETCH, OP = 0, 1
ZEN = (0x17, 0x18, 0x19, 0x1a)
CAP_BR_TARGET, CAP_FUSE, CAP_EXTD, CAP_DATA4, CAP_ZEN4, CAP_STREAM, CAP_DTLB = (1 << n for n in (5, 8, 9, 10, 11, 16, 19))


def bits(word, low, high=None):
    high = low if high is None else high
    return word >> low & (1 << (high - low + 1)) - 1


def early(cpu, family, first, last):
    return cpu.family == family and first <= cpu.model <= last


def fetch_extd(caps, words):
    """IC_IBS_EXTD_CTL, or None where the record does not have it."""
    if not caps & CAP_EXTD or len(words) < 4:
        return None
    old = 3 + bool(caps & CAP_BR_TARGET) + bool(caps & CAP_DATA4)
    if len(words) == old and (old != 4 or words[3] >= 0x10000):
        return None
    return words[3]


def fetch_events(cpu, caps, words):
    fc = words[0]
    comp, icmiss, phys, page, l1, l2 = bits(fc, 50), bits(fc, 51), bits(fc, 52), bits(fc, 53, 54), bits(fc, 55), bits(fc, 56)
    result = {0xf000: 1}
    newest = early(cpu, 0x1a, 0x50, 0x5f) or early(cpu, 0x1a, 0x80, 0xaf) or early(cpu, 0x1a, 0xc0, 0xcf)
    if newest and not phys:
        return result
    zen3 = early(cpu, 0x19, 0, 0x0f)
    sees_icache = not zen3
    killed = not (comp or (icmiss and sees_icache) or phys or l1 or l2)
    extd = fetch_extd(caps, words)
    pages = [0xf00a, 0xf010, 0xf00b, 0xf00c] if zen3 else [0xf00a, 0xf00b, 0xf00c, None]
    has_l2 = cpu.family in ZEN or early(cpu, 0x15, 0x60, 0xff)
    result.update({
        0xf001: killed, 0xf002: not killed, 0xf003: comp, 0xf004: not comp and not killed,
        0xf005: phys and not l1, 0xf006: l1 and not l2, 0xf007: l1 and l2,
        0xf008: icmiss and sees_icache, 0xf009: comp and not icmiss and sees_icache,
        0xf00e: 0 if killed else bits(fc, 32, 47),
        0xf011: has_l2 and comp and bits(fc, 58),
        0xf012: caps & CAP_ZEN4 and comp and bits(fc, 61), 0xf013: caps & CAP_ZEN4 and bits(fc, 60),
        0xf014: comp and extd is not None and bits(extd, 0, 15),
    })
    if phys and pages[page]:
        result[pages[page]] = 1
    return result


def branch_events(cpu, caps, d1):
    branch = bits(d1, 37)
    taken, wrong, back = branch and bits(d1, 35), branch and bits(d1, 36), branch and bits(d1, 34)
    has_resync = cpu.family in (0x10, 0x12, 0x14) or early(cpu, 0x15, 0, 0x0f)
    has_microcode = cpu.family in ZEN or early(cpu, 0x15, 0x60, 0xff)
    return {
        0xf100: 1, 0xf101: bits(d1, 16, 31), 0xf102: bits(d1, 0, 15),
        0xf103: branch, 0xf104: wrong, 0xf105: taken, 0xf106: wrong and taken, 0xf107: back, 0xf108: back and wrong,
        0xf109: has_resync and bits(d1, 32), 0xf10a: caps & CAP_FUSE and branch and bits(d1, 39),
        0xf10b: has_microcode and bits(d1, 40),
    }


def tlb_events(cpu, caps, d3):
    l1miss, l2miss, phys = bits(d3, 2), bits(d3, 3), bits(d3, 18)
    if not bits(d3, 17) or (caps & CAP_DTLB and not phys):
        return {}
    b4, b5, b6, b19 = bits(d3, 4), bits(d3, 5), bits(d3, 6), bits(d3, 19)
    if cpu.family == 0x14:
        b5 = b19 = 0
    l1hit, l2hit = not l1miss, l1miss and not l2miss
    result = {0xf203: l1hit, 0xf204: l2hit, 0xf205: l1miss and l2miss}
    if caps & CAP_DTLB:
        size = bits(d3, 4, 5)
        result.update({(0xf211 if l1hit else 0xf215) + size: size != 3 and (l1hit or l2hit)})
    else:
        result.update({
            0xf211: l1hit and not b4 and not b5, 0xf212: l1hit and b4, 0xf213: l1hit and not b4 and b5,
            0xf215: l2hit and not b6 and not b19, 0xf216: l2hit and b6 and not b19, 0xf217: l2hit and not b6 and b19,
        })
    if has_l2_bits(cpu) and l1miss and (phys or not caps & CAP_ZEN4):
        result[0xf21d] = bits(d3, 48, 63)
    return result


def has_l2_bits(cpu):
    return cpu.family in ZEN or cpu.family == 0x16 or early(cpu, 0x15, 0x30, 0xff)


def access_events(cpu, caps, d2, d3):
    load, store = bits(d3, 0), bits(d3, 1)
    bank = cpu.family in (0x10, 0x12) or early(cpu, 0x15, 0, 0x0f)
    return {
        0xf200: 1, 0xf201: load, 0xf202: store, 0xf208: bits(d3, 8),
        0xf209: bank and bits(d3, 9), 0xf20a: cpu.family in (0x10, 0x12) and bits(d3, 10),
        0xf20b: (bank or cpu.family in (0x14, 0x16)) and load and bits(d3, 11), 0xf20c: bank and load and bits(d3, 12),
        0xf20d: bits(d3, 14), 0xf20e: bits(d3, 13), 0xf20f: bits(d3, 15),
        0xf21a: has_l2_bits(cpu) and bits(d3, 21), 0xf21f: caps & CAP_STREAM and store and bits(d2, 8),
    }


def source(caps, d2):
    return bits(d2, 0, 2) | (bits(d2, 6, 7) << 3 if caps & CAP_ZEN4 else 0)


def cache_events(cpu, caps, d2, d3):
    load, miss, nomab, l2miss, prefetch = bits(d3, 0), bits(d3, 7), bits(d3, 16), bits(d3, 20), bits(d3, 21)
    lost = early(cpu, 0x19, 0, 0x0f) and (prefetch or nomab)
    write_combining = cpu.family == 0x14 and bits(d3, 13)
    told = load and miss and not lost and not write_combining and (l2miss or not has_l2_bits(cpu))  # OP_DATA2 is of this op
    if bits(d3, 14) and not (told and source(caps, d2) == 7):
        return {}  # uncacheable: the miss bits mean nothing, but for a device
    knows = has_l2_bits(cpu) and not lost
    real_load = load and not (has_l2_bits(cpu) and prefetch)
    result = {
        0xf206: miss, 0xf207: not miss, 0xf210: nomab and (miss or not early(cpu, 0x15, 0, 0x0f)),
        0xf219: miss and real_load and bits(d3, 32, 47),
        0xf21b: knows and miss and l2miss, 0xf21c: knows and miss and not l2miss, 0xf21e: knows and miss and bits(d3, 26, 31),
        0xf260: load and not miss, 0xf261: knows and load and miss and not l2miss,
    }
    if told:
        result.update(source_events(cpu, caps, d2, bits(d3, 32, 47) if real_load else 0))
    return result


LEGACY, EXTENDED = range(2)
SOURCES = {
    LEGACY: {1: "l3", 2: "node", 3: "dram", 4: "far", 7: "io"},
    EXTENDED: {1: "l3", 2: "near", 3: "dram", 5: "far", 6: "pmem", 7: "io", 8: "cxl", 12: "peer"},
}


def source_events(cpu, caps, d2, latency):
    code, table = source(caps, d2), EXTENDED if caps & CAP_ZEN4 else LEGACY
    has_node = cpu.family not in (0x12, 0x14, 0x16)
    name, remote = SOURCES[table].get(code), has_node and bits(d2, 4)
    if table == LEGACY:
        if (code == 1 and not (cpu.family == 0x10 or early(cpu, 0x15, 0, 0x0f))) or (code == 4 and cpu.family not in ZEN):
            name = None
        if code == 2 and remote and cpu.family not in ZEN:
            name = "far"
    if not name:
        return {}
    if name in ("node", "near", "far") or (name == "l3" and table == EXTENDED):
        remote = name == "far"
    has_state = has_node and not early(cpu, 0x19, 0, 0x0f) and not early(cpu, 0x19, 0x20, 0x5f)
    state = has_state and (code in (1, 2, 5) if table == EXTENDED else code == 2)
    near = name in ("node", "near")
    return {
        0xf240: not remote, 0xf241: remote, 0xf242: not remote and name == "l3", 0xf243: near, 0xf244: name == "far",
        0xf245: not remote and name == "dram", 0xf246: remote and name == "dram",
        0xf247: not remote and name == "io", 0xf248: remote and name == "io",
        0xf249: state and not bits(d2, 5), 0xf24a: state and bits(d2, 5),
        0xf24b: latency if not remote else 0, 0xf24c: latency if remote else 0,
        0xf262: name == "l3", 0xf263: name == "node", 0xf264: name == "near", 0xf265: name == "far",
        0xf266: not remote and name == "dram", 0xf267: remote and name == "dram",
        0xf268: not remote and name == "pmem", 0xf269: remote and name == "pmem",
        0xf26a: not remote and name == "cxl", 0xf26b: remote and name == "cxl",
        0xf26c: name == "io", 0xf26d: name == "peer", 0xf26e: remote and caps & CAP_STREAM and bits(d2, 9),
    }


# ---- PERF_SAMPLE_DATA_SRC, as the kernel's documentation of its fields has it ----

LVL_SHIFT, SNOOP_SHIFT, LOCK_SHIFT, TLB_SHIFT, NUMBER_SHIFT, REMOTE_SHIFT, HOPS_SHIFT = 5, 19, 24, 26, 33, 37, 43
L1, LFB, L2, L3, LOCAL_RAM, REMOTE_RAM, CCE1, CCE2, IO, UNC = 0x8, 0x10, 0x20, 0x40, 0x80, 0x100, 0x400, 0x800, 0x1000, 0x2000
HITM, NO_SNOOP = 0x10, 1

# (level bits, level number, remote, hops) by source; hops 1 is the same node, 2 another one.
LEVELS = {
    LEGACY: {2: (L3 | CCE1, 0xb, 0, 1), 3: (LOCAL_RAM, 0xd, 0, 0), 4: (CCE2, 0xb, 1, 2), 7: (IO, 0xa, 0, 0)},
    EXTENDED: {1: (L3, 3, 0, 0), 2: (CCE1, 0xb, 1, 1), 3: (LOCAL_RAM, 0xd, 0, 0), 5: (CCE2, 0xb, 1, 2), 6: (0, 0xe, 0, 0),
               7: (IO, 0xa, 0, 0), 8: (0, 9, 0, 0)},
}


def level_of(caps, d2, d3, lost):
    """(level bits, level number, remote, hops) of a load or store."""
    src, table = source(caps, d2), EXTENDED if caps & CAP_ZEN4 else LEGACY
    if bits(d3, 14) and src != 7:
        return UNC, 8, 0, 0
    if not bits(d3, 7):
        return L1, 1, 0, 0
    if not bits(d3, 20) and not lost:
        return L2, 2, 0, 0
    if bits(d3, 0) and src in LEVELS[table]:
        level, number, remote, hops = LEVELS[table][src]
        if bits(d2, 4) and src in (3, 6, 8):
            level, remote, hops = REMOTE_RAM if src == 3 else level, 1, 2
        return level, number, remote, hops
    return (LFB, 0xc, 0, 0) if bits(d3, 16) else (None, 0xf, 0, 0)


def data_src(cpu, kind, payload):
    caps, *words = struct.unpack("<I%dQ" % ((len(payload) - 4) // 8), payload)
    if kind == FETCH or not words[4] & 3:
        return 0x1e05080021
    d2, d3 = words[3], words[4]
    lost = early(cpu, 0x19, 0, 0x0f) and (bits(d3, 21) or bits(d3, 16))
    if lost:
        d2 = 0
    level, number, remote, hops = level_of(caps, d2, d3, lost)
    trusted = not early(cpu, 0x19, 0, 0x0f) and not early(cpu, 0x19, 0x20, 0x5f)
    sources = (1, 2, 5) if caps & CAP_ZEN4 else (2,)
    hitm = trusted and bits(d3, 0) and level not in (L1, L2) and not bits(d2, 5) and source(caps, d2) in sources
    tlb = 1
    if bits(d3, 17) and (bits(d3, 18) or not caps & CAP_DTLB):
        tlb = (0x8 | 2) if not bits(d3, 2) else (0x10 | 4) if bits(d3, 3) else (0x10 | 2)
    plain = level == 0  # only a number tells the level
    level = 1 if level is None else level if plain else level | 2
    return ((2 if bits(d3, 0) else 4) | level << LVL_SHIFT | (HITM if hitm else NO_SNOOP) << SNOOP_SHIFT |
            (2 if bits(d3, 15) else 1) << LOCK_SHIFT | tlb << TLB_SHIFT | number << NUMBER_SHIFT | remote << REMOTE_SHIFT |
            hops << HOPS_SHIFT)


def events(cpu, kind, payload):
    """{number: what the record adds} for a record that can be decoded."""
    nr_words = (len(payload) - 4) // 8
    caps, *words = struct.unpack("<I%dQ" % nr_words, payload)
    if kind == FETCH:
        result = fetch_events(cpu, caps, words)
    else:
        d1, d2, d3 = words[2:5]
        result = branch_events(cpu, caps, d1)
        if d3 & 3:
            result.update(access_events(cpu, caps, d2, d3))
            result.update(tlb_events(cpu, caps, d3))
            result.update(cache_events(cpu, caps, d2, d3))
    flags = {0xf012, 0xf013, 0xf10a, 0xf21f, 0xf26e}
    return {number: 1 if number in flags else int(value) for number, value in result.items() if value}
