# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of opcontrol share: the keys of --status --json, and daemons that are none."""
import fcntl
import os
import signal
import socket
import struct
import time

STATUS_KEYS = {"state", "setup_waits", "pid", "uptime_ns", "running_ns", "cpu_ns", "rss_bytes", "nr_files",
               "nr_processes", "nr_images", "dumps", "has_pmu",
               "session_dir", "vmlinux", "kernel_note", "separate_lib", "separate_kernel", "separate_thread",
               "separate_cpu", "separate_name", "separate_user", "nr_programs", "nr_events",
               "nr_cpus", "events", "cpus", "ring_bytes", "ring_need_bytes", "ring_is_auto", "swap_threads",
               "event_wait_ns", "visits", "visits_ns", "swapping_ns", "turns",
               "turn_ns", "turn_longest_ns", "turn_planned_ns", "maps_reread", "rescan_left",
              "separate_cgroup", "nr_cgroups", "not_split",
               "of_unknown_cgroups", "image_filter", "stack_wanted_hz", "stack_rate_hz", "stack_bytes", "stack_ring_bytes",
               "stack_walks", "stack_frames", "stack_walk_ns", "stacks_waiting",
               "stack_stops", "tables_made", "tables_from_cache", "tables_failed", "tables_waiting",
               "no_deep", "no_runtimes", "deep_samples", "deep_stacks",
               "deep_copied", "deep_passed", "deep_denied", "deep_unread", "deep_lost",
               "deep_bytes", "deep_joined", "deep_dropped", "deep_cut", "deep_cut_bytes", "deep_cut_most_bytes",
               "no_waits", "wait_quantum_ns", "wait_switches", "wait_idle", "wait_kernel", "wait_emitted", "wait_skipped",
               "wait_lost", "wait_records", "wait_blocked_us", "wait_disk_us", "wait_uninterruptible_us", "wait_runnable_us",
               "wait_preempted_us", "wait_frozen_us"}
JIT_KEYS = {"jit_" + n for n in ("processes", "functions", "sampled", "objects", "bytes", "code_bytes",
                                 "refused_files", "refused_records", "refused_size", "refused_memory",
                                 "refused_processes", "failed_objects", "functions_forgotten", "put_off",
                                 "cpu_ns", "cpu_longest_ns", "waiting", "named_late", "unnamed_samples",
                                 "refused_waiting")}
BOUND_KEYS = {"dcookie_errors", "dcookie_lines_damaged", "files_forgotten", "images_forgotten", "images_refused",
              "mappings_dropped",
              "nr_images_counted", "places_dropped", "processes_dropped", "too_many_images",
              "cgroup_slots_taken_back", "cgroups_forgotten", "classes_merged",
              "memory_dropped", "looks_unanswered", "helpers_ended", "programs_refused", "process_names_skipped",
              "tables_crashed", "tables_timed_out", "tables_uncached", "minutes_lost", "minutes_lengthened",
              "sessions_not_written", "too_many_sample_files", "nr_session_files", "max_session_files"}
BOUND_KEYS |= {"ibs_" + n for n in ("cut", "decoded", "extra", "missing", "no_address", "no_caps", "not_valid",
                                    "old_fetch", "redacted", "short",
                                     "uneven", "unknown_caps")}
BOUND_KEYS |= {"callgraph"} | {"arcs_" + n for n in ("stored", "ended_no_mapping", "ended_other", "of_nowhere",
                                                     "of_another", "filtered", "undecodable", "not_split",
                                                      "lost_no_room", "lost_no_space", "lost_too_many_files",
                                                      "lost_file_limit", "lost_io_error", "lost_no_memory")}
STATUS_KEYS |= JIT_KEYS | BOUND_KEYS
STATUS_KEYS |= {"%s_%s" % (runtime, n) for runtime in ("python", "node", "java", "php", "perl", "ruby") for n in (
    "processes", "refused", "samples", "complete", "none", "fault", "deep", "moved", "unnamed")}
LOSSES = {"lost_undecodable", "lost_no_space", "lost_too_many_files", "lost_file_limit", "lost_io_error",
          "lost_no_memory"}
EVENT_KEYS = LOSSES | {"name", "role", "count", "unit_mask", "every_event", "taken", "received", "stored",
                       "unattributed", "filtered", "lost_kernel",
                       "outstanding", "throttled_ns", "nr_throttles", "enabled_ns", "counted_ns"}
EVENT_KEYS |= {"end_" + n for n in ("complete", "cut", "no_row", "left_code", "no_table_yet", "too_deep", "no_room", "guessed")}
CPU_KEYS = LOSSES | {"cpu", "online", "swaps", "swap_wait_ns", "swap_longest_ns", "bytes_read", "records_read",
                     "turn_bytes", "turn_records",
                     "turn_most_bytes", "turn_most_records", "sideband_bytes", "sideband_lost", "late", "damaged",
                     "received", "lost_kernel", "throttled_ns"}
STATUS, START, STOP, DUMP, SHUTDOWN = 1, 2, 3, 4, 6


def opcontrol(box):
    return os.path.join(box.bin, "opcontrol")


def kept(box, name="daemonrc"):
    with open(os.path.join(box.session, name), encoding="ascii") as stream:
        return dict(line.rstrip("\n").split("=", 1) for line in stream)


def stub(box, text):
    path = os.path.join(box.dir, "stub")
    with open(path, "w", encoding="ascii") as stream:
        stream.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return {"OPD_DAEMON": path}


class FakeDaemon:
    """A process that gives these answers at the control socket: {command:
    (error, payload)}; it does not answer other commands. locked: it also holds the lock; linger:
    seconds that it takes to end; version: of the protocol, else that of the request.
    """

    def __init__(self, box, answers, end_after=None, locked=False, linger=0, version=None):
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listening.bind(box.socket)
        listening.listen()
        self.lock = lock = self.hold_lock(box) if locked else None
        self.version = version
        self.path, self.ended, self.pid = box.socket, False, os.fork()
        if not self.pid:
            try:
                self.serve(listening, answers, end_after)
                time.sleep(linger)
            finally:
                os._exit(0)
        listening.close()
        if lock:
            lock.write(str(self.pid))
            lock.close()

    @staticmethod
    def hold_lock(box):
        """The child's, when the parent has closed it."""
        lock = open(os.path.join(box.session, "lock"), "w", encoding="ascii")
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock

    def ended_by(self):
        """The signal that has ended it, 0 for none."""
        self.ended = True
        return os.WTERMSIG(os.waitpid(self.pid, 0)[1])

    def serve(self, listening, answers, end_after):
        command = None
        while command is None or command != end_after:
            client = listening.accept()[0]
            magic, version, command = struct.unpack("<IHH8x", client.recv(16))
            if command in answers:
                error, payload = answers[command]
                if callable(payload):
                    payload = payload()
                if self.lock and command == end_after:
                    self.lock.close()  # whoever has the answer finds a lock that nobody holds
                client.send(struct.pack("<IHHiI", magic, self.version or version, command, -error, len(payload)) + payload)
            client.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.ended:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if os.path.exists(self.path):
            os.unlink(self.path)


def status_payload(state=1):
    """Of the calling process, which runs, or is paused, and has neither events nor CPUs."""
    return struct.pack("<8I%dQ6I16184x" % (24 + len(JIT_KEYS | BOUND_KEYS)), os.getpid(), state,
                       *[0] * (36 + len(JIT_KEYS | BOUND_KEYS)))
