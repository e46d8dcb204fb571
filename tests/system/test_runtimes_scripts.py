#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Perl, PHP and Ruby with nothing prepared: a program whose paths have 50, 30 and 20 % of its work has
these shares within 3 sigma, nearly all of its samples have their functions, and the innermost one
has its line. Forged ones, whose lists are circles and whose lengths lie, cost a counter.
"""
import collections
import math
import os
import re
import shutil

import opdtest
import test_python
from opdtest import require

SOURCE = os.path.realpath(os.environ["OPD_SOURCE"])
RATE, FORGED_RATE = 199, 997
MS = 5000      # of CPU time
NEEDED = 0.97  # of the samples of a program: with all functions
LEAST = 500    # samples
SHARES = {"fifty": 5, "thirty": 3, "twenty": 2}
DEPTH = {"fifty": 4, "thirty": 9, "twenty": 20}
WORK_LINES = (2, 4)

# Each round has 10 units of the same work. The truth is their number: no clock of the machine.
PERL = """sub burn {
    my $x = 0;
    for my $i (1 .. $_[0] * 2000) {
        $x += $i % 7; }
    return $x; }
sub fifty { return $_[0] ? fifty($_[0] - 1) : burn(5); }
sub thirty { return $_[0] ? thirty($_[0] - 1) : burn(3); }
sub twenty { return $_[0] ? twenty($_[0] - 1) : burn(2); }
while ((times)[0] * 1000 < $ARGV[0]) { fifty(4); thirty(9); twenty(20); }
"""
PHP = """<?php function burn($n) {
    $x = 0;
    for ($i = 0; $i < $n * 2000; $i++) {
        $x += $i % 7; }
    return $x; }
function fifty($n) { return $n ? fifty($n - 1) : burn(5); }
class Part { static function thirty($n) { return $n ? self::thirty($n - 1) : burn(3); } }
function twenty($n) { return $n ? twenty($n - 1) : burn(2); }
function ms() { $usage = getrusage(); return $usage["ru_utime.tv_sec"] * 1000 + $usage["ru_utime.tv_usec"] / 1000; }
while (ms() < $argv[1]) { fifty(4); Part::thirty(9); twenty(20); }
"""
RUBY = """def burn(n)
  x = i = 0
  while i < n * 2000
    x += i % 7; i += 1 end
  x end
