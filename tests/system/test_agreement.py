#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""opreport and the independent reader agree on every count of a session with two events; both can
read while it is written.
"""
import os
import re

import elfsyms
import opdtest
from opdtest import agree, require

NR_LIVE_READS = 20


def check_live(box):
    """While the daemon counts, every read succeeds and no total ever falls."""
    last = {}
    for _ in range(NR_LIVE_READS):
        agree.parse_summary(box.opreport("-n", "-f"))
        totals = {f.path: f.total for f in box.files(live=True)}
        for path, total in last.items():
            require(totals.get(path, -1) >= total, "%s fell from %d to %s" % (path, total, totals.get(path)))
        last = totals


def check_exclude_dependent(box):
    """-x: only what lies in the application itself."""
    own = [f for f in box.files() if f.name.app == f.name.image]
    agree.compare_summary(own, box.opreport("-n", "-f", "-x"))


def check_one_image(box, path):
    chosen = [f for f in box.files() if path in (f.name.app[1], f.name.image[1])]
    require(chosen, "no samples of %s" % path)
    agree.compare_summary(chosen, box.opreport("-n", "-f", path))


def check_symbols(box, path):
    """The rows of one image have all its samples: code between symbols has a row, too. With symbols
    of .symtab alone, as oprofile has it, that code is in no list.
    """
    own = {}
    for sample_file in box.files():
        if sample_file.name.app[1] == sample_file.name.image[1] == path:
            own.update(sample_file.keys)
    ranges = elfsyms.all_ranges(path)
    within = sum(n for key, n in own.items() if any(start <= key < end for _, start, end in ranges))
    for words, wanted in ((), sum(own.values())), (("--symbols-from=symtab",), within):
        listed = sum(int(re.match(r"^(\d+) ", line).group(1))
                     for line in box.opreport("-n", "-l", "-x", *words, path).splitlines())
        require(listed == wanted, "opreport -l -x %s lists %d samples of %d" % (words, listed, wanted))
    require(within >= 0.99 * sum(own.values()), "%d of %d samples lie within symbols" % (within, sum(own.values())))


def test(box):
    path = box.copy_work("agree-app")
    box.start_daemon("--event=TIMER:197000", "--separate=library,kernel")
    workers = [box.start(path, "shares", 4000), box.start(path, "kernel", 2000)]
    box.opcontrol("--dump")
    check_live(box)
    for worker in workers:
        require(worker.wait() == 0, "the work failed")
    box.good("sh", "-c", "gzip -9 <%s | sha256sum" % os.path.join(box.sbin, "opd"))
    box.opcontrol("--stop")
    box.check_ledger()
    box.check_agreement()
    check_exclude_dependent(box)
    check_one_image(box, path)
    check_symbols(box, path)
    box.shutdown()
    box.check_agreement()
    box.opcontrol("--reset")
    two_events(box, path)


def two_events(box, path):
    box.start_daemon("--event=TIMER:1000000", "--event=page-faults:10")
    box.good(path, "faults", 20000)
    box.good(path, "spin", 500)
    box.opcontrol("--stop")
    box.check_ledger()
    require(len({f.name.event for f in box.files()}) == 2, "not two events in the session")
    box.check_agreement()
    box.shutdown()


if __name__ == "__main__":
    opdtest.run(test, larger_rings=True)
