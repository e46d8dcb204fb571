#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of any bytes in every form of stacks: functions, processes and cgroups with line breaks,
quotes, semicolons, bytes that are no UTF-8, and of 10 KB. Each form is well-formed and has all
samples; different names stay different.

Run from the build directory by `make check`.
"""
import collections
import csv
import glob
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
sys.path.insert(0, os.path.join(SOURCE, "tests", "unit"))
sys.dont_write_bytecode = True
import page_data  # noqa: E402
import sample_files  # noqa: E402
import stack_session  # noqa: E402
import test_export_pprof  # noqa: E402
from stack_session import StackCase  # noqa: E402

NAMES = [b"first\nsecond 7", b"a;b", b"\"quote\"", b"it's", b"back\\slash", b"\\\"", b"\xff\xfe!", b"\xc3(", b"\xed\xa0\x80",
         b"\x1b[31mred", b"tab\there", b"\r\nfn=(1) x",
         b"fn=(1) x", b"(2)", b"calls=9 0", b"</script>", b"<!--", b"%s%n", b" blanks ", b"\x7f\x01",
         "\u202eevil".encode(), "\ufffe\u2028".encode(), b"a|b,c", b"x" * 10240, b"\xff" * 10240, b"'\n;" * 3413]
PLACES = ["Q%02d" % i + "q" * max(0, len(name) - 3) for i, name in enumerate(NAMES)]
NAMES = [name.ljust(3, b"_") for name in NAMES]
EACH = 3  # samples of a stack


class Names(StackCase):
    source = "".join("void f%d(void) __asm__(\"%s\");\nvoid f%d(void) { }\n" % (i, place, i) for i, place in enumerate(PLACES)) + \
        "void hot(void) { f0(); }\nvoid _start(void) { hot(); }\n"
    functions = ("hot", "_start", *PLACES)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(cls.program, "rb") as stream:
            data = stream.read()
        for place, name in zip(PLACES, NAMES):
            assert len(place) == len(name) and place.encode() in data
            data = data.replace(place.encode() + b"\0", name + b"\0")
        with open(cls.program, "wb") as stream:
            stream.write(data)

    def setUp(self):
        super().setUp()
        for i, (place, name) in enumerate(zip(PLACES, NAMES)):
            text = name[:4000].decode("latin-1")
            self.store.add([*self.frames("_start", place)], EACH, comm="%x" % i, cgroup="/" + text)
        self.total = EACH * len(NAMES)

    def export(self, form, *options):
        path = os.path.join(self.dir, "out")
        self.report("--format=" + form, "--output-file=" + path, *options)
        with open(path, "rb") as stream:
            return stream.read()

    def lines(self, data):
        """A name makes no line of its own and controls no terminal."""
        self.assertFalse(re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", data))
        return data.decode("utf-8", "surrogateescape").split("\n")

    def groups(self):
        return ["--by=cgroup"], ["--by=comm"]

    def test_folded(self):
        for options in self.groups():
            *lines, last = self.lines(self.export("folded", *options))
            self.assertEqual(last, "")
            stacks = collections.Counter()
            for line in lines:
                stack, count = line.rsplit(" ", 1)
                self.assertEqual(stack.count(";"), 2, line[:200])
                stacks[stack] += int(count)
            self.assertEqual(set(stacks.values()), {EACH}, options)
            self.assertEqual(len(stacks), len(NAMES))

    def test_text(self):
        lines = self.lines(self.report("--stacks", "--by=comm", text=False))
        at = next(i for i, line in enumerate(lines) if line.startswith(" samples")) + 1
        rows = [re.fullmatch(r" *(\d+) +[\d.]+ +[\d.]+ +(\d+)  .+", line) for line in lines[at:-1]]
        self.assertEqual((len(rows), sum(int(row.group(2)) for row in rows)), (3 * len(NAMES), self.total))

    def test_json_and_csv(self):
        for options in self.groups():
            nodes = json.loads(self.export("json", "--stacks", *options).decode())["stacks"]["nodes"]
            self.assertEqual((len(nodes), sum(node["self"] for node in nodes)), (3 * len(NAMES), self.total))
            self.assertEqual(len({node["name"] for node in nodes if node["self"]}), len(NAMES))
            text = self.export("csv", "--stacks", *options).decode()
            rows = list(csv.DictReader(io.StringIO(text, newline="")))
            self.assertEqual(sum(int(row["self"]) for row in rows), self.total)
            self.assertEqual(len({row["name"] for row in rows if row["self"] != "0"}), len(NAMES))

    def test_pprof(self):
        message = gzip.decompress(self.export("pprof"))
        profile = test_export_pprof.fields(message)
        strings = [text.decode() for text in profile[6]]
        self.assertFalse([text for text in strings if re.search("[\x00-\x1f\x7f]", text)])
        self.assertEqual((len(profile[2]), len(profile[5])), (len(NAMES), len(NAMES) + 1))
        self.assertEqual(len(set(strings)), len(strings))
        values = [test_export_pprof.varints(test_export_pprof.fields(sample)[2][0]) for sample in profile[2]]
        self.assertEqual(values, [[EACH]] * len(NAMES))
        if shutil.which("protoc"):
            done = subprocess.run(["protoc", "--decode=Profile", "-I" + os.path.join(SOURCE, "tests/unit"), "pprof.proto"],
                                  input=message, capture_output=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertFalse(re.findall(rb"^ *\d+[:{ ]", done.stdout, re.M))

    @unittest.skipUnless(shutil.which("perf"), "perf is not installed (linux-perf)")
    def test_perf(self):
        path = os.path.join(self.dir, "out")
        self.export("perf")
        done = subprocess.run(["perf", "script", "-i", path, "-F", "period,ip", "-G"], capture_output=True, timeout=99, check=False,
                              stdin=subprocess.DEVNULL, env=dict(os.environ, HOME=self.dir, LC_ALL="C", PERF_CONFIG="/dev/null"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sum(int(line.split()[0]) for line in done.stdout.decode().splitlines() if line.strip()), self.total)

    def test_speedscope(self):
        for options in self.groups():
            top = json.loads(self.export("speedscope", *options).decode())
            (profile,) = top["profiles"]
            self.assertEqual((len(profile["samples"]), sum(profile["weights"])), (len(NAMES), self.total))
            self.assertEqual(len({top["shared"]["frames"][stack[-1]]["name"] for stack in profile["samples"]}), len(NAMES))

    def test_firefox(self):
        for options in self.groups():
            threads = json.loads(self.export("firefox", *options).decode())["threads"]
            self.assertEqual(sum(sum(thread["samples"]["weight"]) for thread in threads), self.total)
            self.assertEqual(len({text for thread in threads for text in thread["stringArray"]} - {"_start", "prog"}), len(NAMES))

    def test_callgrind(self):
        for options in self.groups():
            lines = self.lines(self.export("callgrind", *options))
            body = lines[lines.index(""):]
            known = re.compile(r"(c?(fn|ob)|c?f[li])=\(\d+\)( .+)?|calls=\d+ 0|0 \d+|totals: \d+|")
            strange = [line for line in body if not known.fullmatch(line)]
            self.assertEqual(strange, [])
            self.assertIn("totals: %d" % self.total, body)
            if shutil.which("callgrind_annotate"):
                done = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", os.path.join(self.dir, "out")],
                                      capture_output=True, timeout=60, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                own = [int(count) for count in re.findall(rb"^ *(\d+) \([ \d.]+%\)  \?\?\?:", done.stdout, re.M)]
                self.assertEqual(own, [EACH] * len(NAMES))

    def test_page(self):
        self.report("--html=" + os.path.join(self.dir, "out"))
        with open(os.path.join(self.dir, "out"), "rb") as stream:
            page = page_data.Page(stream.read().decode())
        self.assertEqual(page.samples(), self.total)


# Each begins with a word of its own. Terminals obey them, or readers of lines or XML stumble.
HOSTILE = [word + raw for word, raw in (
    (b"csi8_", b"\x9b31m"), (b"csi_", "\u009b31m".encode()), (b"nel_", "\u0085".encode()), (b"esc_", b"\x1b[2J"),
    (b"rlo_", "\u202ex".encode()), (b"rli_", "\u2067x".encode()), (b"alm_", "\u061cx".encode()), (b"lrm_", "\u200ex".encode()),
    (b"ls_", "\u2028x".encode()), (b"ps_", "\u2029x".encode()), (b"overlong_", b"\xc0\x9bx"), (b"overlong3_", b"\xe0\x82\x9bx"),
    (b"surrogate_", b"\xed\xb0\x80x"), (b"five_", b"\xf8\x88\x80\x80\x9bx"), (b"alone_", b"\x80x"), (b"cut_", b"\xe2\x80"),
    (b"cr_", b"\rx"), (b"lf_", b"\nx"), (b"bell_", b"\x07\x7f"), (b"fffe_", "\ufffex".encode()))]


def escaped(name):
    """The escape of doc/opreport.1, NAMES, written a second time."""
    def show(match):
        return "".join("\\x%02x" % byte for byte in match.group().encode("utf-8", "surrogateescape"))
    return re.sub("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffe\uffff\udc80-\udcff]|"
                  r"\\(?=x[0-9a-f]{2})", show, name.decode("utf-8", "surrogateescape"))


class EveryOutput(StackCase):
    """Hostile names of functions, files, processes and cgroups, in all that the tools write."""
    places = ["W%02d" % i + "w" * (len(name) - 3) for i, name in enumerate(HOSTILE)]
    source = "".join("void f%d(void) __asm__(\"%s\");\nvoid f%d(void) { }\n" % (i, place, i)
                     for i, place in enumerate(places)) + \
        "void hot(void) { f0(); }\nvoid _start(void) { hot(); }\n"
    functions = ("hot", "_start", *places)

    def setUp(self):
        super().setUp()
        with open(self.program, "rb") as stream:
            data = stream.read()
        for place, name in zip(self.places, HOSTILE):
            data = data.replace(place.encode() + b"\0", name + b"\0")
        self.file = os.path.join(os.fsencode(self.dir), b" ".join(HOSTILE))
        with open(self.file, "wb") as stream:
            stream.write(data)
        os.chmod(self.file, 0o755)
        shutil.rmtree(os.path.join(self.session, "{root}"))
        below = b"{root}%s/{dep}/{root}%s/TIMER.0.0.all.all.all" % (self.file, self.file)
        sample_files.write_samples(os.path.join(os.fsencode(self.session), below),
                                   [(self.start[place], 1) for place in self.places])
        with open(os.path.join(self.session, "dcookies"), "r+b") as stream:
            lines = stream.read().replace(os.fsencode(self.program), re.sub(
                rb"[\0-\x1f\x7f]", lambda match: b"\\x%02x" % match.group()[0], self.file))
            stream.seek(0)
            stream.write(lines)
        for place, name in zip(self.places, HOSTILE):
            self.store.add(self.frames("_start", place), 1, comm=name.decode("latin-1")[:7],
                           cgroup="/" + name.decode("utf-8", "replace"))
            runtime = self.store.text(b"\x1f".join([b"python", b"/srv/" + name + b"/" + name, name, b"7"]))
            self.store.add([*self.frames("_start", place)[:1], (stack_session.RUNTIME, 1, 9 << 32 | runtime)], 1)
        self.store.write(os.path.join(self.session, "stacks"))

    def run_tool(self, tool, *options):
        done = subprocess.run([os.path.join(stack_session.TOOLS, tool), "--session-dir=" + self.dir, *options], capture_output=True,
                              timeout=60, check=False, env=dict(os.environ, TZ="UTC", LC_ALL="C.UTF-8"), cwd=self.dir)
        return done.stdout, done.stderr

    def check(self, data, what, *wanted, is_text=True):
        """No character that a terminal obeys; and none of the names raw, also between other bytes."""
        if is_text:
            found = re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]",
                              data.decode().replace("\r\n", "\n"))
            self.assertIsNone(found, what)
        for name in HOSTILE:
            self.assertNotIn(name, data, what)
        for text in wanted:
            self.assertIn(text, data.decode(errors="replace"), what)

    def texts(self, value):
        """All strings of a decoded JSON."""
        if isinstance(value, str):
            return [value]
        return [text for item in (value.values() if isinstance(value, dict) else value if isinstance(value, list) else [])
                for text in self.texts(item)]

    def test_every_form(self):
        usage = self.run_tool("opreport", "--help")[0].decode()
        forms = re.search(r"--format=([a-z]+(?:\|\s*[a-z]+)+)", usage).group(1)
        forms = re.sub(r"\s", "", forms).split("|")
        self.assertGreater(len(forms), 9)
        names = [escaped(name) for name in HOSTILE]
        for form in forms:
            for options in ([], ["-l"], ["-d"], ["-c"], ["-g", "-f"], ["--stacks"], ["--stacks", "--by=comm"],
                            ["--stacks", "--by=cgroup"], ["--stacks", "--native=only"], ["-l", "--runtime"]):
                out, err = self.run_tool("opreport", "--format=" + form, "--output-file=out", *options)
                self.check(err, [form, options])
                if not os.path.exists(os.path.join(self.dir, "out")):
                    self.assertTrue(err, [form, options])
                    continue
                with open(os.path.join(self.dir, "out"), "rb") as stream:
                    out = stream.read()
                os.unlink(os.path.join(self.dir, "out"))
                if out.startswith(b"\x1f\x8b"):
                    out = gzip.decompress(out)
                is_json = out.startswith(b"{")
                wanted = names if options in (["-l"], ["-l", "--runtime"]) and form not in ("perf", "bolt") else []
                self.check(out, [form, options], *([] if is_json else wanted), is_text=form not in ("pprof", "perf"))
                if is_json:
                    self.check("\n".join(self.texts(json.loads(out.decode()))).encode(), [form, options], *wanted)

    def test_no_writer_writes_a_name_itself(self):
        """A name of a struct goes through a function that escapes it, and not to printf or fputs."""
        string = r'"(?:\\.|[^"\\])*"'
        for path in glob.glob(os.path.join(SOURCE, "tools", "*", "*.c")):
            if path.split("/")[-2] not in ("stacks", "report", "export", "page", "opannotate", "opgprof", "optop", "oparchive"):
                continue
            with open(path, encoding="utf-8") as stream:
                calls = re.findall(r"\b(f?puts|f?printf)(\((?:[^;\"]|%s)*;)" % string, stream.read())
            for function, call in calls:
                if "puts" in function or "s" in re.findall(r"%[-*.0-9]*([a-zA-Z])", call):
                    self.assertNotRegex(re.sub(string, "", call), r"(?<!columns\[i\])(?:->|\.)(?:name|image|app|comm|path|file"
                                        r"|source|symbol|event|cgroup|words\[\w+\])\b(?! \+)", path)

    def test_pages(self):
        for tool, option in (("opreport", "--html=out"), ("opannotate", "--html=out")):
            self.run_tool(tool, option)
            with open(os.path.join(self.dir, "out"), "rb") as stream:
                data = stream.read()
            for name in HOSTILE:
                self.assertNotIn(name, data)
            os.unlink(os.path.join(self.dir, "out"))

    def test_other_tools(self):
        for command in (("opannotate", "-a"), ("opannotate", "-s"), ("optop", "--batch", "-n1", "-d1", "--by=function"),
                        ("optop", "--batch", "-n1", "-d1", "--by=path"), ("optop", "--batch", "-n1", "-d1", "--by=image"),
                        ("opcheck",), ("opcheck", "--json"), ("oparchive", "--list-files"), ("opreport", "--cgroups")):
            out, err = self.run_tool(*command)
            self.check(out, command)
            self.check(err, command)
            self.assertTrue(out or err, command)
        for name in HOSTILE:  # a word that is not found, and names of the session near it
            for words in ((name,), (b"session:" + name,), (b"cgroup:/" + name,), (b"--image-path=" + name,),
                          (b"-l", b"-i", name + b"z"), (b"event:" + name,)):
                out, err = self.run_tool("opreport", *words)
                self.check(out + err, words)
            self.check(b"".join(self.run_tool("opgprof", name)), name)


if __name__ == "__main__":
    unittest.main()
