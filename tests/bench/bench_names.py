#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Which share of the samples has a function name: opd beside perf, on a stock Debian.

usage: bench_names.py [SECONDS] [--root=DIR]    default 60; DIR: a root that an earlier run left
       bench_names.py --keep=DIR ...            leaves the root in DIR

Boots a container of Debian with g++, perl, redis, sqlite3, openssl and python3 as load. In it, opd
and `perf record -a` sample at the same time and rate. The table has, for each image, the share of
samples that `perf report` and that `opreport -l` name. Aim: opd's share is at least that of perf, as
far as the number of samples can tell.

Then names are compared with the symbols of Debian's debug packages, which the container does not
have: for perl, libc and python3, at the first, the middle and the last byte of each function.
"""
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", at) for at in ("system", "systemd", "unit")]
import elfsyms  # noqa: E402
import opdtest  # noqa: E402
import sample_files  # noqa: E402
import test_container  # noqa: E402
from opdtest import Skip, require, wait_until  # noqa: E402

LOAD_PACKAGES = ("g++", "perl", "redis-server", "redis-tools", "sqlite3", "openssl", "python3", "linux-perf", "procps")
DEBUG_PACKAGES = {"perl-debug": "usr/bin/perl", "libc6-dbg": "usr/lib/x86_64-linux-gnu/libc.so.6",
                  "python3.11-dbg": "usr/bin/python3.11"}
PERIOD_NS = 1000000
MIN_SAMPLES = 300  # of an image, for both
SIGMAS = 4
WARM_SECONDS = 3
OPD = "/opt/opd"
# Each command runs again and again until the file is gone.
LOADS = {
    "g++": "g++ -O2 -o /tmp/load.o -c /tmp/load.cc",
    "perl": "perl -e 'my %h; for (1 .. 400000) { my $k = $_ % 4999; $h{$k} .= chr(65 + $_ % 26); "
            "$h{$k} = \"\" if length($h{$k}) > 60; } "
            "print join(\",\", map { my $s = $_; $s =~ s/([A-M]+)/<$1>/g; $s } values %h);'",
    "redis": "redis-benchmark -q -n 60000 -c 20 -t set,get,lpush,zadd,incr -r 100000",
    "sqlite3": "rm -f /tmp/load.db; sqlite3 /tmp/load.db 'create table t(a,b); insert into t with recursive n(i) as "
               "(select 1 union all select i+1 from n where i<150000) select i, hex(randomblob(12)) from n; "
               "create index x on t(b); select count(*), max(b) from t where b like \"%AB%\"; select a from t order by b limit 5;'",
    "openssl": "openssl speed -seconds 1 -bytes 1024 aes-256-cbc sha256 rsa2048",
    "python3": "python3 -c 'import json,re,hashlib\nfor i in range(400):\n d = {str(k): [k, str(k) * 3] for k in range(900)}\n"
               " s = json.dumps(d, sort_keys=True); json.loads(s); re.findall(r\"[0-9]+,\", s); sorted(d, key=hash)'",
}
SOURCE = "#include <map>\n#include <string>\n#include <vector>\n#include <algorithm>\n#include <regex>\n" + "".join(
    "template <typename T> T f%d(std::map<T, std::vector<T>> &m, T a) { for (auto &p : m) std::sort(p.second.begin(), "
    "p.second.end()); return m[a].empty() ? a : m[a][0] + T(%d); }\nint g%d(int a) { std::map<int, std::vector<int>> m; "
    "std::map<long, std::vector<long>> n; std::regex r(\"[a-z]+%d\"); return f%d(m, a) + (int)f%d(n, (long)a); }\n" %
    (i, i, i, i, i, i) for i in range(12))


class Machine(test_container.Container):
    """A booted Debian with the loads; opd's programs are bound into it, and are not installed."""

    def __init__(self, box, root):
        super().__init__(box, LOAD_PACKAGES, ["--bind-ro=%s:%s" % (os.path.realpath(os.environ["OPD_BUILD"]), OPD)])
        self.is_given = root is not None
        self.root = root or self.root

    def prepare(self):
        if not self.is_given:
            self.make()
        with open(os.path.join(self.root, "etc/opd.conf"), "w", encoding="ascii") as stream:
            stream.write("SessionDir=/var/lib/opd-bench\nControlSocket=/run/opd-bench\nSessionInterval=0\nProfileOnStart=no\n"
                         "TableDir=\n")
        shutil.rmtree(os.path.join(self.root, "var/lib/opd-bench"), ignore_errors=True)
        self.boot()
        loop = "touch /tmp/run-%s; while [ -e /tmp/run ]; do { %s\n} >/dev/null 2>&1 </dev/null; done\n"
        files = {"load-" + name: loop % (name, command) for name, command in LOADS.items()}
        for name, text in {"load.cc": SOURCE, **files}.items():
            self.good("sh", "-c", 'printf "%s" "$1" >"$2"', "sh", text, "/tmp/" + name)

    def opd(self, tool, *words):
        return self.good("env", "OPD_CONFIG=/etc/opd.conf", "OPD_DAEMON=%s/daemon/opd" % OPD, "OPD_CACHE_DIR=",
                         "%s/bin/%s" % (OPD, tool), *words, timeout=600)

    def start_loads(self):
        self.good("touch", "/tmp/run")
        self.good("systemctl", "start", "redis-server")
        for name in LOADS:
            self.good("systemd-run", "--unit=load-" + re.sub(r"\W", "x", name), "sh", "/tmp/load-" + name)
        for name in LOADS:
            wait_until(lambda path="/tmp/run-" + name: self.run("test", "-e", path).rc == 0, 60,
                       "the load %s does not begin" % name)


