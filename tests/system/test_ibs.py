#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
The IBS decoder against two witnesses: the test vectors where they are at hand, and perf, which
shows records in a perf.data file
made here: every field that perf report -D prints is what the decoder found in the record, and what
is damaged is told by its
reason. usage: test_ibs.py [--records=N] [--seed=N]
"""
import argparse
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from opdtest import Failure, Skip, require

IBS_DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ibs")
sys.path.insert(0, IBS_DIRECTORY)
import ibsdata  # noqa: E402
import predicates  # noqa: E402

RECORDS = 100000
FILE_RECORDS = 2500
DUMP_SECONDS = 600
PAIR = re.compile(r"(\w+)\s+(\d+)")
PAGE_SIZE = re.compile(r"L1TlbPgSz (\w+)")
SAMPLE_LINE = re.compile(r"(\d+) 0x[0-9a-f]+ \[0x[0-9a-f]+\]: PERF_RECORD_SAMPLE")
PLAIN_PAGES = ("4KB", "2MB", "1GB", "RESERVED")
ERRATUM_PAGES = ("4KB", "16KB", "2MB", "1GB")

# What perf calls a field, where that is not the manual's name in the decoder.
NAMES = {"IbsFetchLinAd": "FetchLinAd", "IbsFetchPhysAd": "FetchPhysAd", "IbsItlbRefillLat": "ItlbRefillLat", "IbsOpRip": "OpRip",
         "IbsDCLinAd": "DcLinAd", "IbsDCPhysAd": "DcPhysAd", "IbsBrTarget": "BrTarget", "DcWcMemAcc": "WcMemAcc",
         "DcUcMemAcc": "UcMemAcc"}


def program():
    return os.path.join(os.environ["OPD_BUILD"], "tests", "ibs", "ibs_dump")


def decode(cpu, records):
    """What the decoder makes of records: (reason, {field: number}, {event number: amount}) of each,
    and the counters.
    """
    stream = struct.pack("<II", cpu.family, cpu.model) + b"".join(
        struct.pack("<II", record.kind, len(record.payload)) + record.payload for record in records)
    result = subprocess.run([program()], input=stream, stdout=subprocess.PIPE, check=True, timeout=DUMP_SECONDS)
    lines = result.stdout.decode().splitlines()
    decoded = []
    for line in lines[:len(records)]:
        reason, *columns = line.split("\t")
        fields, events = {}, {}
        for column in columns:
            name, equals, value = column.partition("=")
            if equals:
                fields[name] = value if name == "source" else int(value, 16)
            else:
                number, _, amount = column.partition("+")
                events[int(number, 16)] = int(amount)
        decoded.append((reason, fields, events))
    counters = dict(line.rsplit(": ", 1) for line in lines[len(records):])
    return decoded, {reason: int(count) for reason, count in counters.items()}


# ---- the vectors ----

def find_vectors():
    """The vectors from hardware: beside the tree, or beside what it is a worktree of. None where
    they are not.
    """
    for up in ("..", "../.."):
        path = os.path.join(os.environ["OPD_SOURCE"], up, "shared", "ibs-vectors.jsonl")
        if os.path.exists(path):
            return path
    return None


def with_names_of_vectors(kind, fields):
    fields = dict(fields)
    if kind == ibsdata.FETCH:
        fields["MaxCnt"], fields["Cnt"] = fields.pop("FetchMaxCnt") << 4, fields.pop("FetchCnt") << 4
    else:
        fields["MemWidth"] = fields["width"]
    return fields


# Two of the vectors have the kernel's name for the distance, HOPS_1, as the number 1. In
# <linux/perf_event.h> 1 is PERF_MEM_HOPS_0, another core of the same node, and PERF_MEM_HOPS_1,
# another node, is 2: opd holds to the header (doc/ibs.md), and the rest of these two is compared
# bit by bit.
HOPS_SHIFT, HOPS_1, WITH_NAME_FOR_NUMBER = 43, 2, ("S10", "S14")


def check_vector(vector):
    kind = ibsdata.KIND_NAMES.index(vector["kind"])
    cpu = ibsdata.Cpu(int(vector["fam"].rstrip("h"), 16), int(vector["model"].rstrip("h"), 16), int(vector["caps"], 16))
    payload = bytes.fromhex(vector["raw"])
    require(len(payload) == vector["raw_size"], "%s: %d bytes" % (vector["id"], len(payload)))
    [(reason, fields, _)], _ = decode(cpu, [ibsdata.Record(kind, payload, "decoded", True)])
    require(reason == "decoded", "%s: %s" % (vector["id"], reason))
    fields = with_names_of_vectors(kind, fields)
    skipped = {"OpRip", "DcLinAd", "DcPhysAd", "BrTarget", "FetchLinAd", "FetchPhysAd", "OpMaxCntLo", "OpMaxCntHi", "OpMemWidth"}
    meaning = {"notes", "has", "width", "depth", "latency", "tlb_refill", "source", "ip", "linear", "physical", "target",
               "data_src"}
    registers = {name: value for name, value in fields.items() if name not in skipped | meaning and value}
    if kind == ibsdata.FETCH:
        registers.pop("period", None)
    require(registers == vector["nonzero"], "%s: %r, not %r" % (vector["id"], registers, vector["nonzero"]))
    if "data_src_6_6" in vector:
        wanted = int(vector["data_src_6_6"], 16)
        if vector["id"] in WITH_NAME_FOR_NUMBER:
            require(wanted >> HOPS_SHIFT == 1, "%s has %d hops" % (vector["id"], wanted >> HOPS_SHIFT))
            wanted += HOPS_1 - 1 << HOPS_SHIFT
        require(fields["data_src"] == wanted, "%s: data_src %#x, not %#x" % (vector["id"], fields["data_src"], wanted))
    if "weight_var1_var2" in vector:
        weights = [fields["DcMissLat"], fields["TagToRetCtr"]]
        require(weights == vector["weight_var1_var2"], "%s: weights %r" % (vector["id"], weights))


def check_vectors(path):
    with open(path, encoding="utf-8") as stream:
        vectors = [json.loads(line) for line in stream]
    for vector in vectors:
        check_vector(vector)
    print("%s: %d vectors" % (os.path.basename(path), len(vectors)))


# ---- perf ----

def parse_dump(stream):
    """Yields (number of the sample, [lines of registers]) of what perf report -D prints."""
    lines = []
    for line in stream:
        if line.startswith((".", "\n", " ", "#")):
            continue
        if line.startswith(("ibs_", "ic_ibs_", "Ibs")):
            lines.append(line.rstrip("\n"))
        elif "PERF_RECORD_SAMPLE" in line:
            match = SAMPLE_LINE.match(line)
            require(match, "perf prints %r" % line)
            yield int(match.group(1)), lines
            lines = []


def page_size(cpu, fields):
    is_erratum = cpu.family == 0x19 and cpu.model < 0x10
    return (ERRATUM_PAGES if is_erratum else PLAIN_PAGES)[fields["L1TlbPgSzEnc"]]


def expected(cpu, name, fields):
    """The value that perf should show under a name, from the decoder's fields."""
    if name == "MaxCnt":
        return (fields["FetchMaxCnt"] if "FetchMaxCnt" in fields else fields["OpMaxCntHi"] << 16 | fields["OpMaxCntLo"]) << 4
    if name == "Cnt":
        return fields["FetchCnt"] << 4
    if name == "DataSrc":
        return fields["DataSrcLo"] | (fields["DataSrcHi"] << 3 if cpu.caps & ibsdata.CAP_ZEN4 else 0)
    if name == "OpMemWidth":
        return 1 << fields["OpMemWidth"] >> 1
    return fields[NAMES.get(name, name)]


