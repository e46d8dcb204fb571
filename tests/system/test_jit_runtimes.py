#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Real JIT compilers beside perf in the same run: node with a jitdump (perf inject -j) and with a perf
map, and Java with Compiler.perfmap, which comes after the code ran. opd names as much as perf, within
a point. The part with Java runs where javac is.
"""
import os
import shutil
import signal
import subprocess

import elfsyms
import opdtest
from opdtest import Skip, require

PERIOD_NS = 997000
SECONDS = 6
POINTS = 1.0
MIN_SAMPLES = 500
LEFT = []

SCRIPT = """
function make(i) {
  return new Function('n', 'x', `let a = ${i}; for (let k = 0; k < n; k++) { a = (a * 1103515245 + ${i} * k) & 0x7fffffff;
    x[k & 255] ^= a; } return a;`);
}
const functions = [], x = new Int32Array(256);
for (let i = 0; i < 40; i++) functions.push(make(i));
function sort(n) { const r = []; for (let i = 0; i < n; i++) r.push((i * 7919) % n); r.sort((p, q) => p - q); return r[0]; }
const end = Date.now() + Number(process.argv[2]) * 1000;
let t = 0, r = 0;
while (Date.now() < end) { t ^= functions[r % 40](20000 + r % 7, x); if (r % 5 == 0) t ^= sort(2000); r++; }
console.log(t);
"""
PROGRAM = """
import java.util.*;
public class Load {
  static int hash(byte[] b) { int h = 0; for (int i = 0; i < b.length; i++) h = 31 * h + b[i]; return h; }
  static int maps(int n) { HashMap<Integer, Integer> m = new HashMap<>(); for (int i = 0; i < n; i++) m.merge(i * 7919 % 1000, 1,
    Integer::sum); return m.size(); }
  public static void main(String[] args) throws Exception {
    long end = System.currentTimeMillis() + 1000 * Long.parseLong(args[0]), t = 0;
    byte[] b = new byte[10000];
    while (System.currentTimeMillis() < end) { t += hash(b) + maps(5000); int[] r = new Random(1).ints(3000).toArray();
      Arrays.sort(r); t += r[5]; }
    System.out.println(t);
    System.out.flush();
    System.in.read();
  }
}
"""


def begin_perf(box, path):
    perf = box.start("perf", "record", "-q", "-k", "mono", "-e", "cpu-clock:u", "-c", PERIOD_NS, "-a", "-o", path,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    opdtest.wait_until(lambda: os.path.exists(path) and os.path.getsize(path), opdtest.HANG_SECONDS, "perf record does not begin")
    return perf


def perf_shares(box, path, pid):
    """(samples of the process, percent in JIT code without a name) as perf script shows them."""
    out = box.good("perf", "script", "-i", path, "-F", "ip,sym,dso", "--pid", pid)
    lines = [line for line in out.splitlines() if line.strip()]
    unnamed = sum(1 for line in lines if line.split("(")[-1].startswith(("/tmp/perf-", "//anon", "[unknown]")) and
                  "[unknown]" in line)
    require(len(lines) >= MIN_SAMPLES, "perf has %d samples" % len(lines))
    return len(lines), 100.0 * unnamed / len(lines)


def opd_shares(box, app):
    """The same of opd, without the kernel; and the samples that have a name of JIT code."""
    total = unnamed = named = 0
    for sample_file in box.files():
        kind, image = sample_file.name.image
        if sample_file.name.app[1] != app or image == "/proc/kallsyms" or "[v" in image:
            continue
        total += sample_file.total
        if kind == "anon":
            unnamed += sample_file.total
        if kind != "jo":
            continue
        ranges = elfsyms.all_ranges(image, by_address=True)
        for key, count in sample_file.keys.items():
            address = key + sample_file.header.anon_start
            if any(start <= address < end for _, start, end in ranges):
                named += count
            else:
                unnamed += count
    require(total >= MIN_SAMPLES, "opd has %d samples of %s" % (total, app))
    return total, 100.0 * unnamed / total, named


def compare(box, what, command, inject=False, late=None):
    app = os.path.realpath(shutil.which(command[0]))
    data = os.path.join(box.dir, "perf.data")
    box.start_daemon("--event=TIMER:%d" % PERIOD_NS, "--separate=library,kernel")
    perf = begin_perf(box, data)
    child = box.start_piped(*command)
    LEFT.append("/tmp/perf-%d.map" % child.pid)
    require(child.stdout.readline(), "%s printed nothing" % what)
    if late:
        box.good(*late, child.pid)
    child.communicate(timeout=opdtest.CALL_SECONDS)
    box.children.remove(child)
    require(child.returncode == 0, "%s: exit code %d" % (what, child.returncode))
    perf.send_signal(signal.SIGINT)
    perf.wait(opdtest.CALL_SECONDS)
    box.children.remove(perf)
    box.opcontrol("--dump")
    box.opcontrol("--stop")
    if inject:
        box.good("perf", "inject", "-j", "-i", data, "-o", data + ".jit")
        data += ".jit"
    nr_perf, unnamed_perf = perf_shares(box, data, child.pid)
    nr_opd, unnamed_opd, named = opd_shares(box, app)
    late = box.check_ledger()["jit_named_late"]
    print("%s: of JIT code has no name: perf %.2f %% of %d samples, opd %.2f %% of %d; %d named, %d of them late" % (
        what, unnamed_perf, nr_perf, unnamed_opd, nr_opd, named, late))
    require(named >= MIN_SAMPLES, "%s: opd names %d samples" % (what, named))
    require(unnamed_opd < unnamed_perf + POINTS, "%s: opd leaves %.2f %% without a name, perf %.2f %%" % (
        what, unnamed_opd, unnamed_perf))
    box.shutdown()
    shutil.rmtree(box.session)
    for path in (os.path.join(box.dir, "perf.data"), data):
        if os.path.exists(path):
            os.unlink(path)


def test(box):
    if not shutil.which("perf"):
        raise Skip("there is no perf")
    if not shutil.which("node"):
        raise Skip("there is no node")
    script = os.path.join(box.dir, "load.js")
    with open(script, "w", encoding="utf-8") as stream:
        stream.write(SCRIPT)
    compare(box, "node --perf-prof", ["node", "--perf-prof", script, SECONDS], inject=True)
    compare(box, "node --perf-basic-prof", ["node", "--perf-basic-prof", script, SECONDS])
    if not shutil.which("javac") or not shutil.which("jcmd"):
        print("java: not there")
        return
    with open(os.path.join(box.dir, "Load.java"), "w", encoding="utf-8") as stream:
        stream.write(PROGRAM)
    box.good("javac", "-d", box.dir, os.path.join(box.dir, "Load.java"))
    compare(box, "java Compiler.perfmap", ["java", "-cp", box.dir, "Load", SECONDS], late=["sh", "-c", "jcmd $0 Compiler.perfmap"])


if __name__ == "__main__":
    try:
        opdtest.run(test, larger_rings=True)
    finally:
        for left in LEFT:
            if os.path.lexists(left):
                os.unlink(left)