def take_samples(machine, seconds):
    """Both profilers at the same time."""
    machine.opd("opcontrol", "--setup", "--event=TIMER:%d" % PERIOD_NS, "--separate=none")
    machine.opd("opcontrol", "--start")
    machine.start_loads()
    machine.good("sleep", str(WARM_SECONDS))
    machine.opd("opcontrol", "--reset")
    machine.good("perf", "record", "-q", "-a", "-e", "cpu-clock", "-c", str(PERIOD_NS), "-o", "/var/tmp/perf.data", "--", "sleep",
                 str(seconds), timeout=seconds + 300)
    machine.opd("opcontrol", "--stop")
    machine.good("rm", "/tmp/run")
    machine.run("sh", "-c", "systemctl stop 'load-*'")


def perf_counts(machine):
    """{image: [samples, samples with a name]} of perf."""
    text = machine.good("perf", "report", "-i", "/var/tmp/perf.data", "--stdio", "-F", "sample,dso,sym", "-t", "|", "-f",
                        timeout=600)
    counts = {}
    for line in text.splitlines():
        words = [word.strip() for word in line.split("|")]
        if len(words) != 3 or not words[0].isdigit():
            continue
        name = re.sub(r"^\[.\] ?", "", words[2])
        counts.setdefault(words[1], [0, 0])[0] += int(words[0])
        counts[words[1]][1] += 0 if re.match(r"0x[0-9a-f]+$", name) else int(words[0])
    return counts


def opd_counts(machine):
    """{image: [samples, samples with a name, samples in a function range]} of opd."""
    report = json.loads(machine.opd("opreport", "-l", "--format=json"))
    counts = {}
    for row in report["symbols"]:
        samples, is_range = row["samples"][0], row["symbol"].startswith("[0x")
        count = counts.setdefault(os.path.basename(row["image"]), [0, 0, 0])
        count[0] += samples
        count[1] += samples if not is_range and row["symbol"] != row["image"] else 0
        count[2] += samples if is_range else 0
    summary = json.loads(machine.opd("opreport", "--format=json"))["classes"][0]["samples"]
    total = sum(count[0] for count in counts.values())
    print("opreport -l has %d samples, its summary %d" % (total, summary))
    require(total == summary, "the rows of opreport -l do not add up to the summary")
    return counts


def share(part, whole):
    return 100.0 * part / whole if whole else 0.0


def compare_shares(perf, opd):
    """Prints the table; true when opd names as much as perf, but for the noise of counting."""
    met = True
    print("%-28s %9s %9s %9s %9s %9s" % ("image", "perf", "named", "opd", "named", "ranges"))
    for image in sorted(perf, key=lambda name: -perf[name][0]):
        count = opd.get("kallsyms" if image.startswith("[kernel") else image)
        if not count or min(count[0], perf[image][0]) < MIN_SAMPLES:
            continue
        wanted, got = share(perf[image][1], perf[image][0]), share(count[1], count[0])
        p = min(max(wanted / 100, 0.01), 0.99)
        noise = 100 * SIGMAS * math.sqrt(p * (1 - p) * (1 / count[0] + 1 / perf[image][0]))
        is_met = got >= wanted - noise
        met &= is_met
        print("%-28s %9d %8.1f%% %9d %8.1f%% %8.1f%% %s" % (image[:28], perf[image][0], wanted, count[0], got,
                                                         share(count[2], count[0]), "" if is_met else "NOT met"))
    return met


