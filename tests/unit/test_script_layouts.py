#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The offsets by which opd reads Python, Perl and PHP are those of the headers that are installed, and
those of Ruby are those that the code of libruby uses.

Run from the build directory by `make check`. PYTHON_INCLUDES=DIR... has the headers of more Pythons:
DIR/Python.h, or DIR/usr/include/python3.N/Python.h of an unpacked package.
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
BUILD = os.getcwd()

PERL = {
    "stack_info": "offsetof(PerlInterpreter, Icurstackinfo)", "cop": "offsetof(PerlInterpreter, Icurcop)",
    "phase": "offsetof(PerlInterpreter, Iphase)", "script": "offsetof(PerlInterpreter, Iorigfilename)",
    "contexts": "offsetof(PERL_SI, si_cxstack)", "previous": "offsetof(PERL_SI, si_prev)",
    "nr_contexts": "offsetof(PERL_SI, si_cxix)", "context_bytes": "sizeof(PERL_CONTEXT)",
    "old_cop": "offsetof(PERL_CONTEXT, cx_u.cx_blk.blku_oldcop)",
    "function": "offsetof(PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_sub.cv)",
    "return_to": "offsetof(PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_sub.retop)",
    "eval_cv": "offsetof(PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_eval.cv)",
    "line": "offsetof(COP, cop_line)", "file": "offsetof(COP, cop_file)", "op_type": "sizeof(OP) - 8",
    "body": "offsetof(SV, sv_any)", "flags": "offsetof(SV, sv_flags)", "start": "offsetof(XPVCV, xcv_start_u)",
    "root": "offsetof(XPVCV, xcv_root_u)", "function_flags": "offsetof(XPVCV, xcv_flags)",
    "name": "offsetof(XPVCV, xcv_gv_u)", "stash": "offsetof(XPVCV, xcv_stash)", "function_file": "offsetof(XPVCV, xcv_file)",
    "glob_name": "offsetof(XPVGV, xiv_u)", "glob_stash": "offsetof(XPVGV, xnv_u.xgv_stash)",
    "stash_names": "offsetof(struct xpvhv_with_aux, xhv_aux) + offsetof(struct xpvhv_aux, xhv_name_u)",
    "named_flag": "CVf_NAMED", "next_state": "OP_NEXTSTATE", "require": "OP_REQUIRE",
}
# What perl.bpf.h has as numbers.
PERL_NUMBERS = """
_Static_assert(CXTYPEMASK == 15 && CXt_SUB == 9 && CXt_FORMAT == 10 && CXt_EVAL == 11 && CXp_TRYBLOCK == 0x40, "cop.h");
_Static_assert(PERL_PHASE_RUN == 4 && SVt_PVGV == 9 && SVt_PVHV == 12 && SVt_PVCV == 13 && SVTYPEMASK == 0xff, "sv.h");
_Static_assert(OP_DOFILE == OP_REQUIRE + 1 && offsetof(HEK, hek_key) == 8, "opnames.h");
_Static_assert(offsetof(struct xpvhv_aux, xhv_name_count) - offsetof(struct xpvhv_aux, xhv_name_u) == 28, "hv.h");
_Static_assert(offsetof(PERL_SI, si_cxmax) == offsetof(PERL_SI, si_cxix) + 4, "cop.h");
_Static_assert(offsetof(PERL_CONTEXT, cx_u.cx_blk.blku_u16) == 2, "cop.h");
_Static_assert(sizeof(PerlInterpreter) == 3768 && PERL_VERSION == 36, "perl.c");
"""
PHP = {
    "current": "offsetof(zend_executor_globals, current_execute_data)",
    "call_bytes": "offsetof(zend_execute_data, prev_execute_data) + sizeof(void *)",
    "opline": "offsetof(zend_execute_data, opline)", "function": "offsetof(zend_execute_data, func)",
    "info": "offsetof(zend_execute_data, This.u1.type_info)", "previous": "offsetof(zend_execute_data, prev_execute_data)",
    "name": "offsetof(zend_function, common.function_name)", "scope": "offsetof(zend_function, common.scope)",
    "operations": "offsetof(zend_op_array, opcodes)", "nr_operations": "offsetof(zend_op_array, last)",
    "operation_bytes": "sizeof(zend_op)", "line": "offsetof(zend_op, lineno)", "file": "offsetof(zend_op_array, filename)",
    "first_line": "offsetof(zend_op_array, line_start)", "class_name": "offsetof(zend_class_entry, name)",
    "text": "offsetof(zend_string, val)",
}
PHP_NUMBERS = """
_Static_assert(ZEND_USER_FUNCTION == 2 && ZEND_EVAL_CODE == 4 && ZEND_CALL_CODE == 0x10000 && ZEND_CALL_TOP == 0x20000, "");
_Static_assert(sizeof(zend_executor_globals) == 1800 && offsetof(zend_function, type) == 0, "php.c");
"""
# The versions of Python, from the first one on, that have a field under this name.
PYTHON = {
    "key": {9: "offsetof(_PyRuntimeState, gilstate.autoTSSkey._key)", 12: "offsetof(_PyRuntimeState, autoTSSkey._key)"},
    "interpreters": {9: "offsetof(_PyRuntimeState, interpreters.head)"},
    "threads": {9: "offsetof(PyInterpreterState, tstate_head)", 11: "offsetof(PyInterpreterState, threads.head)"},
    "next": {9: "offsetof(PyThreadState, next)"}, "thread_id": {9: "offsetof(PyThreadState, thread_id)"},
    "frame": {9: "offsetof(PyThreadState, frame)", 11: "offsetof(PyThreadState, cframe)",
              13: "offsetof(PyThreadState, current_frame)"},
    "has_cframe": {9: "0", 11: "1", 13: "0"}, "cframe": {9: "0", 11: "offsetof(_PyCFrame, current_frame)", 13: "0"},
    "code": {9: "offsetof(PyFrameObject, f_code)", 11: "offsetof(_PyInterpreterFrame, f_code)",
             13: "offsetof(_PyInterpreterFrame, f_executable)"},
    "previous": {9: "offsetof(PyFrameObject, f_back)", 11: "offsetof(_PyInterpreterFrame, previous)"},
    "instruction": {9: "offsetof(PyFrameObject, f_lasti)", 11: "offsetof(_PyInterpreterFrame, prev_instr)",
                    13: "offsetof(_PyInterpreterFrame, instr_ptr)"},
    "owner": {9: "0", 11: "offsetof(_PyInterpreterFrame, is_entry)", 12: "offsetof(_PyInterpreterFrame, owner)"},
    "first_line": {9: "offsetof(PyCodeObject, co_firstlineno)"}, "file": {9: "offsetof(PyCodeObject, co_filename)"},
    "name": {9: "offsetof(PyCodeObject, co_name)", 11: "offsetof(PyCodeObject, co_qualname)"},
    "table": {9: "offsetof(PyCodeObject, co_lnotab)", 10: "offsetof(PyCodeObject, co_linetable)"},
    "first_instruction": {9: "0", 11: "offsetof(PyCodeObject, co_code_adaptive)"},
    "ascii": {9: "sizeof(PyASCIIObject)"}, "compact": {9: "sizeof(PyCompactUnicodeObject)"},
}
PYTHON_HEADERS = {9: ("pycore_runtime.h", "pycore_interp.h", "frameobject.h"),
                  11: ("pycore_runtime.h", "pycore_interp.h", "pycore_frame.h"),
                  14: ("pycore_runtime.h", "pycore_interp.h", "pycore_interpframe_structs.h", "pycore_debug_offsets.h")}
