#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
Perl, PHP and Ruby with nothing prepared: a program whose paths have 50, 30 and 20 % of its work has
these shares within 3 sigma, nearly all of its samples have their functions, and the innermost one
has its line.
"""
import collections
import math
import os
import re
import shutil

import opdtest
from opdtest import require

SOURCE = os.path.realpath(os.environ["OPD_SOURCE"])
RATE = 199
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


def test(box):
    missing = [name for name, language in LANGUAGES.items() if not shutil.which(language[0])]
    for name in LANGUAGES:
        if name not in missing:
            check(box, name)
    if missing:
        raise opdtest.Skip("not installed: %s" % ", ".join(missing))


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