# Words that perf 6.1 shows whether the capability is there or not.
NEEDS_CAP = {"IbsBrTarget": ibsdata.CAP_BR_TARGET, "ic_ibs_ext_ctl": ibsdata.CAP_FETCH_EXTD}


def compare(cpu, number, lines, fields):
    """Fields that agree; Failure on the first that does not."""
    nr = 0
    for line in lines:
        head, rest = line.split(":", 1)
        hexadecimal, _, rest = rest.strip().partition(" ")
        if NEEDS_CAP.get(head, 0) & ~cpu.caps:
            pairs = []
        elif head.startswith("Ibs"):
            pairs = [(head, int(hexadecimal, 16))]
        else:
            size = PAGE_SIZE.search(rest)
            if size:
                require(size.group(1) == page_size(cpu, fields), "sample %d: page size %s" % (number, line))
                rest = rest.replace(size.group(0), "")
            if "DataSrc" not in rest:
                rest = rest.split("=")[0] + rest.partition("=")[2]
            pairs = [(name, int(value)) for name, value in PAIR.findall(rest)]
        for name, value in pairs:
            require(expected(cpu, name, fields) == value,
                    "sample %d: %s is %#x, perf shows %r, on %r" % (number, name, expected(cpu, name, fields), line, cpu))
            nr += 1
    return nr


