#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program with three quarters of its time in hot_a and one in hot_b shows these shares in
opreport -l, at 1 kHz over 10 s.
"""
import re

import elfsyms
import opdtest
from opdtest import require

SECONDS = 10
POINTS = 3.0


def symbol_lines(text):
    """{symbol: (samples, percent)} of opreport -l output."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"^(\d+) +([0-9.e+-]+) .*?(\S+)$", line)
        if match:
            found[match.group(3)] = (int(match.group(1)), float(match.group(2)))
    return found


def check_percent(symbols, name, wanted, own):
    """own: the share of the samples that is in the program. The time of interrupts is in the same
    list, as kernel symbols.
    """
    require(name in symbols, "opreport -l does not list %s: %s" % (name, symbols))
    percent = symbols[name][1]
    print("%s: %.2f %%, %d samples; the program has %.2f %% of its list" % (name, percent, symbols[name][0], 100 * own))
    require(abs(percent - wanted * own) <= POINTS, "%s has %.2f %%, not %.0f of %.2f %%" % (name, percent, wanted, 100 * own))


def test(box):
    path = box.copy_work("shares-app")
    box.start_daemon("--event=TIMER:997000", "--separate=library,kernel")
    spent = [int(n) for n in box.good(path, "shares", SECONDS * 1000).split()]
    share = 100.0 * spent[0] / sum(spent)
    require(abs(share - 75) < 0.5, "the work itself spent %.2f %% in hot_a" % share)
    box.opcontrol("--stop")
    box.check_ledger()
    print(box.opreport("-l", path), end="")
    symbols = symbol_lines(box.opreport("-l", path))
    own = sum(n for n, _ in symbol_lines(box.opreport("-l", "-x", path)).values()) / sum(n for n, _ in symbols.values())
    check_percent(symbols, "hot_a", 75, own)
    check_percent(symbols, "hot_b", 25, own)
    nr_samples = symbols["hot_a"][0] + symbols["hot_b"][0]
    require(0.8 * SECONDS * 1000 <= nr_samples <= 1.1 * SECONDS * 1000, "%d samples in %d s at 1 kHz" % (nr_samples, SECONDS))
    ranges = elfsyms.symbol_ranges(path, ("hot_a", "hot_b"))
    keys = {}
    for sample_file in box.files():
        if sample_file.name.image[1] == path:
            keys.update(sample_file.keys)
    for name, (start, end) in ranges.items():
        count = sum(n for key, n in keys.items() if start <= key < end)
        require(count == symbols[name][0], "%s: opreport -l says %d, the sample file %d" % (name, symbols[name][0], count))
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
