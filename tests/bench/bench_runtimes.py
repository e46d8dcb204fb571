#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Functions of runtimes: each figure beside its aim, and the load of the machine.

usage: bench_runtimes.py [PART...]    default all parts

shares   Python, Perl, PHP and Ruby (and Node and Java, if they are installed): programs that know how much
         CPU time each of their functions took, and how many samples have all their names
kernel   time of the program in the kernel for a sample, of opds with Runtimes= on and off over the same
         load: 40 frames of Python that are known, and 40 functions that are new at each sample
service  CPU time and memory of opds over the same web service in Python

Of two opds with the same load, the difference belongs to the functions. What the programs tell is
CPU time by the clock of the thread, or a number of equal pieces of work.
"""
import collections
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", at) for at in ("system", "bench")]
import opdtest  # noqa: E402
import test_java  # noqa: E402
import test_node  # noqa: E402
import test_python  # noqa: E402
import test_runtimes_scripts  # noqa: E402
from bench import cpu_of_all  # noqa: E402
from bench_waits import figure, load, memory_of  # noqa: E402
from opdtest import Failure, Skip, require  # noqa: E402
from test_python import FRAME, PARTS  # noqa: E402

ALL = ("shares", "kernel", "service")
WANTED = [word for word in sys.argv[1:] if word in ALL] or list(ALL)
RATE, SECONDS = 997, 3
LEAST = 300
WARM_SECONDS, KERNEL_SECONDS, KERNEL_RATE = 4, 15, 199
SERVICE_SECONDS, SERVICE_RATE = 40, 99
SAMPLER_PROGRAM = 7  # BPF_PROG_TYPE_PERF_EVENT
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable

# The functions of test_python, with numpy and json for their work.
NUMPY = test_python.SCRIPT.replace("""    x = 0
    for i in range(n):
        x += i * i
    return x""", """    values = numpy.arange(n % 997 * 10) * 0.5
    return json.dumps([float(numpy.sort(values)[-1]), values[:40].tolist()])""").replace(
    "import asyncio", "import json, numpy, asyncio")

# A thread for each request. GET /end: the CPU time in each function.
SERVICE = """import http.server, json, time
used = {"alpha": 0, "beta": 0, "gamma": 0}
def work(n):
    return json.dumps([str(i * i) for i in range(n)])
def alpha(n): return work(n)
class Beta:
    @staticmethod
    def beta(n): return work(n)
def gamma(n): return work(n)
PARTS = {"/alpha": (alpha, "alpha"), "/beta": (Beta.beta, "beta"), "/gamma": (gamma, "gamma")}
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words): pass
    def do_GET(self):
        text = json.dumps(used)
        if self.path != "/end":
            function, name = PARTS[self.path]
            before = time.thread_time()
            text = function(3000)
            used[name] += time.thread_time() - before
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
# The client is a program of C: it has no functions of Python.
CLIENT = """#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
    static const char *const parts[] = { "alpha", "alpha", "alpha", "alpha", "alpha", "beta", "beta", "beta", "gamma", "gamma" };
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr = { htonl(INADDR_LOOPBACK) } };
    char answer[4096], request[256];
    time_t end = time(NULL) + atoi(argv[2]);
    unsigned int nr = 0;
    for (; time(NULL) < end; nr++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0), n = snprintf(request, 256, "GET /%s HTTP/1.0\\r\\n\\r\\n", parts[nr % 10]);
        if (connect(fd, (struct sockaddr *)&to, sizeof(to)) || write(fd, request, n) != n) return 1;
        while (read(fd, answer, sizeof(answer)) > 0);
        close(fd);
    }
    printf("%u\\n", nr);
    return 0;
}
"""
# argv: the name of the process, how deep, and whether each round makes its functions anew.
DEEP = """import collections, ctypes, sys
TEXT = "def f%d(n): return f%d(n) if %d else sum(range(n))"
ctypes.CDLL(None).prctl(15, sys.argv[1].encode())
DEPTH, is_new = int(sys.argv[2]), sys.argv[3] == "new"
def make():
    space = {}
    for i in range(DEPTH):
        exec(compile(TEXT % (i, i + 1, i + 1 < DEPTH), "/made/anew.py", "exec"), space)
    return space["f0"]
function, kept = make(), collections.deque(maxlen=200)
while True:
    if is_new:
        function = make()
        kept.append(function)
    function(50000)
"""