def fifty(n) n > 0 ? fifty(n - 1) : burn(5) end
def thirty(n) n > 0 ? thirty(n - 1) : burn(3) end
def twenty(n) n > 0 ? twenty(n - 1) : burn(2) end
while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) * 1000 < ARGV[0].to_i do fifty(4); thirty(9); twenty(20) end
"""

# name: command, file, program, the names of the outermost function and of the others
LANGUAGES = {
    "perl": ("perl", "hot.pl", PERL, "(main)", "main::%s"),
    "php": ("php", "hot.php", PHP, "{main}", "%s"),
    "ruby": ("ruby", "hot.rb", RUBY, "<main>", "%s"),
}


def folded(box, copy, file):
    """[(the functions of the file, outermost first, has any functions, count)] of the program."""
    found = []
    for line in box.opreport("--format=folded").splitlines():
        names, count = line.rsplit(" ", 1)
        names = names.split(";")
        if names[0] != copy:
            continue
        functions = [name.rsplit(" (", 1)[0] for name in names if re.search(r" \(%s(:\d+)?\)$" % re.escape(file), name)]
        found.append((functions, bool(re.search(r"\S \([^()]+\)(;|$)", ";".join(names))), int(count)))
    return found


def path_of(functions, main, form):
    """fifty, thirty or twenty, of a stack with all its functions; or None."""
    for name in SHARES:
        functions = [function.replace("Part::", "") for function in functions]
        if functions == [main] + [form % name] * (DEPTH[name] + 1) + [form % "burn"]:
            return name
    return None


def lines_of(box, function, file):
    """{line: samples} of the innermost frames that are of the function."""
    lines = collections.Counter()
    text = box.good("python3", os.path.join(SOURCE, "tests", "format", "stacks.py"),
                    os.path.join(box.session, "samples", "current", "stacks"))
    for line in text.splitlines():
        found = line.startswith("STACKS:") and re.search(r";%s\([^;]*/%s:\d+\):(\d+)@" % (re.escape(function), file), line)
        if found:
            lines[int(found.group(1))] += int(line.rsplit(" ", 1)[1])
    return lines


def check(box, name):
    command, file, program, main, form = LANGUAGES[name]
    path, copy = os.path.join(box.dir, file), "hot-" + name  # other programs here may run the same interpreter
    shutil.copy(os.path.realpath(shutil.which(command)), os.path.join(box.dir, copy))
    with open(path, "w", encoding="ascii") as stream:
        stream.write(program)
    box.start_daemon("--event=default", "--stacks=%d" % RATE)

    def has_names():
        box.good(os.path.join(box.dir, copy), path, 500)
        box.opcontrol("--dump")
        return any(path_of(functions, main, form) for functions, _, _ in folded(box, copy, file))
    opdtest.wait_until(has_names, opdtest.HANG_SECONDS, "the functions of %s have no names" % name)
    box.opcontrol("--reset")
    box.good(os.path.join(box.dir, copy), path, MS)
    box.opcontrol("--stop")
    total, nr, named = collections.Counter(), 0, 0
    for functions, is_named, count in folded(box, copy, file):
        nr += count
        named += count if is_named else 0
        total[path_of(functions, main, form)] += count
    print("%s: %d samples, %d named, %s" % (name, nr, named, dict(total)))
    require(nr >= LEAST, "%s: only %d samples" % (name, nr))
    require(named >= NEEDED * nr, "%s: %d of %d samples are named" % (name, named, nr))
    inside = sum(total[path] for path in SHARES)
    require(inside >= 0.9 * named, "%s: %d of %d samples are in a path" % (name, inside, named))  # the others: starts and clocks
    for path, share in SHARES.items():
        sigma = math.sqrt(share / 10 * (1 - share / 10) * inside)
        require(abs(total[path] - inside * share / 10) <= 3 * sigma,
                "%s: %s has %d of %d samples, sigma %.1f" % (name, path, total[path], inside, sigma))
    lines = lines_of(box, form % "burn", file)
    inside = sum(count for line, count in lines.items() if WORK_LINES[0] <= line <= WORK_LINES[1])
    require(lines and inside >= NEEDED * sum(lines.values()), "%s: lines %s" % (name, lines))
    box.shutdown()
    box.opcontrol("--reset")


    """opd lives; each way to lie is a counter, or a name that is no name."""
LIES = (
    ("perl", "loop", "[too deep]", "deep"), ("perl", "wild", "[not readable]", "fault"),
    ("perl", "lengths", "[not readable]", "fault"), ("perl", "negative", "[not readable]", "fault"),
    ("perl", "bits", "[not readable]", "unnamed"), ("perl", "good", "main::forged(perl:/a/forged.pl:7)", "complete"),
    ("php", "loop", "[too deep]", "deep"), ("php", "wild", "[not readable]", "fault"),
    ("php", "lengths", "", "complete"), ("php", "bits", "[not readable]", "unnamed"),
    ("php", "good", "forged(php:/a/forged.php:7)", "complete"),
    ("ruby", "loop", "[too deep]", "deep"), ("ruby", "wild", "[not readable]", "fault"),
    ("ruby", "lengths", "[not readable]", "fault"), ("ruby", "bits", "[not readable]", "unnamed"),
    ("ruby", "good", "forged(ruby:/a/forged.rb:7)", "complete"),
)


def run_forged(box, runtime, way, path):
    for _ in range(2):  # the first one makes opd know the file
        if runtime == "ruby":
            library = os.path.join(os.path.dirname(box.work), "forged_ruby.so")
            box.good(path, env={"LD_PRELOAD": library, "OPD_FORGED_WAY": way}, timeout=opdtest.HANG_SECONDS)
        else:
            box.good(path, way, "600", timeout=opdtest.HANG_SECONDS)
        box.opcontrol("--dump")
        opdtest.wait_until(lambda: not box.status()["stacks_waiting"], opdtest.HANG_SECONDS, "stacks wait for tables")


def check_forged(box):
    """opd lives, and its rings do not fill; each way to lie is a counter or a name that is no name."""
    box.start_daemon("--event=default", "--stacks=%d" % FORGED_RATE)
    for runtime, way, wanted, counter in LIES:
        name = "%s-%s" % (runtime, way)
        path = box.copy_work(name, "forged_" + runtime if runtime != "ruby" else "work")
        before = box.status()
        run_forged(box, runtime, way, path)
        found = test_python.own_stacks(box, name)
        as_wanted = sum(count for line, count in found.items()
                        if any(step.startswith(wanted) and "(%s:" % runtime in step for step in line.split(";")))
        total, counter = sum(found.values()), "%s_%s" % (runtime, counter)
        more = box.status()[counter] - before[counter]
        print("%s: %d of %d stacks with %r, %s %d" % (name, as_wanted, total, wanted, counter, more))
        require(total >= LEAST and as_wanted > 0.4 * total, "%s: %d of %d" % (name, as_wanted, total))
        require(more > 0.3 * total, "%s: %s is %d of %d" % (name, counter, more, total))
    names = [step for line, _ in test_python.read(box) for step in line.split(";") if re.search(r"\((perl|php|ruby):", step)]
    require(all(len(step) < 1100 and not re.search("[\0-\x1f]", step) for step in names), "a name is too long, or raw")
    box.opcontrol("--stop")
    test_python.check_ledger(box.status())
    box.shutdown()
    box.opcontrol("--reset")


def test(box):
    missing = [name for name, language in LANGUAGES.items() if not shutil.which(language[0])]
    for name in LANGUAGES:
        if name not in missing:
            check(box, name)
    if "OPD_WAITS" in box.env:
        check_forged(box)
    if missing:
        raise opdtest.Skip("not installed: %s" % ", ".join(missing))


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
