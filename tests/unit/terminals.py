# SPDX-License-Identifier: GPL-3.0-or-later
"""What a program writes to a terminal.

The test keeps its end of the terminal open until the program has ended: when all ends are closed, a
read can fail although the kernel has not handed out the last words yet.
"""
import os
import select

STEP_S = 0.1


def read_terminal(main, terminal, process):
    """The bytes that process wrote; both descriptors are closed afterwards, and the process has ended."""
    shown = b""
    while process.poll() is None or select.select([main], [], [], 0)[0]:
        if select.select([main], [], [], STEP_S)[0]:
            shown += os.read(main, 65536)
    os.close(main)
    os.close(terminal)
    return shown