# What interpreters.bpf.h has as numbers: a string, bytes, and the frames that run no function.
PYTHON_NUMBERS = {
    9: """_Static_assert(offsetof(PyASCIIObject, length) == 16 && offsetof(PyASCIIObject, state) == 32, "unicodeobject.h");
_Static_assert(offsetof(PyBytesObject, ob_base.ob_size) == 16 && offsetof(PyBytesObject, ob_sval) == 32, "bytesobject.h");""",
    12: "_Static_assert(FRAME_OWNED_BY_CSTACK >= 3 && FRAME_OWNED_BY_FRAME_OBJECT < 3, \"pycore_frame.h\");"}
# Of Python's own table: the rows of size_words, offsets, fixed_offsets and ascii_words.
OWN_SIZES = ("runtime_state.size", "interpreter_state.size", "thread_state.size", "interpreter_frame.size", "code_object.size")
OWN_OFFSETS = ("runtime_state.interpreters_head", "interpreter_state.threads_head", "thread_state.next",
               "thread_state.current_frame", "thread_state.thread_id", "interpreter_frame.previous", "interpreter_frame.executable",
               "interpreter_frame.instr_ptr", "interpreter_frame.owner", "code_object.filename", "code_object.qualname",
               "code_object.linetable", "code_object.firstlineno", "code_object.co_code_adaptive")
