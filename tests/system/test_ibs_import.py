#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
A perf.data of IBS samples over the functions of a real binary goes through opimport: opreport shows
for each derived event and
function what the predicates say, latency events as cycles; each record that cannot be used is
counted by its reason.
usage: test_ibs_import.py [--records=N] [--seed=N]
"""
import argparse
import json
import os
import random
import shutil
import sys

import elfsyms
import opdtest
from opdtest import require

SOURCE = os.environ.get("OPD_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(SOURCE, "tests", "ibs"))
import ibsdata  # noqa: E402
import ibswork  # noqa: E402

RECORDS, FEWER_RECORDS, UNTOLD_RECORDS = 100000, 3000, 500
SRC_L1 = 0xf260
FAR = 1 << 20  # no address is as far from its sample
BASE = 0x555500000000
MAPPED_BYTES = 1 << 24
ZEN4, FAMILY10, ZEN3, ZEN5 = (ibsdata.Cpu(0x19, 0x11, 0xbff), ibsdata.Cpu(0x10, 0x0a, 0x1f), ibsdata.Cpu(0x19, 0x01, 0x3ff),
                              ibsdata.Cpu(0x1a, 0x44, 0x81bff))
LATENCIES = ("LATENCY", "_LAT", "TAG_TO_RETIRE", "COMP_TO_RET")


def numbers_of_names():
    """{name: number} of the derived events, from the files that describe them."""
    numbers = {}
    with open(os.path.join(SOURCE, "events", "x86-64", "ibs", "events"), encoding="utf-8") as stream:
        for line in stream:
            if line.startswith("event:"):
                tags = dict(word.split(":", 1) for word in line.split(" : ")[0].split())
                numbers[tags["name"]] = int(tags["event"], 16)
    return numbers


def functions_of(image):
    """By their addresses: static functions of several files may have one name."""
    places = zip(elfsyms.all_ranges(image), elfsyms.all_ranges(image, by_address=True))
    return ibswork.Functions([("%#x" % address, start, end) for (_, start, end), (_, address, _) in places], BASE)


def opimport(box, name, path, *more):
    return box.run(os.path.join(box.bin, "opimport"), "--session-dir=" + box.session, "-o", name, *more, path)


def make_file(rng, cpu, nr, functions, image, path):
    samples = [ibswork.random_placed(rng, cpu, functions, 0.1) for _ in range(nr)]
    data = [ibsdata.mapping(BASE, MAPPED_BYTES, 0, image)]
    data += [ibsdata.sample(placed.record, number, placed.ip) for number, placed in enumerate(samples, 1)]
    ibsdata.write_perf_records(path, cpu, b"".join(data))
    return samples


def report_of(box, session, *more):
    return json.loads(box.opreport("session:" + session, "-l", "--format=json", *more))


def unit_of(name):
    name = name.removesuffix("_2")
    if name.endswith(LATENCIES):
        return "cycles"
    return "misses" if name == "IBS_OP_MLP_DEPTH" else "samples"


def counts_of_report(report, numbers, period=ibsdata.PERIOD, suffix=""):
    """{event number: {function: amount}} of opreport -l; the classes are told apart by event only.
    Those with another suffix are left out.
    """
    counts, columns = {}, []
    for entry in report["classes"]:
        name, count = entry["title"].split(":")
        require(entry["unit"] == unit_of(name), "%s counts %s" % (name, entry["unit"]))
        require(count == str(period) and "Unknown" not in entry["description"], "class %r" % entry)
        is_second = name.endswith("_2")
        columns.append(counts.setdefault(numbers[name.removesuffix("_2")], {}) if is_second == bool(suffix) else {})
    for row in report["symbols"]:
        for column, amount in zip(columns, row["samples"]):
            if amount:
                require(row["address"] not in column, "%s has two rows" % row["symbol"])
                column[row["address"]] = amount
    return counts


def compare_events(found, wanted, what):
    require(set(found) == set(wanted), "%s: events %s too many, %s missing" %
            (what, sorted(set(found) - set(wanted)), sorted(set(wanted) - set(found))))
    for number, functions in wanted.items():
        wrong = {name: (found[number].get(name), functions.get(name)) for name in set(found[number]) | set(functions)
                 if found[number].get(name) != functions.get(name)}
        require(not wrong, "%s: event %x: (opreport, predicates) %s" % (what, number, dict(list(wrong.items())[:5])))


STATS = {"decoded": "samples that were decoded", "cut short": "cut short: the sample is longer than its record",
         "too few registers": "fewer registers than any CPU has", "no whole number of registers": "no whole number of registers",
         "no capability word": "no capability word", "not valid": "registers that hold no sample",
         "more registers than announced": "more registers than the capability word announces"}


def check_reasons(out, reasons, what):
    both = reasons[0] + reasons[1]
    for reason, text in STATS.items():
        line = "%12d IBS records: %s\n" % (both[reason], text)
        require(not both[reason] or line in out, "%s: no line %r in %s" % (what, line, out))
    for kind, name in enumerate(("ibs_fetch", "ibs_op")):
        received, stored = sum(reasons[kind].values()), reasons[kind]["decoded"]
        line = "%s:%d received %d, stored %d, lost_undecodable %d\n" % (name, ibsdata.PERIOD, received, stored, received - stored)
        require(line in out, "%s: no line %r in %s" % (what, line, out))


SOURCES = {"L1": "L1", "L2": "L2", "L3": "L3", "node_cache": "node cache", "near_cache": "near cache", "far_cache": "far cache",
           "DRAM": "DRAM", "PMEM": "PMEM", "CXL": "CXL", "IO": "IO", "peer": "peer"}


def memory_row(facts):
    """What opreport --mem should show for the facts of a function."""
    buckets = sorted((int(name.split()[1]), nr) for name, nr in facts.items() if name.startswith("bucket "))
    nr_latencies, below, p95 = sum(nr for _, nr in buckets), 0, 0
    for last, nr in buckets:
        below, p95 = below + nr, last
        if 100 * below >= 95 * nr_latencies:
            break
    row = {name: facts["source " + source] for name, source in SOURCES.items()}
    row.update({"loads": facts["loads"], "stores": facts["stores"], "branches": facts["branches"], "remote": facts["remote"],
                "mispredicted": facts["mispredicted"], "dtlb_walk": facts["tlb misses"],
                "dtlb_miss": facts["tlb misses"] + facts["tlb l2 hits"], "source_loads": sum(row.values()),
                "dtlb_accesses": facts["tlb misses"] + facts["tlb l2 hits"] + facts["tlb hits"], "latency_loads": nr_latencies,
                "latency_p95": p95, "latency_average": facts["latency sum"] / nr_latencies if nr_latencies else 0})
    return row


def check_memory(report, memory, what):
    found = {row["address"]: row for row in report["symbols"]}
    wanted = {name: memory_row(facts) for name, facts in memory.items() if +facts}
    require(set(found) == set(wanted), "%s: --mem has other functions: %s" % (what, set(found) ^ set(wanted)))
    for name, row in wanted.items():
        for key, value in row.items():
            require(abs(found[name][key] - value) <= 1e-5 * value, "%s: %s: %s is %s, not %s" % (what, name, key,
                    found[name][key], value))


RANGES = "p95 above 15 is the end of a range of latencies, at most an eighth too long\n"


def check_memory_text(box, rng, functions, image):
    """The report says whether its p95 is a latency that was, and what it does not keep apart."""
    for latency, shown in ((15, 15), (300, 319)):
        what = "latency-%d" % latency
        words = [ibsdata.OP_VAL, functions.random_address(rng), 0, 3, 1 | 1 << 7 | 1 << 20 | latency << 32, 0, 0, 0]
        record = ibsdata.Record(ibsdata.OP, ibsdata.pack(ZEN4.caps, words), "decoded", True)
        path = os.path.join(box.dir, what + ".data")
        data = [ibsdata.mapping(BASE, MAPPED_BYTES, 0, image)] + [ibsdata.sample(record, number) for number in range(1, 21)]
        ibsdata.write_perf_records(path, ZEN4, b"".join(data))
        box.good(os.path.join(box.bin, "opimport"), "--session-dir=" + box.session, "-o", what, path)
        text = box.opreport("session:" + what, "--mem")
        require((RANGES in text) == (shown != latency), "p95 of %d: %s" % (latency, text))
        require(text.splitlines()[-1].split()[:4] == ["20", "0", "%d.0" % latency, "%d" % shown], text)
    for word in ("event:IBS_OP_LOAD", "tid:1", "cgroup:/x"):
        why = box.refused(os.path.join(box.bin, "opreport"), "--session-dir=" + box.session, "session:" + what, "--mem", word)
        require(why.endswith("leave out " + word.split(":")[0] + ":"), "--mem %s: %s" % (word, why))


def check_cpu(box, rng, cpu, nr, functions, image):
    what = "%x-%x" % (cpu.family, cpu.model)
    path = os.path.join(box.dir, what + ".data")
    samples = make_file(rng, cpu, nr, functions, image, path)
    events, memory, reasons = ibswork.expected(cpu, samples, functions)
    result = opimport(box, what, path)
    nr_cut = reasons[0]["cut short"] + reasons[1]["cut short"]
    require(result.rc == bool(nr_cut), "%s: %d: %s" % (what, result.rc, result.err))
    require(not nr_cut or "%12d damaged records\n" % nr_cut in result.out, result.out)
    check_reasons(result.out, reasons, what)
    compare_events(counts_of_report(report_of(box, what), numbers_of_names()), events, what)
    check_memory(json.loads(box.opreport("session:" + what, "--mem", "--format=json")), memory, what)
    box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session, what)
    print("%s: %d records, %d of them useless, %d events over %d functions" %
          (what, nr, nr - sum(r["decoded"] for r in reasons), len(events), len({n for e in events.values() for n in e})))


def make_two(rng, cpu, nr, functions, image, path, second):
    """Of ops: the samples of the one and of the other event, by turns."""
    samples = ([], [])
    data = [ibsdata.mapping(BASE, MAPPED_BYTES, 0, image)]
    while len(data) <= nr:
        placed = ibswork.random_placed(rng, cpu, functions, 0)
        if placed.record.kind != ibsdata.OP:
            continue
        of_second = len(data) % 2
        samples[of_second].append(placed)
        data.append(ibsdata.sample(placed.record, len(data), placed.ip, event_id=(None, ibsdata.SECOND_ID)[of_second]))
    ibsdata.write_perf_records(path, cpu, b"".join(data), second)
    return samples


TWO_SAMPLERS = {"alike": (ibsdata.PERIOD, False), "other-mask": (ibsdata.PERIOD, True), "other-count": (2 * ibsdata.PERIOD, False)}


def check_two(box, rng, functions, image, what):
    """Two events of ops: each has its own derived events, by whatever name, and both one memory
    view.
    """
    path = os.path.join(box.dir, what + ".data")
    period, by_cycles = TWO_SAMPLERS[what]
    suffix = "_2" if period == ibsdata.PERIOD else ""
    samples = make_two(rng, ZEN4, FEWER_RECORDS, functions, image, path, ibsdata.attr(ibsdata.OP, period, by_cycles))
    out = box.good(os.path.join(box.bin, "opimport"), "--session-dir=" + box.session, "-o", what, path)
    latency = [line for line in out.splitlines() if line.startswith("IBS_OP_DC_LOAD_LAT")]
    require(len(latency) == 2 and all(line.endswith(" cycles, not samples") for line in latency), "%s: %s" % (what, out))
    require("opreport --mem" not in out, "%s: what --mem shows is not whole: %s" % (what, out))
    for part, its_period, its_suffix in ((samples[0], ibsdata.PERIOD, ""), (samples[1], period, suffix)):
        events, _, _ = ibswork.expected(ZEN4, part, functions)
        report = report_of(box, what, "count:%d" % its_period)
        compare_events(counts_of_report(report, numbers_of_names(), its_period, its_suffix), events, what + its_suffix)
    _, memory, _ = ibswork.expected(ZEN4, samples[0] + samples[1], functions)
    check_memory(json.loads(box.opreport("session:" + what, "--mem", "--format=json")), memory, what)
    box.good(os.path.join(box.bin, "opcheck"), "--session-dir=" + box.session, what)
    print("two events, %s: %d and %d ops" % (what, len(samples[0]), len(samples[1])))


PMU_LINE = "type-%d-config-%x: the file has no list of PMUs, but its samples are the registers of ibs_"
CPU_LINE = "the file names no CPU that has IBS"


def records_of(rng, cpu, functions, image, skid):
    """Undamaged samples as the kernel writes them: at the address in the registers, or `skid`
    behind it. Returns the end of the records, and the expected result.
    """
    samples = [ibswork.random_placed(rng, cpu, functions, 0) for _ in range(UNTOLD_RECORDS)]
    samples = [placed._replace(ip=ibswork.address_of(placed)) for placed in samples if ibsdata.has_address(placed.record)]
    data = [ibsdata.mapping(BASE, MAPPED_BYTES, 0, image)]
    data += [ibsdata.sample(placed.record, number, placed.ip + skid) for number, placed in enumerate(samples, 1)]
    return data, samples


def check_untold(box, rng, functions, image):
    """Files that do not say which PMU is whose: recognised, or told; whole, cut, and with that at
    the end of a stream.
    """
    path = os.path.join(box.dir, "untold.data")
    data, samples = records_of(rng, ZEN4, functions, image, 0)
    wanted = ibswork.expected(ZEN4, samples, functions)[0]
    ibsdata.write_perf_records(path, ZEN4, b"".join(data), without=(ibsdata.FEATURE_PMU_MAPPINGS,))
    result = opimport(box, "untold", path)
    require(result.rc == 0 and PMU_LINE % (8, 0) in result.out and PMU_LINE % (9, 0x80000) in result.out, result.out + result.err)
    compare_events(counts_of_report(report_of(box, "untold"), numbers_of_names()), wanted, "untold")

    end = ibsdata.write_perf_records(path, ZEN4, b"".join(data))
    os.truncate(path, end - len(data[-1]) - 1)
    result = opimport(box, "cut", path)
    require(result.rc == 1 and "the file ends before its records do" in result.err and PMU_LINE % (8,
            0) in result.out, result.out + result.err)
    require(CPU_LINE in result.out, result.out)

    ibsdata.write_perf_stream(path, ZEN4, b"".join(data))
    require(opimport(box, "behind", path).rc == 0, "what the end of a stream tells is too late")
    compare_events(counts_of_report(report_of(box, "behind"), numbers_of_names()), wanted, "behind")
    later = [ibsdata.sample(samples[0].record, second * 1000000000) + ibsdata.user_record(ibsdata.RECORD_ROUND)
             for second in (1, 2)]
    ibsdata.write_perf_stream(path, ZEN4, b"".join(data + later))
    result = opimport(box, "late", path)
    require(result.rc == 1 and "2 events may be counted under wrong names" in result.err, "%d: %s" % (result.rc, result.err))


def check_assumed(box, rng, functions, image):
    """What is not recognised is, once the PMU is named."""
    path = os.path.join(box.dir, "assumed.data")
    data, samples = records_of(rng, ZEN4, functions, image, FAR)
    ibsdata.write_perf_records(path, ZEN4, b"".join(data), without=(ibsdata.FEATURE_PMU_MAPPINGS,))
    result = opimport(box, "unassumed", path)
    require(result.rc == 0 and "--ibs-op=9 or --ibs-fetch=9 makes IBS_ events" in result.out
            and "\nIBS_" not in result.out, result.out)
    result = opimport(box, "assumed", path, "--ibs-op=9", "--ibs-fetch=8")
    require(result.rc == 0 and "list of PMUs" not in result.out, result.out + result.err)
    line = box.refused(os.path.join(box.bin, "opimport"), "--session-dir=" + box.session, "-o", "none", "--ibs-op=4", path)
    require("--ibs-op=4: the type of a PMU is a number of 6 or more" in line, line)
    compare_events(counts_of_report(report_of(box, "assumed"), numbers_of_names()), ibswork.expected(ZEN4, samples,
            functions)[0], "assumed")


def check_unknown_cpu(box, rng, functions, image):
    """The capabilities of Zen 4 say what it is; before Zen no data source is claimed."""
    path = os.path.join(box.dir, "unknown.data")
    for cpu, is_told in ((ZEN4, True), (FAMILY10, False)):
        what = "unknown-%x" % cpu.family
        data, samples = records_of(rng, cpu, functions, image, 0)
        ibsdata.write_perf_records(path, cpu, b"".join(data), without=(ibsdata.FEATURE_CPUID,))
        result = opimport(box, what, path)
        require(result.rc == 0 and CPU_LINE in result.out, result.out + result.err)
        found = counts_of_report(report_of(box, what), numbers_of_names())
        if is_told:
            compare_events(found, ibswork.expected(cpu, samples, functions)[0], what)
        sources = [number for number in found if number >> 4 in (0xf24, 0xf26) and number != SRC_L1]
        require(bool(sources) == is_told, "%s: data sources: %s" % (what, ["%x" % number for number in sources]))


def test(box):
    image = os.path.join(box.dir, "binary")
    shutil.copy(os.path.join(os.environ["OPD_BUILD"], "bin", "opreport"), image)  # an installed one is stripped
    functions = functions_of(image)
    rng = random.Random(arguments.seed)
    box.env["OPROFILE_EVENTS_DIR"] = os.path.join(SOURCE, "events")
    check_cpu(box, rng, ZEN4, arguments.records, functions, image)
    check_untold(box, rng, functions, image)
    check_assumed(box, rng, functions, image)
    check_unknown_cpu(box, rng, functions, image)
    for cpu in (FAMILY10, ZEN3, ZEN5):
        check_cpu(box, rng, cpu, FEWER_RECORDS, functions, image)
    for what in TWO_SAMPLERS:
        check_two(box, rng, functions, image, what)
    check_memory_text(box, rng, functions, image)


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    return parser.parse_args()


if __name__ == "__main__":
    arguments = parse_arguments()
    print("seed %d" % arguments.seed)
    opdtest.run(test, needs=opdtest.needs_root)