def keep(box, name, text):
    path = os.path.join(box.dir, name)
    with open(path, "w", encoding="ascii") as stream:
        stream.write(text)
    return path


# ---- shares ----


def count(box, script):
    """{part: samples}, and the samples with and without all names, of stacks with a function of the script."""
    below, named, unnamed = collections.Counter(), 0, 0
    for line, nr in test_python.read(box):
        frames = [frame for frame in map(FRAME.match, line.split(";")) if frame]
        own = [frame.group(1) for frame in frames if frame.group(2) == script]
        if not own or line.startswith("WAIT"):
            continue
        bad = any(frame.group(1).startswith("[") for frame in frames)
        named, unnamed = named + (0 if bad else nr), unnamed + (nr if bad else 0)
        parts = [name for name in own if name in PARTS]
        if parts:
            below[parts[0]] += nr
    return below, named, unnamed


def far(used, below):
    """The largest distance of a share from the truth, in sigma."""
    total = sum(below.values())
    distances = []
    for name in PARTS:
        share = used[name] / sum(used.values())
        distances.append(abs(below[name] - total * share) / math.sqrt(max(total * share * (1 - share), 1)))
    return max(distances)


def judge(what, used, below, named, unnamed):
    total = sum(below.values())
    shares = ", ".join("%.1f %% (really %.1f)" % (100 * below[name] / max(total, 1), 100 * used[name] / sum(used.values()))
                       for name in PARTS)
    enough = total >= LEAST
    return [figure(far(used, below) <= 3 if enough else None, "%s: %s of %d samples, at most %.1f sigma off; 3" % (
                what, shares, total, far(used, below))),
            figure(named >= 0.995 * (named + unnamed) if enough else None, "%s: %d of %d samples have all names, %.2f %%; 99.5" % (
                what, named, named + unnamed, 100 * named / max(named + unnamed, 1)))]


def python_shares(box, what, script, way):
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    used = collections.Counter()
    for word in box.good(PYTHON, script, way, SECONDS, timeout=opdtest.HANG_SECONDS).split():
        name, seconds = word.split("=")
        used[name] += float(seconds)
    box.opcontrol("--stop")
    ok = judge(what, used, *count(box, script))
    box.shutdown()
    box.opcontrol("--reset")
    return ok


def start_service(box):
    service = box.start(PYTHON, keep(box, "service.py", SERVICE), stdout=subprocess.PIPE, text=True)
    return service, service.stdout.readline().strip()


def client(box):
    path = os.path.join(box.dir, "client")
    box.good("gcc", "-O2", "-o", path, keep(box, "client.c", CLIENT))
    return path


def time_of_parts(box, port):
    text = box.good(PYTHON, "-c", "import urllib.request as r; print(r.urlopen('http://127.0.0.1:%s/end').read().decode())" % port)
    return {"Beta.beta" if name == "beta" else name: float(seconds) for name, seconds in re.findall(r'"(\w+)": ([0-9.e-]+)', text)}


def service_shares(box):
    load_program = client(box)
    box.start_daemon("--event=default", "--stacks=%d" % RATE)
    service, port = start_service(box)
    nr = int(box.good(load_program, port, 2 * SECONDS))
    used = time_of_parts(box, port)
    box.opcontrol("--stop")
    service.send_signal(signal.SIGKILL)
    ok = judge("Python, http.server, %d requests" % nr, used, *count(box, os.path.join(box.dir, "service.py")))
    box.shutdown()
    box.opcontrol("--reset")
    return ok


def as_figure(box, what, check, *args):
    """A check of a system test, which prints its figures."""
    try:
        check(box, *args)
        return [figure(True, "%s: within 3 sigma, and enough samples have all names" % what)]
    except Skip as skip:
        return [figure(None, "%s: %s" % (what, skip))]
    except Failure as failure:
        if box.daemon:
            box.shutdown()
            box.opcontrol("--reset")
        return [figure(False, "%s: %s" % (what, failure))]