OWN_FIXED = ("bytes_object.ob_size", "bytes_object.ob_sval", "unicode_object.state", "unicode_object.length")
# How the code of libruby reaches each field, as objdump shows it.
RUBY = {
    "rb_profile_frames": {"stack_words": r"mov +0x(8)\(%rax\),%rdx", "frame": r"mov +0x(10)\(%rax\),%rbx",
                          "frame_bytes": r"add +\$0x(40),%rbx", "flags": r"mov +0x(20)\(%rbx\),%rax",
                          "code": r"mov +0x(10)\(%rbx\),%rdi", "body": r"mov +0x(10)\(%rdi\),%r8",
                          "instructions": r"sub +0x(8)\(%r8\),%rsi", "first_line": r"mov +0x(58)\(%r8\),%rdi"},
    "rb_iseq_path": {"path": r"mov +0x(40)\(%rax\),%rax"},
    "rb_iseq_label": {"label": r"mov +0x(50)\(%rax\),%rax"},
}


def compiled(directory, text, flags):
    """The output of a program of C."""
    path = os.path.join(directory, "layout")
    with open(path + ".c", "w", encoding="ascii") as stream:
        stream.write(text)
    subprocess.run(["gcc", "-w", *flags, "-o", path, path + ".c"], check=True)
    return subprocess.run([path], check=True, capture_output=True, text=True).stdout


def numbers(text):
    return {name: int(value) for name, value in (line.split() for line in text.splitlines())}


def printing(fields):
    return "".join('printf("%s %%ld\\n", (long)(%s));\n' % (name, what) for name, what in fields.items())


def of_version(rows, minor):
    """The row of the last version up to this one."""
    return rows[max(first for first in rows if first <= minor)]


def pythons():
    """{minor version: the flags for its headers} of those that opd knows and that are installed."""
    found = {}
    folders = ["/usr/include/python3.%d" % minor for minor in range(9, 15)]
    for folder in os.environ.get("PYTHON_INCLUDES", "").split():
        folders += [folder] + glob.glob(os.path.join(folder, "usr/include/python3.*"))
    for folder in folders:
        version = os.path.join(folder, "patchlevel.h")
        if not os.path.exists(os.path.join(folder, "internal", "pycore_runtime.h")) or not os.path.exists(version):
            continue
        with open(version, encoding="utf-8") as stream:
            minor = int(re.search(r"PY_MINOR_VERSION\s+(\d+)", stream.read()).group(1))
        # Debian's pyconfig.h includes another one, of the architecture
        found[minor] = ["-DPy_BUILD_CORE", "-I" + folder, "-I" + os.path.join(folder, "internal"), "-I" + os.path.dirname(folder)]
    return {minor: flags for minor, flags in found.items() if 9 <= minor <= 14}