def compare_file(path, cpu, records, decoded):
    ibsdata.write_perf_data(path, cpu, records)
    nr_fields = nr_shown = nr_samples = 0
    with subprocess.Popen(["perf", "report", "-D", "-i", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          errors="replace") as perf:
        for number, lines in parse_dump(perf.stdout):
            record, (reason, fields, _) = records[number - 1], decoded[number - 1]
            nr_samples += 1
            if record.reason == "not valid":
                require(not lines, "sample %d: perf shows %r, which is not valid" % (number, lines))
            if not record.alike:
                continue
            require(lines or not (fields["En"] and fields["Val"]), "sample %d: perf shows nothing" % number)
            nr_fields += compare(cpu, number, lines, fields)
            nr_shown += bool(lines)
    require(nr_samples == len(records), "perf shows %d of %d samples" % (nr_samples, len(records)))
    return nr_fields, nr_shown


def check_reasons(records, decoded, counters):
    wanted = dict.fromkeys(ibsdata.REASONS, 0)
    for number, (record, (reason, _, _)) in enumerate(zip(records, decoded), 1):
        require(reason == record.reason, "record %d, %s: %s, not %s" % (number, record.payload.hex(), reason, record.reason))
        wanted[record.reason] += 1
    require(counters == wanted, "the counters are %r, not %r" % (counters, wanted))


def check_events(cpu, records, decoded):
    """The derived events of the decoder are those of the description, none more and none less; and
    the data source is right.
    """
    nr = 0
    for record, (reason, fields, events) in zip(records, decoded):
        if reason == "decoded":
            source = predicates.data_src(cpu, record.kind, record.payload)
            require(fields["data_src"] == source,
                    "%r %s: data_src %#x, not %#x" % (cpu, record.payload.hex(), fields["data_src"], source))
            wanted = predicates.events(cpu, record.kind, record.payload)
            require(events == wanted, "%r %s: events %r, not %r" % (cpu, record.payload.hex(), events, wanted))
            nr += len(events)
    return nr


def check_random(box, nr_records, seed):
    rng = random.Random(seed)
    has_perf = shutil.which("perf")
    totals = [0, 0, 0, 0]
    path = os.path.join(box, "perf.data")
    while totals[0] < nr_records:
        for cpu in ibsdata.CPUS:
            nr = min(FILE_RECORDS, nr_records - totals[0])
            if not nr:
                break
            records = [ibsdata.random_record(rng, cpu) for _ in range(nr)]
            decoded, counters = decode(cpu, records)
            check_reasons(records, decoded, counters)
            fields, shown = compare_file(path, cpu, records, decoded) if has_perf else (0, 0)
            for i, value in enumerate((nr, shown, fields, check_events(cpu, records, decoded))):
                totals[i] += value
    print("seed %d: %d records on %d CPUs, %d shown by perf with %d fields, %d derived events" %
          (seed, totals[0], len(ibsdata.CPUS), *totals[1:]))
    if not has_perf:
        raise Skip("perf is not installed, the records were compared with the description only")
    require(totals[1] > nr_records // 2, "perf showed too few")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    seed = random.SystemRandom().getrandbits(32) if arguments.seed is None else arguments.seed
    try:
        check_vectors(os.path.join(IBS_DIRECTORY, "vectors.jsonl"))
        hardware = find_vectors()
        if hardware:
            check_vectors(hardware)
        else:
            print("the vectors from hardware are not here, only those made by hand were checked")
        with tempfile.TemporaryDirectory(prefix="opd-ibs.") as box:
            check_random(box, arguments.records, seed)
    except Skip as skip:
        print("skip: %s" % skip)
        return 77
    except Failure as failure:
        print("FAIL: seed %d: %s" % (seed, failure))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