def measure_shares(box):
    ok, box.ring_size = [], "16M"
    script = keep(box, "parts.py", test_python.SCRIPT)
    box.configure()
    test_python.know(box, PYTHON)
    for way in test_python.WAYS:
        ok += python_shares(box, "Python, %s" % way, script, way)
    if box.run(PYTHON, "-c", "import numpy").rc:
        ok.append(figure(None, "numpy and json: python3-numpy is not installed"))
    else:
        ok += python_shares(box, "Python, numpy and json", keep(box, "with-numpy.py", NUMPY), "plain")
    ok += service_shares(box)
    for name, language in test_runtimes_scripts.LANGUAGES.items():
        if shutil.which(language[0]):
            ok += as_figure(box, name, test_runtimes_scripts.check, name)
    if shutil.which("node"):
        node = [shutil.which("node")]
        script = keep(box, "parts.js", test_node.SCRIPT)
        test_node.make_tables(box, node, script)
        for way in test_node.WAYS:
            ok += as_figure(box, "node %s" % " ".join(way), test_node.check, node[0], way, script)
    if shutil.which("javac"):
        ok += as_figure(box, "java", test_java.java)
    return ok


# ---- opds over the same load ----


class Opds:
    """Several daemons that run at the same time: {name: keys of the configuration}."""

    def __init__(self, rate, kinds):
        self.boxes = {}
        try:
            for kind, keys in kinds.items():
                self.boxes[kind] = opdtest.Box()
                self.boxes[kind].configure(**keys)
                self.boxes[kind].start_daemon("--event=default", "--stacks=%d" % rate)
        except BaseException:
            self.close()
            raise

    def each(self, function):
        return {kind: function(box) for kind, box in self.boxes.items()}

    def close(self):
        for box in self.boxes.values():
            box.close()


def runs_of(box):
    """(ns, runs) of the programs that run at a sample, as the kernel counts them."""
    ns = nr = 0
    for name in os.listdir("/proc/%d/fdinfo" % box.daemon.pid):
        try:
            with open("/proc/%d/fdinfo/%s" % (box.daemon.pid, name), encoding="ascii") as stream:
                fields = dict(re.findall(r"^(\w+):\s+(\d+)$", stream.read(), re.M))
        except FileNotFoundError:
            continue
        if int(fields.get("prog_type", 0)) == SAMPLER_PROGRAM:
            ns, nr = ns + int(fields["run_time_ns"]), nr + int(fields["run_cnt"])
    return ns, nr


def set_bpf_stats(value):
    with open("/proc/sys/kernel/bpf_stats_enabled", "r+", encoding="ascii") as stream:
        before = stream.read()
        stream.seek(0)
        stream.write(value)
    return before


def take_phase(opds, program):
    """What both opds did for KERNEL_SECONDS: ns and runs of the program, and CPU seconds."""
    def look(box):
        return (*runs_of(box), cpu_of_all(box.daemon.pid))
    if program:
        time.sleep(WARM_SECONDS)
    before = opds.each(look)
    time.sleep(KERNEL_SECONDS)
    after = opds.each(look)
    return {kind: [b - a for a, b in zip(before[kind], after[kind])] for kind in before}


def start_first(box, *command):
    """Of the programs of the machine this one gets most time: its samples are the most."""
    program = box.start(PYTHON, *command, start_new_session=True)
    with open("/proc/%d/autogroup" % program.pid, "w", encoding="ascii") as stream:
        stream.write("-20")
    return program


def frames_of(box, name):
    """(samples, frames of Python, frames of functions that are made anew) of the processes of a name."""
    nr = frames = made = 0
    for line, count_of in test_python.own_stacks(box, name).items():
        found = [frame for frame in map(FRAME.match, line.split(";")) if frame]
        nr, frames = nr + count_of, frames + count_of * len(found)
        made += count_of * sum(frame.group(2) == "/made/anew.py" for frame in found)
    return nr, frames, made