def read_build_id(path):
    text = subprocess.run(["readelf", "-n", path], check=True, capture_output=True).stdout.decode()
    return re.search(r"Build ID: ([0-9a-f]+)", text).group(1)


def fetch_debug_files(directory):
    for package in DEBUG_PACKAGES:
        done = subprocess.run(["apt-get", "download", "-qq", package], cwd=directory, capture_output=True, check=False)
        if done.returncode:
            print("%s cannot be fetched: no comparison with it" % package)
    for name in os.listdir(directory):
        if name.endswith(".deb"):
            subprocess.run(["dpkg", "-x", name, "root"], cwd=directory, check=True)
    return os.path.join(directory, "root/usr/lib/debug/.build-id")


def compare_names(opreport, root, image, debug):
    """At each position: a name must be one of the function there, a range must begin in it. True
    when none is wrong, and at most one in a hundred has neither.
    """
    path = os.path.join(root, image)
    code = elfsyms.Image(path).code
    truth = elfsyms.Image(debug, code=code)
    wanted = sorted({at for start, end in truth.starts for at in (start, (start + end) // 2, end - 1) if end > start})
    positions = [(offset + at - vma, 1) for vma, offset, size in code for at in wanted if vma <= at < vma + size]
    with tempfile.TemporaryDirectory() as session:
        sample_files.put_image(session, "/" + image, positions)
        done = subprocess.run([opreport, "--session-dir=" + session, "--root=" + root, "-d", "--demangle=none", "--format=json",
                               "--symbols-from=dynsym,debugdata,plt,ranges"], check=True, capture_output=True,
                              env={**os.environ, "OPD_CACHE_DIR": ""})
    named = ranges = rest = 0
    wrong = []
    for row in json.loads(done.stdout)["symbols"]:
        for detail in row["details"]:
            at, name = int(detail["address"], 16), row["symbol"]
            owners = truth.ranges_of(at)
            if name.startswith("[0x"):
                ranges += 1
                is_right = not owners or any(start <= int(name[1:-1], 16) < end for (start, end), _ in owners)
            elif name == row["image"]:
                rest += 1
                is_right = True
            else:
                named += 1
                is_right = any(name in names for _, names in owners)
            if not is_right:
                wrong.append("%#x is %s, and belongs to %s" % (at, name, owners))
    print("%-36s %7d positions: %d named, %d in a range, %d outside, %d wrong" % (image, len(positions), named, ranges, rest,
                                                                                 len(wrong)))
    for line in wrong[:10]:
        print("   " + line)
    return not wrong and rest * 100 <= len(positions)


def check_names(box, root):
    directory = os.path.join(box.dir, "debug")
    os.mkdir(directory)
    place, met, nr_images = fetch_debug_files(directory), True, 0
    for image in DEBUG_PACKAGES.values():
        build_id = read_build_id(os.path.join(root, image))
        debug = os.path.join(place, build_id[:2], build_id[2:] + ".debug")
        if not os.path.exists(debug):
            print("%s: no debug file of its build" % image)
            continue
        nr_images += 1
        met &= compare_names(os.path.join(box.bin, "opreport"), root, image, debug)
    return met and nr_images > 0


def bench_names(seconds, root, keep):
    def test(box):
        machine = Machine(box, root)
        machine.prepare()
        take_samples(machine, seconds)
        met = compare_shares(perf_counts(machine), opd_counts(machine))
        machine.opd("opcontrol", "--shutdown")
        machine.power_off()
        met &= check_names(box, machine.root)
        if keep:
            shutil.move(machine.root, keep)
        print("aim (opd names at least what perf names, and no name is wrong): %s" % ("met" if met else "NOT met"))
        require(met, "not all names are there and right")
    return test


def main():
    words = sys.argv[1:]
    options = dict(word[2:].split("=", 1) for word in words if word.startswith("--"))
    numbers = [int(word) for word in words if word.isdigit()]
    if not all(shutil.which(tool) for tool in ("readelf", "dpkg", "apt-get")):
        opdtest.run(lambda box: (_ for _ in ()).throw(Skip("this needs a Debian machine with binutils")))
    opdtest.run(bench_names(numbers[0] if numbers else 60, options.get("root"), options.get("keep")))


if __name__ == "__main__":
    main()