class Layouts(unittest.TestCase):
    maxDiff = None

    def own(self, language, layout, fields):
        """What the table in pipeline/runtimes has."""
        return self.own_values(language, {name: "%s.%s" % (layout, name) for name in fields})

    def own_values(self, language, values):
        text = ('#include <stdio.h>\n#include "pipeline/runtimes/%s.c"\n'
                "bool op_row_table_word(const struct op_row_table *table, uint32_t word, uint64_t *value) { return false; }\n"
                "void op_text_add_bytes(struct op_text *text, const void *bytes, size_t nr_bytes) { }\n"
                "int main(void) {\n%sreturn 0; }\n"
                % (language, printing(values)))
        with tempfile.TemporaryDirectory() as directory:
            return numbers(compiled(directory, text, ["-include", os.path.join(BUILD, "config.h"), "-I" + SOURCE, "-I" + BUILD]))

    def theirs(self, includes, checks, fields, flags):
        text = "%s\n#include <stddef.h>\n#include <stdio.h>\n%s\nint main(void) {\n%sreturn 0; }\n" % (
            includes, checks, printing(fields))
        with tempfile.TemporaryDirectory() as directory:
            return numbers(compiled(directory, text, flags))

    def test_python(self):
        found = pythons()
        if not found:
            self.skipTest("the headers of Python (libpython3.11-dev) are not installed")
        print("headers of Python 3.%s" % ", 3.".join(map(str, sorted(found))), file=sys.stderr)
        for minor, flags in found.items():
            wanted = {name: of_version(rows, minor) for name, rows in PYTHON.items()}
            includes = "".join('#include "%s"\n' % name for name in ("Python.h", *of_version(PYTHON_HEADERS, minor)))
            checks = "\n".join(text for first, text in PYTHON_NUMBERS.items() if first <= minor)
            self.assertEqual(self.own("python", "versions[%d].layout" % (minor - 9), wanted),
                             self.theirs(includes, checks, wanted, flags), "Python 3.%d" % minor)

    def test_own_offsets_of_python(self):
        found = {minor: flags for minor, flags in pythons().items() if minor >= 13}
        if not found:
            self.skipTest("the headers of Python 3.13 or 3.14 are not installed: PYTHON_INCLUDES")
        for minor, flags in found.items():
            which, own, wanted = minor - 13, {}, {}
            for array, form, names in (("size_words", "[%d]", OWN_SIZES), ("offsets", "[%d].words", OWN_OFFSETS),
                                       ("fixed_offsets", "[%d].words", OWN_FIXED)):
                for i, name in enumerate(names):
                    own[array + str(i)] = "%s%s[%d]" % (array, form % i, which)
                    wanted[array + str(i)] = "offsetof(struct _Py_DebugOffsets, %s) / 8" % name
            own["ascii"] = "ascii_words[%d]" % which
            wanted["ascii"] = "offsetof(struct _Py_DebugOffsets, unicode_object.asciiobject_size) / 8"
            own["free"], wanted["free"] = "FREE_THREADED_WORD", "offsetof(struct _Py_DebugOffsets, free_threaded) / 8"
            own["version"], wanted["version"] = "VERSION_WORD", "offsetof(struct _Py_DebugOffsets, version) / 8"
            own["rows"] = "op_array_size(offsets)"
            wanted["rows"] = str(len(OWN_OFFSETS))
            includes = "".join('#include "%s"\n' % name for name in ("Python.h", *of_version(PYTHON_HEADERS, minor)))
            self.assertEqual(self.own_values("python", own), self.theirs(includes, "", wanted, flags), "Python 3.%d" % minor)

    def test_perl(self):
        flags = subprocess.run(["perl", "-MExtUtils::Embed", "-e", "ccopts"], capture_output=True, text=True, check=False).stdout
        folder = re.search(r"-I(\S+/CORE)", flags)
        if not folder or not os.path.exists(os.path.join(folder.group(1), "perl.h")):
            self.skipTest("the headers of Perl are not installed")
        if not re.search("/5.36/", folder.group(1)):
            self.skipTest("Perl is not 5.36")
        self.assertEqual(self.own("perl", "versions[0].layout", PERL),
                         self.theirs("#include <EXTERN.h>\n#include <perl.h>", PERL_NUMBERS, PERL, shlex.split(flags)))

    def test_php(self):
        if not shutil.which("php-config"):
            self.skipTest("the headers of PHP are not installed")
        config = [subprocess.run(["php-config", what], capture_output=True, text=True, check=True).stdout
                  for what in ("--version", "--includes")]
        if not config[0].startswith("8.2."):
            self.skipTest("PHP is not 8.2")
        self.assertEqual(self.own("php", "layout_8_2", PHP),
                         self.theirs('#include "php.h"\n#include "zend_globals.h"', PHP_NUMBERS, PHP, shlex.split(config[1])))

    def test_ruby(self):
        library = "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1"
        if not os.path.exists(library):
            self.skipTest("libruby 3.1 of x86-64 is not installed")
        symbols = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout
        wanted = {name: value for fields in RUBY.values() for name, value in fields.items()}
        own, found = self.own("ruby", "layout_3_1", wanted), {}
        for function, fields in RUBY.items():
            start = int(re.search(r"^([0-9a-f]+) T %s$" % function, symbols, re.M).group(1), 16)
            part = ("--start-address=%d" % start, "--stop-address=%d" % (start + 0x160))
            code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", *part, library], capture_output=True, text=True,
                                  check=True).stdout
            for name, pattern in fields.items():
                match = re.search(pattern, code)
                self.assertTrue(match, "%s: no %s" % (function, pattern))
                found[name] = int(match.group(1), 16)
        self.assertEqual(own, found)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