def measure_kernel(box):
    """The program runs at the samples of all processes of the host. What it costs for the others is known
    from a phase without one of these, and what is more belongs to this one.
    """
    script, was, ok = keep(box, "deep.py", DEEP), set_bpf_stats("1"), []
    opds = Opds(KERNEL_RATE, {"on": {"Waits": "no", "DeepStackBudget": "0"},
                              "off": {"Waits": "no", "DeepStackBudget": "0", "Runtimes": "no"}})
    rows = {}
    try:
        box_on = opds.boxes["on"]
        for _ in range(2):  # opd knows the file
            box_on.run("timeout", "2", PYTHON, script, "none", 2, "known")
        for name, depth, kind in (("", 0, ""), ("few", 1, "known"), ("known", 38, "known"), ("new", 38, "new")):
            program = start_first(box, script, "deep-" + name, depth, kind) if name else None
            rows[name] = take_phase(opds, program)
            if program:
                program.kill()
        box_on.opcontrol("--dump")
        taken = {name: frames_of(box_on, "deep-" + name) for name in rows if name}
    finally:
        opds.close()
        set_bpf_stats(was)
    other_ns = rows[""]["on"][0] / max(rows[""]["on"][1], 1)

    def own_ns(name):
        """ns for the samples of this program in its phase: of all that it had, the middle part was measured."""
        ns, runs, _ = rows[name]["on"]
        nr = taken[name][0] * KERNEL_SECONDS / (KERNEL_SECONDS + WARM_SECONDS)
        return (ns - (runs - nr) * other_ns) / max(nr, 1)
    nr_frames = {name: taken[name][1] / max(taken[name][0], 1) for name in taken}
    each = (own_ns("known") - own_ns("few")) / (nr_frames["known"] - nr_frames["few"])
    fixed = own_ns("few") - each * nr_frames["few"]
    names = taken["new"][2] / max(taken["new"][0], 1)
    of_name = (own_ns("new") - fixed - each * nr_frames["new"]) / max(names, 0.01)
    print("         samples, frames, new functions: %s; %.0f ns for a sample of another program" % (taken, other_ns))
    is_enough = min(nr for nr, _, _ in taken.values()) >= LEAST
    ok.append(figure(fixed + 40 * each <= 3000 if is_enough else None, "a sample with 40 frames: %.0f ns in the kernel, %.0f and "
                     "%.1f a frame; at most 3,000" % (fixed + 40 * each, fixed, each)))
    ok.append(figure(of_name <= 50000 if is_enough else None, "a name, once: %.0f ns in the kernel; at most 50,000" % of_name))
    runs = sum(row["off"][1] for row in rows.values())
    ok.append(figure(runs == 0, "Runtimes=no: the program ran %d times; never" % runs))
    for name in ("known", "new"):
        own, off = rows[name]["on"][2], rows[name]["off"][2]
        print("         %s: opd itself %.0f us a sample of STACKS, without functions %.0f" % (
            name, 1e6 * own / max(rows[name]["on"][1], 1), 1e6 * off / max(rows[name]["on"][1], 1)))
    return ok


def measure_service(box):
    kinds = {"names": {}, "no names": {"Runtimes": "no"}, "stacks": {"Bpf": "no"}}
    load_program = client(box)
    service, port = start_service(box)
    opds = Opds(SERVICE_RATE, kinds)
    try:
        program = box.start(load_program, port, 2 * WARM_SECONDS + SERVICE_SECONDS + 60)
        time.sleep(WARM_SECONDS)
        opdtest.wait_until(lambda: not any(opds.each(lambda each: each.status()["tables_waiting"]).values()), 60, "tables")
        time.sleep(WARM_SECONDS)
        begin = {**opds.each(lambda each: cpu_of_all(each.daemon.pid)), "busy": opdtest.busy_seconds()}
        time.sleep(SERVICE_SECONDS)
        end = {**opds.each(lambda each: cpu_of_all(each.daemon.pid)), "busy": opdtest.busy_seconds()}
        samples = opds.each(lambda each: each.status()["python_samples"])
        memory = opds.each(memory_of)
        program.kill()
        service.kill()
    finally:
        opds.close()
    spent = {kind: end[kind] - begin[kind] for kind in end}
    cpu = {kind: 100 * spent[kind] / spent["busy"] for kind in kinds}
    more = (memory["names"][0] - memory["no names"][0]) / 1e6
    print("         %% of a busy CPU: %s; samples %s; CPUs were busy for %.1f s in %d" % (
        {kind: round(value, 3) for kind, value in cpu.items()}, samples, spent["busy"], SERVICE_SECONDS))
    return [figure(cpu["names"] <= 0.3, "opd over a web service at %d Hz: %.3f %% of a busy CPU, without functions %.3f, without "
                   "waits and deep stacks %.3f; at most 0.3" % (SERVICE_RATE, cpu["names"], cpu["no names"], cpu["stacks"])),
            figure(more <= 10, "memory: %.1f MB more with functions, %.1f MB without; at most 10 MB" % (
                more, memory["no names"][0] / 1e6))]


def test(box):
    if "OPD_WAITS" not in box.env:
        raise Skip("opd was built without clang or libbpf")
    ok = []
    for part in WANTED:
        print("== %s, %s" % (part, load()), flush=True)
        ok += globals()["measure_" + part](box)
    require(all(each is not False for each in ok), "%d figures do not meet their aims" % ok.count(False))


if __name__ == "__main__":
    opdtest.run(test)
