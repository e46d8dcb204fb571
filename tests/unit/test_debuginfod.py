#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debug files from debuginfod servers on loopback: Debian's server, and servers that lie, hang and
send without end. Run from the build directory by `make check`.
"""
import http.server
import os
import pty
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path[:0] = [os.path.join(SOURCE, "tests", "system"), os.path.join(SOURCE, "tests", "unit")]
import elfsyms  # noqa: E402
from sample_files import put_image  # noqa: E402
from terminals import read_terminal  # noqa: E402

TOOLS = os.path.abspath(os.environ.get("TOOLS", "bin"))
PROGRAM = "static int hot(int x) { return x + 1; }\nint (*pointer)(int) = hot;\n" \
          "int main(int argc, char **argv) { return pointer(argc); }\n"
HANG_SECONDS = 120
BOUND_SECONDS = 60  # the limits of the tests are a few seconds; the rest is for a busy machine
SHORT = "--debuginfod-time=2,6"
LONG = "--debuginfod-time=20,40"  # for what ends without a limit of time
LARGE = 1000000  # bytes, for DEBUGINFOD_MAXSIZE


class Server(http.server.ThreadingHTTPServer):
    """Answers with one of the functions below; counts the requests."""
    daemon_threads = True

    def __init__(self, answer, **facts):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer, self.facts, self.asked, self.over = answer, facts, [], False
        self.url = "http://127.0.0.1:%d" % self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # the client hangs up

    def end(self):
        self.over = True
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        self.server.answer(self, **self.server.facts)

    def log_message(self, *_):
        pass

    def send(self, body, **headers):
        self.send_response(200)
        for name, value in {"Content_Length": len(body), **headers}.items():
            if value is not None:
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)


def has_files(handler, files):
    build_id = handler.path.split("/")[2]
    if build_id in files and handler.path.endswith("/debuginfo"):
        with open(files[build_id], "rb") as stream:
            handler.send(stream.read())
    else:
        handler.send_error(404)


def hangs(handler):
    while not handler.server.over:
        time.sleep(0.1)


def drips(handler):
    handler.send(b"", Content_Length=500000)
    while not handler.server.over:
        handler.wfile.write(b"x")
        handler.wfile.flush()
        time.sleep(0.1)


def never_ends(handler):
    handler.send(b"", Content_Length=None)
    while not handler.server.over:
        handler.wfile.write(bytes(65536))


def sends(handler, body, **headers):
    handler.send(body, **headers)


def is_too_large(handler):
    handler.send(bytes(1024), Content_Length=1 << 50)
    hangs(handler)


def speaks_no_http(handler):
    handler.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")
    handler.close_connection = True


def fails(handler):
    handler.send_error(500)


def redirects(handler):
    handler.send_response(302)
    handler.send_header("Location", "/buildid/again" + handler.path)
    handler.end_headers()


class Debuginfod(unittest.TestCase):
    def setUp(self):
        self.dir = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.dir)
        self.session, self.cache = os.path.join(self.dir, "session"), os.path.join(self.dir, "downloads")
        self.debug = {}
        self.program = self.build("prog")

    def build(self, name, strip=True, count=50):
        """A program, stripped, with samples in a function that is in its debug file only."""
        source, program = os.path.join(self.dir, name + ".c"), os.path.join(self.dir, name)
        with open(source, "w", encoding="ascii") as stream:
            stream.write(PROGRAM.replace("hot", "hot_in_" + name))
        subprocess.run([shutil.which("gcc") or "cc", "-g", "-O0", "-Wl,--build-id", "-o", program, source], check=True)
        put_image(self.session, program, [(elfsyms.symbol_ranges(program, ["hot_in_" + name])["hot_in_" + name][0], count)])
        notes = subprocess.run(["readelf", "-n", program], capture_output=True, check=True, text=True).stdout
        build_id = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)
        os.makedirs(os.path.join(self.dir, "server"), exist_ok=True)
        self.debug[build_id] = os.path.join(self.dir, "server", name + ".debug")
        subprocess.run(["objcopy", "--only-keep-debug", program, self.debug[build_id]], check=True)
        if strip:
            subprocess.run(["strip", program], check=True)
        return program

    def serve(self, answer, **facts):
        server = Server(answer, **facts)
        self.addCleanup(server.end)
        return server

    def environment(self, *servers, **more):
        urls = " ".join(server if isinstance(server, str) else server.url for server in servers)
        return dict({name: value for name, value in os.environ.items() if not name.startswith("DEBUGINFOD")},
                    DEBUGINFOD_URLS=urls, DEBUGINFOD_CACHE_PATH=self.cache, no_proxy="*", **more)

    def run_tool(self, *arguments, servers=(), tool="opreport", **more):
        begin = time.monotonic()
        done = subprocess.run([os.path.join(TOOLS, tool), *arguments, "--session-dir=" + self.session], capture_output=True,
                              check=False, timeout=HANG_SECONDS, text=True, env=self.environment(*servers, **more))
        self.seconds, self.errors = time.monotonic() - begin, done.stderr
        self.assertEqual(done.returncode, 0, done.stderr)
        if "built without it" in done.stderr:
            self.skipTest("built without libdebuginfod")
        return done.stdout

    def has_name(self, *arguments, servers=(), name="hot_in_prog", **more):
        return name in self.run_tool("-l", *arguments, servers=servers, **more)

    # ---- servers that have the file ----

    def start_debuginfod(self):
        if not shutil.which("debuginfod"):
            self.skipTest("debuginfod is not installed: the Debian package debuginfod")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        child = subprocess.Popen(["debuginfod", "-F", "-p", str(port), "-d", ":memory:", "-t", "0",
                                  os.path.join(self.dir, "server")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 env=self.environment())
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        url, end = "http://127.0.0.1:%d" % port, time.monotonic() + HANG_SECONDS
        find = ["debuginfod-find", "debuginfo", next(iter(self.debug))]
        while time.monotonic() < end and subprocess.run(find, capture_output=True, check=False,
                                                        env=dict(self.environment(url), DEBUGINFOD_CACHE_PATH=self.dir + "/probe")
                                                        ).returncode:
            shutil.rmtree(self.dir + "/probe", ignore_errors=True)
            time.sleep(0.2)
        return url, child

    def test_debian_server(self):
        """Symbols, lines and source from Debian's server. Later runs need no server, and a run that
        is to use no downloads uses none."""
        url, child = self.start_debuginfod()
        kept = {"OPD_CACHE_DIR": os.path.join(self.dir, "symbols")}
        self.assertFalse(self.has_name(**kept))
        self.assertTrue(self.has_name(servers=[url], **kept), self.errors)
        child.kill()
        child.wait()
        for _ in range(2):
            self.assertTrue(self.has_name(servers=[url], **kept))
            self.assertIn("prog.c:1", self.run_tool("-l", "-g", servers=[url], **kept))
            self.assertIn("static int hot_in_prog", self.run_tool("-s", tool="opannotate", servers=[url], **kept))
            for options, servers in ((["--no-debuginfod"], [url]), ([], []), (["--symbols-from=symtab,dynsym"], [url]),
                                     (["--symbols-from=symtab"], [url])):
                self.assertFalse(self.has_name(*options, servers=servers, **kept))
        self.assertNotIn("not asked again", self.errors)

    def test_only_what_is_needed(self):
        """No server is asked for what a report does not show, or what the host has."""
        server = self.serve(has_files, files=self.debug)
        for arguments in ((), ("--images",), ("-l", "image:/nothing*"), ("-l", "--no-debuginfod")):
            subprocess.run([os.path.join(TOOLS, "opreport"), *arguments, "--session-dir=" + self.session], capture_output=True,
                           check=False, env=self.environment(server))
        self.assertEqual(server.asked, [])
        self.build("whole", strip=False)
        self.build("rare", count=1)
        self.assertTrue(self.has_name("-t", "10", servers=[server]))
        self.assertEqual(len(server.asked), 1, server.asked)
        self.assertTrue(self.has_name(servers=[server], name="hot_in_rare"))
        self.assertEqual(len(server.asked), 2, server.asked)
        self.assertTrue(self.has_name("-g", servers=[server], name="hot_in_whole"))
        self.assertEqual(len(server.asked), 2, "its own debugging information is enough")

    def test_without_the_library(self):
        """The package only suggests it. The report is made, one line names the remedy, and nobody
        is asked. Without servers there is no line."""
        server, place = self.serve(has_files, files=self.debug), os.path.join(self.dir, "library")
        os.mkdir(place)
        with open(os.path.join(place, "libdebuginfod.so.1"), "wb"):
            pass  # what dlopen finds is no library
        self.assertFalse(self.has_name(servers=[server], LD_LIBRARY_PATH=place))
        self.assertRegex(self.errors, "^warning: debuginfod: .*install the Debian package libdebuginfod1.*\n")
        self.assertEqual(self.errors.count("warning: debuginfod:"), 1)
        self.assertFalse(self.has_name(LD_LIBRARY_PATH=place))
        self.assertNotIn("warning: debuginfod:", self.errors)
        self.assertEqual(server.asked, [])
        self.assertTrue(self.has_name(servers=[server]), self.errors)

    def test_archive(self):
        """oparchive takes downloaded files along; the archive needs no server."""
        server, away = self.serve(has_files, files=self.debug), os.path.join(self.dir, "away")
        self.assertTrue(self.has_name(servers=[server]))
        self.run_tool("-o", away, tool="oparchive", servers=[server])
        done = subprocess.run([os.path.join(TOOLS, "opreport"), "-l", "-g", "archive:" + away], capture_output=True, check=True,
                              text=True, env=self.environment())
        self.assertIn("prog.c:1", done.stdout)
        self.assertEqual(len(server.asked), 1)

    def test_progress(self):
        """A terminal shows which image it is, and the line goes away."""
        server = self.serve(drips)
        parent, child = pty.openpty()
        running = subprocess.Popen([os.path.join(TOOLS, "opreport"), "-l", SHORT, "--session-dir=" + self.session],
                                   stdout=subprocess.DEVNULL, stderr=child, env=self.environment(server, TERM="xterm"))
        shown = read_terminal(parent, child, running)
        if b"built without it" in shown:
            self.skipTest("built without libdebuginfod")
        self.assertRegex(shown, rb"\r\x1b\[Kdebuginfod: [^\r]*/prog: 0.0 of 0.5 MiB")
        self.assertIn(b"\r\x1b[Kwarning: debuginfod", shown)

    # ---- servers that have it not, or are hostile ----

    def check_failing(self, answer, reason, times=SHORT, **more):
        """It costs one line and bounded time, is asked once for two images, leaves nothing behind, and
        another server still helps."""
        self.build("second", count=20)
        server = answer if isinstance(answer, str) else self.serve(*answer[:1], **dict(answer[1:]))
        self.assertFalse(self.has_name(times, servers=[server], **more))
        self.assertLess(self.seconds, BOUND_SECONDS)
        lines = [line for line in self.errors.splitlines() if "debuginfod:" in line]
        self.assertEqual(len(lines), 1, self.errors)
        self.assertRegex(lines[0], "not asked again.*" + reason)
        if not isinstance(server, str):
            self.assertEqual(len([path for path in server.asked if "again" not in path]), 1)
        left = [name for _, _, names in os.walk(self.cache) for name in names if name.startswith("debuginfo")]
        self.assertEqual(left, [])
        good = self.serve(has_files, files=self.debug)
        self.assertTrue(self.has_name(times, servers=[server, good], name="hot_in_second", **more), self.errors)

    def test_no_server(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.check_failing("http://127.0.0.1:%d" % probe.getsockname()[1], "onnect")

    def test_password_is_not_shown(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.run_tool("-l", servers=["http://me:secret@127.0.0.1:%d/x" % probe.getsockname()[1]])
        self.assertIn("not asked again", self.errors)
        self.assertNotIn("secret", self.errors)

    def test_hanging_server(self):
        self.check_failing((hangs,), "nothing for 1 s")

    def test_dripping_server(self):
        self.check_failing((drips,), "longer than 2 s")

    def test_endless_server(self):
        self.check_failing((never_ends,), "more than %d bytes" % LARGE, DEBUGINFOD_MAXSIZE=str(LARGE))

    def test_garbage(self):
        body = b"\x7fELF\x02\x01\x01" + random.Random(1).randbytes(100000)
        self.check_failing((sends, ("body", body)), "not the debug file")

    def test_another_build_id(self):
        other = self.build("other", count=1)
        with open(other, "rb") as stream:
            self.check_failing((sends, ("body", stream.read())), "not the debug file")

    def test_no_http(self):
        self.check_failing((speaks_no_http,), "HTTP")

    def test_error_of_server(self):
        self.check_failing((fails,), "500")

    def test_redirects(self):
        self.check_failing((redirects,), "redirects|headers", times=LONG)

    def test_too_large(self):
        """A length that is too large is believed at once, and the server is asked for other files."""
        self.build("second", count=20)
        server = self.serve(is_too_large)
        self.assertFalse(self.has_name(SHORT, servers=[server]))
        self.assertEqual(self.errors.count("it is left out"), 2, self.errors)
        self.assertEqual(len(server.asked), 2)

    def test_missing(self):
        """What no server has is not asked for again for a while, and the user is told; an answer of one
        server does not hide the file of another."""
        empty, good = self.serve(has_files, files={}), self.serve(has_files, files=self.debug)
        for nr_notes in (0, 1, 1):
            self.assertFalse(self.has_name(servers=[empty]))
            self.assertEqual(self.errors.count("note: debuginfod:"), nr_notes, self.errors)
        self.assertEqual(len(empty.asked), 1)
        command = re.search("find .* -empty -delete", self.errors).group(0)
        subprocess.run(command, shell=True, check=True)
        self.assertTrue(self.has_name(servers=[empty, good]))
        self.assertEqual((len(empty.asked), len(good.asked)), (2, 1))

    def test_time_for_all(self):
        """The time for all files ends with one line."""
        for i in range(3):
            self.build("more%d" % i, count=20)
        slow = [self.serve(drips) for _ in range(6)]
        self.assertFalse(self.has_name("--debuginfod-time=2,3", servers=slow))
        self.assertLess(self.seconds, BOUND_SECONDS)
        self.assertEqual(self.errors.count("time for all files is over"), 1, self.errors)

    def test_bad_options(self):
        for value in ("0", "x", "1,2,3", "", "1,0", "-5"):
            done = subprocess.run([os.path.join(TOOLS, "opreport"), "--debuginfod-time=" + value], capture_output=True, check=False,
                                  text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("illegal time", done.stderr)


if __name__ == "__main__":
    unittest.main()
