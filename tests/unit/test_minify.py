#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""tools/page/minify.awk: what it leaves of scripts and styles, and that node computes the same from
both.

Run from the build directory by `make check`.
"""
import os
import shutil
import subprocess
import unittest

SOURCE = os.path.realpath(os.environ.get("srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")))
ROOM = os.path.join(SOURCE, "tools", "page")
AWKS = [words for words in (["mawk"], ["gawk"], ["busybox", "awk"], ["original-awk"]) if shutil.which(words[0])] or [["awk"]]
SCRIPTS = (
    ("let a = 1 + + 2 - -3;  // one\n\nlet b = a ++ + a;\n", "let a=1+ +2- -3,b=a++ +a;"),
    ("const s = 'a  //  b' + \"c  /* d */  'e\\\"  f\" ;\n", "let s='a  //  b'+\"c  /* d */  'e\\\"  f\";"),
    ("const r = /a  \\/  [/]  '/g, q = 8 / 2 / 1;\n", "let r=/a  \\/  [/]  '/g,q=8/2/1;"),
    ("const f = x => { return /  x\"/.test(x) ; };\n", "let f=x=>{return/  x\"/.test(x)};"),
    ("const t = `a  ${ f( { b : `  c ${ 1 + 1 }  } ` } ) }  // d`;  const f = x => x.b\n",
     "let t=`a  ${f({b:`  c ${1+1}  } `})}  // d`,f=x=>x.b"),
    ("let n = 1\nlet m = n\n++m\n;[1, 2]\n  .map(x =>\n    x + 1) /* b */\n", "let n=1\nlet m=n\n++m;[1,2].map(x=>x+1)"),
    ("const g = function () { return 1 }\nif (g() in [1]) { g () } else g()\n{ }\n",
     "let g=function(){return 1}\nif(g()in[1]){g()}else g()\n{}"),
    ("const i = 1 .toFixed(1), j = i / 2 / 1;\n", "let i=1 .toFixed(1),j=i/2/1;"),
    # names that no statement has together may be the same one; a name for all is hidden nowhere
    ("const total = [2], one = x => { const inner = x + 1; return inner + total[0]; };\n"
     "function two(first) { const own = first * 2; return own + one(own); }\nconst s = two(1) + total[0];\n",
     "let a=[2],c=x=>{let b=x+1;return b+a[0]};function d(b){let a=b*2;return a+c(a)}\nlet s=d(1)+a[0];"),
    # no name that looks like a short one is given to two words; a constructor needs no empty list
    ("const r1 = 1, long = 2, a1 = r1 + long;\nlet set = new Set(), s = set.size + a1;\n",
     "let c=1,b=2,a=c+b,d=new Set,s=d.size+a;"),
)
STYLES = (
    ("a :focus , b > c { color : red ; margin: 0 -1px calc(1px + 2px) }\n/* x */\n@media (min-width: 1px) {\n}\n",
     "a :focus,b > c{color :red;margin:0 -1px calc(1px + 2px)}@media (min-width:1px){}"),
    ("a::before { content: '  ;  {' } .b .c { top: 0 !important }", "a::before{content:'  ;  {'}.b .c{top:0 !important}"),
)


class Minify(unittest.TestCase):
    def minified(self, awk, lang, text, rc=0):
        done = subprocess.run(awk + ["-v", "lang=" + lang, "-f", os.path.join(ROOM, "minify.awk")], input=text, text=True,
                              capture_output=True, timeout=60, check=False, env=dict(os.environ, LC_ALL="C"))
        self.assertEqual(done.returncode, rc, done.stderr)
        return done.stdout[:-1] if not rc else done.stderr

    def test_cases(self):
        for awk in AWKS:
            for lang, cases in (("js", SCRIPTS), ("css", STYLES)):
                for text, wanted in cases:
                    self.assertEqual(self.minified(awk, lang, text), wanted, awk)
                    self.assertEqual(self.minified(awk, lang, wanted), wanted, awk)

    def test_properties(self):
        """Those that are used often get short names; `// kept:` gives names that others find."""
        script = "const s = ['a'];\nlet n = s.length + s.length + s?.length\nn += s.length + s\n  .length;\n"
        wanted = "let s=['a'],n=s[_a]+s[_a]+s?.[_a]\nn+=s[_a]+s[_a];"
        for awk in AWKS:
            self.assertEqual(self.minified(awk, "js", script), "let _a='length';" + wanted)
            self.assertEqual(self.minified(awk, "js", "'use strict';\n" + script), "'use strict';let _a='length';" + wanted)
            self.assertEqual(self.minified(awk, "js", "// kept: f long other\nconst long = 1, other = 2, f = long, g = other;\n"),
                             "let $b=1,$c=2,f=$b,g=$c;")
            self.assertIn("too many names", self.minified(awk, "js", "// kept: %s\nlet a = 1;\n" % " ".join("x" * 53), rc=1))

    def test_the_same_meaning(self):
        if not shutil.which("node"):
            self.skipTest("there is no node")
        for text, _ in SCRIPTS:
            if "const t" in text:
                text = text.replace("const f", "var f").replace("const t", "var f = x => x.b; const t")
            names = [name for name in "abmnstijrq" if any(word + name + " =" in text for word in ("const ", "let ", ", "))]
            values = []
            for script in (text, self.minified(AWKS[0], "js", text)):
                done = subprocess.run(["node", "-e", script + "\n;console.log([%s].map(String))" % ",".join(names)],
                                      capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                values.append(done.stdout)
            self.assertEqual(*values)

    def test_the_page(self):
        for name, most in (("page.js", 0.9), ("page.css", 0.95)):
            with open(os.path.join(ROOM, "web", name), encoding="utf-8") as stream:
                text = stream.read()
            made = {self.minified(awk, name[5:], text) for awk in AWKS}
            self.assertEqual(len(made), 1, AWKS)
            self.assertLess(len(made.pop()), most * len(text))

    def test_no_end(self):
        for text in ("const a = 'b\n';", "const a = `b", "const a = /b\n"):
            self.assertIn("no end of", self.minified(AWKS[0], "js", text, rc=1))


if __name__ == "__main__":
    unittest.main()
