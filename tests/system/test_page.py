#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""
The page of opreport --html in a real browser: one of a real session, one of hostile names, one that
compares two sessions, and one of 10^5 stacks. Nothing comes on the console, nothing is requested,
totals are those of opreport --format=json; zoom, search, callers and callees, keys, both themes and
the state in the hash work. --shots=DIR keeps pictures.
"""
import json
import os
import re
import subprocess
import sys

import browser
import opdtest
from hot import compile_to
from opdtest import Skip, require
from page_checks import (box_of, check_ancestors, check_colours, check_fold, check_height, check_names, check_table,
                         check_verdict, check_waits, check_waits_change, COLUMNS, check_map)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit"))
SHOTS = next((word[8:] for word in sys.argv if word.startswith("--shots=")), None)
LOOKS = [(theme, width, height) for theme in ("light", "dark") for width, height in ((1280, 900), (390, 844))]


def needs_browser():
    if not browser.program():
        raise Skip("there is no Chromium")
    opdtest.needs_perf()


class Look:
    """A page in the browser."""

    def __init__(self, tab, path):
        self.tab, self.path, self.name = tab, path, os.path.splitext(os.path.basename(path))[0]

    def open(self, fragment=""):
        self.tab.open(self.path, fragment)

    def run(self, script):
        return self.tab.run(script)

    def unfold(self):
        """Opens the common beginning of each program."""
        self.run("boxes.forEach(box => { box.node.open = true; }); draw()")

    def labels(self):
        """What is written in the boxes."""
        return self.run("(() => { const pen = CanvasRenderingContext2D.prototype, write = pen.fillText, all = [];"
                        " pen.fillText = (...words) => all.push(words[0]); draw(); pen.fillText = write; draw(); return all; })()")

    def is_true(self, script, text):
        require(self.run(script), "%s: %s (%s)" % (self.name, text, script))

    def all_looks(self, fragment="", name=""):
        """In both themes, wide and narrow: nothing is wider than the window."""
        for theme, width, height in LOOKS:
            self.tab.theme(theme)
            self.tab.size(width, height)
            self.open(fragment)
            self.is_true("document.documentElement.scrollWidth <= innerWidth", "fits %s, %d pixels" % (theme, width))
            self.is_true("matchMedia('(prefers-color-scheme: dark)').matches === %s" % json.dumps(theme == "dark"), theme)
            if SHOTS:
                self.tab.shot(os.path.join(SHOTS, "%s%s-%s-%d.png" % (self.name, name, theme, width)))
        self.tab.theme("light")
        self.tab.size(1280, 900)
        self.open(fragment)

    def click_box(self, script):
        """Clicks the middle of a box of the graph."""
        x, y = self.run("(() => { const box = %s, at = $('graph').getBoundingClientRect();"
                        " return [at.left + box.x + box.w / 2, at.top + box.y + 9]; })()" % script)
        self.tab.click(x, y)

    def quiet(self):
        require(not self.tab.complaints, "%s: %s" % (self.name, self.tab.complaints))


def check_heading(look, samples):
    """What used the machine, in words: CPU seconds, time, programs, whole stacks and losses."""
    look.open()
    period = int(re.match(r"STACKS:(\d+)", look.run("shownEvent()")).group(1))
    whole, lost = look.run("(() => { const [{ ends, lost }] = D.sides[0].sessions[0].events.filter(e => e.event === 'STACKS');"
                           " return [counts.reduce((n, x, i) => n + (accepted[countOf[i]] && !context(countOf[i], 2) ? x : 0), 0),"
                           " Object.values(lost).reduce((x, y) => x + y, 0)]; })()")
    title, seconds = look.run("$('title').textContent"), samples * period / 1e9
    wanted = r"%s: %s CPU seconds in \d+ seconds? · (.*) · %.0f %% of stacks whole, %s lost$" % (
        re.escape(os.uname().nodename), "%.1f" % seconds if seconds < 10 else "%.0f" % seconds, 100 * whole / samples,
        "{:,}".format(lost))
    found = re.match(wanted, title)
    require(found, "the heading is %r, not %s" % (title, wanted))
    first = look.run("[...names.keys()].filter(isFunction).sort((x, y) => table.s0[y] - table.s0[x]).slice(0, 3)"
                     ".map(f => [names[f], Math.round(100 * table.s0[f] / all.a)])")
    require(found.group(1).startswith(", ".join("%s %d %%" % tuple(x) for x in first)), "%r does not have %s" % (title, first))
    words = look.run("document.querySelector('header').innerText")
    require("STACKS" not in words and "samples of CPU time, one each 2.00 ms" in words, "no jargon in the heading: %s" % words)


def check_tools(look):
    """One row of tools, and the others behind a button; on a phone the graph begins in the upper third."""
    seen = "[...$('bar').querySelectorAll('select, input, button')].filter(x => x.getClientRects().length)"
    row = "(tops => Math.max(...tops) - Math.min(...tops))(%s.map(x => x.getBoundingClientRect().top))" % seen
    look.open()
    look.is_true("%s.length >= 6 && %s < 12" % (seen, row), "one row: %s" % look.run(row))
    nr = look.run(seen + ".length")
    look.run("$('others').focus()")
    look.tab.key("Enter", "\r")
    look.is_true("%s.length > %d && $('others').getAttribute('aria-expanded') === 'true'" % (seen, nr), "a button shows the others")
    look.tab.key("Enter", "\r")
    look.is_true("%s.length === %d && $('others').getAttribute('aria-expanded') === 'false'" % (seen, nr), "and hides them")
    look.open("#rec=all")
    look.is_true("$('others').textContent === 'More (1)'", "the button says that a hidden choice is made")
    look.tab.size(390, 844)
    for fragment in ("", "#view=flame", "#zoom=" + look.run("String(kidsOf(root)[0].f)")):
        look.open(fragment)
        look.is_true("$('frame').getBoundingClientRect().top <= innerHeight / 3", "a phone shows the graph at %s" %
                     look.run("$('frame').getBoundingClientRect().top"))
    look.run("$('others').click()")
    look.is_true("$('q').getClientRects().length && document.documentElement.scrollWidth <= innerWidth", "the search is there")
    look.tab.size(1280, 900)


def check_real(look, totals, listed):
    look.all_looks()
    check_heading(look, totals["samples"])
    check_tools(look)
    samples = totals["samples"]
    require(look.run("all.a") == samples, "all: %s, opreport has %d" % (look.run("all.a"), samples))
    require(look.run("table.s0.reduce((x, y) => x + y, 0)") == samples, "the functions do not add up")
    selfs = {}
    for node in totals["nodes"]:
        if node["kind"] not in ("group", "end"):
            selfs[node["name"], node["image"]] = selfs.get((node["name"], node["image"]), 0) + node["self"]
    for (name, image), count in sorted(selfs.items(), key=lambda item: -item[1])[:20]:
        shown = look.run("names.map((n, f) => n === %s && images[f] === %s ? table.s0[f] : 0).reduce((x, y) => x + y, 0)" % (
            json.dumps(name), json.dumps(image)))
        require(shown == count, "%s: %s, opreport has %d" % (name, shown, count))
    look.is_true("rows[0][0].w === wide && height > 3 * ROW", "the graph has rows")
    look.is_true("$('ledger').textContent.includes('all that were selected')", "the ledger says that all are there")
    look.is_true("$('ledger').textContent.includes('Kernel%s')" % os.uname().release, "the ledger names the kernel")
    check_fold(look)
    check_zoom(look)
    check_touch(look)
    check_search(look)
    check_ancestors(look)
    check_table(look)
    check_sandwich(look)
    check_code(look, listed)
    check_keys(look)
    check_copy(look)
    check_print(look)
    check_contrast(look, ["", "#q=leaf", "#zoom=" + look.run("(kidsOf(root)[0].f)+'.'+kidsOf(kidsOf(root)[0])[0].f"),
                          "#fn=%d" % look.run("names.indexOf('leaf')")])
    look.all_looks("#fn=" + str(look.run("names.indexOf('leaf')")), "-sandwich")
    look.all_looks("#view=flame&q=deep", "-search")
    look.all_looks("#view=inverted", "-inverted")
    look.is_true("Math.abs(kidsOf(root).reduce((x, y) => x + y.a, root.sa) - all.a) < 1e-6", "inverted adds up")


def check_zoom(look):
    look.open()
    look.unfold()
    look.click_box(box_of("main"))
    look.is_true("nameOf(zoomed.f) === 'main' && location.hash.includes('zoom=')", "a click zooms")
    look.is_true("%s.w === wide" % box_of("main"), "what is zoomed has the whole width")
    look.is_true("$('crumbs').textContent.includes('_start')", "breadcrumb")
    fragment = look.run("location.hash")
    look.open(fragment)
    look.is_true("nameOf(zoomed.f) === 'main'", "the hash keeps the zoom")
    look.run("[...$('crumbs').querySelectorAll('button')].find(b => b.textContent === 'Reset').click()")
    look.is_true("zoomed === root && !location.hash.includes('zoom')", "reset")
    look.run("history.back()")
    look.run("new Promise(done => setTimeout(done, 100))")
    look.is_true("nameOf(zoomed.f) === 'main'", "the browser goes back")


def check_touch(look):
    """A finger tells what a box is before it zooms."""
    look.open()
    look.unfold()
    tap = "$('graph').dispatchEvent(new PointerEvent('click', { pointerType: 'touch', clientX: x, clientY: y }))"
    script = ("(() => { const box = %s, at = $('graph').getBoundingClientRect(), x = at.left + box.x + box.w / 2,"
              " y = at.top + box.y + 9; %s; })()" % (box_of("main"), tap))
    look.run(script)
    look.is_true("zoomed === root && !$('tip').hidden && $('tip').textContent.startsWith('main')", "a tap tells")
    look.run(script)
    look.is_true("nameOf(zoomed.f) === 'main' && $('tip').hidden", "a second tap zooms")


def check_search(look):
    look.open()
    look.run("$('q').focus()")
    for c in "^deep$":
        look.tab.key(c)
    look.is_true("matched.a === table.t0[names.indexOf('deep')] && matched.a > 0", "the total of what matches")
    look.is_true("$('matched').textContent.startsWith('1 function, ')", "is shown")
    look.is_true("$('table').tBodies[0].rows.length === 1", "the table has what matches")
    look.is_true("location.hash.includes('q=%5Edeep%24')", "the hash keeps the search")
    look.run("S.q = images[names.indexOf('deep')].replace(/.*[/]/, ''); changed()")
    look.is_true("matched.is[names.indexOf('deep')] && matched.a >= table.t0[names.indexOf('deep')]", "images are searched")
    look.run("S.q = $('q').value; changed()")
    look.tab.key("(")
    look.is_true("$('q').getAttribute('aria-invalid') === 'true'", "a wrong expression is marked")
    look.tab.key("Escape")
    look.is_true("S.q === '' && !regex", "Escape ends the search")


def check_sandwich(look):
    look.open()
    look.run("[...$('table').querySelectorAll('button')].find(b => b.textContent === 'leaf').click()")
    look.is_true("S.fn !== '' && nameOf(root.f) === 'leaf'", "a click in the table shows callers and callees")
    callers = look.run("kidsOf(root.twin).map(kid => nameOf(kid.f)).sort()")
    require({"direct", "compare", "deep"} <= set(callers), "callers of leaf: %s" % callers)
    look.is_true("root.a === table.t0[root.f]", "the total of the function")
    look.is_true("$('where').rows[0].textContent.includes(number(root.a) + ' samples')", "and it is shown")
    look.is_true("kidsOf(root.twin).reduce((x, kid) => x + kid.a, root.twin.sa) === root.a", "callers add up")
    look.is_true("kidsOf(root).reduce((x, kid) => x + kid.a, root.sa) === root.a", "callees add up")


def check_code(look, listed):
    """Of leaf there is its source, with the samples of opannotate"""
    look.open("#fn=%d" % look.run("names.indexOf('leaf')"))
    look.is_true("!$('code').hidden && $('h-code').textContent === 'Source of leaf'", "the source of leaf")
    shown = look.run("Object.fromEntries([...$('lines').rows].filter(row => row.cells[0].textContent)"
                     ".map(row => [row.cells[2].textContent.trim(), +row.cells[0].title.replace(/\\D/g, '')]))")
    require(listed and shown == listed, "samples by line: %s, opannotate has %s" % (shown, listed))
    look.is_true("[...$('lines').rows].some(row => row.textContent.includes('leaf(void)'))", "the text of the source")
    look.all_looks(look.run("location.hash"), "-source")
    look.open("#fn=%d" % look.run("names.indexOf('_start')"))
    look.is_true("$('about-code').textContent.startsWith('Not on this page') && !$('lines').rows.length", "_start has no source")
    look.run("reset()")
    look.is_true("$('code').hidden", "no function, no source")


def check_keys(look):
    look.open()
    look.unfold()
    look.tab.key("/", "/")
    look.is_true("document.activeElement === $('q')", "/ searches")
    look.run("$('graph').focus()")
    look.tab.key("ArrowDown")
    look.tab.key("ArrowDown")
    look.is_true("focus && focus.d > 0 && !$('tip').hidden && $('live').textContent.includes('samples')", "arrows move and tell")
    look.tab.key("Enter")
    look.is_true("zoomed.d > 0 && zoomed === focus", "Enter zooms")
    look.run("reset()")
    look.unfold()
    look.run("zoomTo(%s.node)" % box_of("main"))
    look.tab.key("s")
    look.is_true("S.fn !== '' && nameOf(root.f) === 'main'", "S shows callers and callees")
    look.tab.key("Escape")
    look.is_true("S.fn === '' && nameOf(zoomed.f) === 'main'", "Escape goes back to what was zoomed")
    look.tab.key("Home")
    look.is_true("zoomed === root && S.fn === ''", "Escape and Home go back")
    look.run("[...$('table').querySelectorAll('button')].find(b => b.textContent === 'Total').focus()")
    look.tab.key("Enter", "\r")
    look.is_true("S.sort === 'total' && document.activeElement.textContent === 'Total ▾'", "what sorts keeps the focus")
    look.tab.key("Enter", "\r")
    look.is_true("S.sort === '-total' && document.activeElement.textContent === 'Total ▴'", "and sorts the other way")
    look.is_true("(b => table.t0[names.indexOf(b[0].textContent)] <= table.t0[names.indexOf(b[1].textContent)])"
                 "([...$('table').querySelectorAll('td button')])", "the least first")
    look.tab.key("Enter", "\r")
    look.run("[...$('table').querySelectorAll('button')].find(b => b.textContent === 'main').focus()")
    look.tab.key("Enter", "\r")
    look.is_true("nameOf(root.f) === 'main' && document.activeElement.textContent === 'main'", "what opens keeps the focus")
    look.run("$('crumbs').querySelector('button').focus()")
    look.tab.key("Enter", "\r")
    look.is_true("S.fn === '' && document.activeElement === $('graph')", "what is gone gives it to the graph")
    nr = look.run("document.querySelectorAll('button, select, input, canvas[tabindex]').length")
    require(nr > 8, "only %d things take the focus" % nr)
    look.is_true("[...document.querySelectorAll('button')].every(b => b.textContent.trim()) &&"
                 " [...document.querySelectorAll('select, input')].every(x => x.labels.length)", "all have names")


# Every text in the document and in the boxes whose contrast, as WCAG defines it, is below 4.5.
CONTRAST = """(() => {
  const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgb = colour => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
    return pen.getImageData(0, 0, 1, 1).data; };
  const light = c => [0.2126, 0.7152, 0.0722].reduce((sum, part, i) => { const x = c[i] / 255;
    return sum + part * (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4); }, 0);
  const contrast = (a, b) => { const [x, y] = [light(rgb(a)), light(rgb(b))].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05); };
  const ground = node => { for (; node; node = node.parentElement) { const c = getComputedStyle(node).backgroundColor;
    if (rgb(c)[3] === 255) return c; } return getComputedStyle(document.documentElement).colorScheme && 'Canvas'; };
  const low = [];
  for (const node of document.body.querySelectorAll('*')) {
    if (!node.getClientRects().length || ![...node.childNodes].some(c => c.nodeType === 3 && c.data.trim())) continue;
    const is = contrast(getComputedStyle(node).color, ground(node));
    if (is < 4.5) low.push([node.outerHTML.slice(0, 90), is]);
  }
  for (const box of Object.values(rows).flat()) {
    const is = contrast(inkOf(colourOf(box.node)), colourOf(box.node));
    if (is < 4.5) low.push([nameOf(box.node.f), colourOf(box.node), is]);
  }
  const before = [kinds[1], rankOf.get(images[1])];
  for (let kind = 2; kind < 8; kind++)
    for (let rank = 0; rank < 40; rank++) {
      kinds[1] = kind; rankOf.set(images[1], rank);
      const colour = imageColour(1), is = contrast(inkOf(colour), colour);
      if (is < 4.5) low.push(['image ' + rank + ' of kind ' + kind, colour, is]);
    }
  kinds[1] = before[0]; rankOf.set(images[1], before[1]);
  for (const row of $('lines').rows) {
    const is = contrast(getComputedStyle(row.cells[2]).color, getComputedStyle(document.documentElement).getPropertyValue('--bar'));
    if (is < 4.5) low.push([row.textContent, is]);
  }
  return low;
})()"""


def check_contrast(look, fragments):
    for theme in ("light", "dark"):
        look.tab.theme(theme)
        for fragment in fragments:
            look.open(fragment)
            low = look.run(CONTRAST)
            require(not low, "%s, %s: too little contrast: %s" % (theme, fragment, low[:9]))
    look.tab.theme("light")


def check_copy(look):
    """C copies the name of the box with the focus."""
    look.tab.grant("clipboardReadWrite", "clipboardSanitizedWrite")
    look.open()
    look.unfold()
    look.run("$('graph').focus()")
    look.run("setFocus(%s.node)" % box_of("main"))
    look.tab.key("c")
    copied = look.run("navigator.clipboard.readText()")
    require(copied == "main", "the clipboard has %r" % copied)
    look.is_true("$('live').textContent === 'copied main' && $('said').textContent === 'copied'", "it is told")


def check_print(look):
    """On paper are the graph, the table and the ledger, in dark letters, and nothing to click."""
    look.tab.theme("dark")
    look.open()
    pdf = look.tab.pdf()
    require(pdf.startswith(b"%PDF") and len(pdf) > 20000, "a PDF of %d bytes" % len(pdf))
    look.tab.call("Emulation.setEmulatedMedia", media="print")
    look.run("dispatchEvent(new Event('beforeprint'))")
    look.is_true("['bar', 'keys', 'more'].every(id => !$(id).getClientRects().length)", "nothing to click")
    look.is_true("['graph', 'table', 'ledger'].every(id => $(id).getClientRects().length)", "graph, table, ledger")
    look.is_true("$('frame').scrollHeight <= $('frame').clientHeight + 2", "the whole graph")
    look.is_true("$('frame').offsetHeight <= innerHeight", "on one page")
    require(not look.run(CONTRAST), "paper: %s" % look.run(CONTRAST))
    if SHOTS:
        look.tab.shot(os.path.join(SHOTS, "paper.png"))
    look.run("dispatchEvent(new Event('afterprint'))")
    look.tab.call("Emulation.setEmulatedMedia", media="")
    look.tab.theme("light")


def check_hostile(look, page_data):
    look.all_looks()
    look.is_true("document.scripts.length === 2 && document.images.length === 0 && !document.querySelector('a, iframe, object')",
                 "names made no elements")
    require(look.run("all.a") == len(page_data.HOSTILE), "all: %s" % look.run("all.a"))
    for name in ("<img src=x", "</script><script>", "<!--", "aaaa"):
        look.run("S.by = 'cgroup'; changed()")
        box = "Object.values(rows).flat().find(box => nameOf(box.node.f).includes(%s))" % json.dumps(name)
        look.is_true("!!" + box, name + " is text")
        look.run("setFocus(%s.node)" % box)
        look.is_true("$('tip').getBoundingClientRect().right <= innerWidth + 1 && $('tip').children.length > 1", "the tip fits")
    for width in (390, 1280):
        look.tab.size(width, 900)
        look.open()
        look.run("(() => { const f = names.indexOf('hot'), long = '<img src=x onerror=alert(1)>' + 'A'.repeat(970);"
                 " names[f] = D.sides[0].code[0].name = long; openFunction(f); })()")
        look.is_true("!$('code').hidden && $('h-code').textContent.includes('<img') && !document.images.length", "source of a name")
        look.is_true("document.documentElement.scrollWidth <= innerWidth && $('h-code').clientHeight < 300", "its heading fits")
    for fragment in ("#q=%22%3Cscript%3E", "#fn=99999&zoom=1.2.x", "#view=<b>&by=__proto__&sort=constructor", "#%", "#q=%E0%A4%A"):
        look.open(fragment)
        look.is_true("rows[0][0].w === wide", "opens with " + fragment)


def check_difference(look):
    look.all_looks()
    look.is_true("two && all.a === 100 && all.b === 500", "both sides")
    heads = look.run("[...$('about').rows].map(r => r.textContent)")
    for head, words, count in zip(heads, ("Beforesession:before · 2026-11-", "Aftersession:after · 2026-11-"), (100, 500)):
        require(head.startswith(words) and head.endswith(" UTC · %d samples of STACKS:99" % count), "the heading: %s" % heads)
    check_tools(look)
    look.open()
    title = look.run("$('title').textContent")
    require(re.fullmatch(r"\w+: 100 → 500 samples of STACKS:99 in 30 minutes → 30 minutes · "
                         r"hot −70.0, cold \+61.0, f0 \+4.00 points · "
                         "94 % → 100 % of stacks whole, 0 → 0 lost", title), "the heading: " + title)
    look.open()
    look.run("$('more').click()")
    texts = look.run("[...$('table').tBodies[0].rows].map(r => r.textContent)")
    changes = [("hot", "gone"), ("cold", "+61.0"), ("f0", "new"), ("warm", "total −65.0 ± "), ("_start", "(noise)")]
    require(len(texts) == 5 and all(name in text and how in text for (name, how), text in zip(changes, texts)),
            "sorted by change, noise last: %s" % texts)
    require("4.00 % → 65.0 %" in texts[1], "cold: %s" % texts[1])
    for order, name in (("growth", "cold"), ("loss", "hot")):
        look.run("[...$('table').querySelectorAll('th button')].find(b => b.textContent.startsWith('Change')).click()")
        look.is_true("S.sort === '%s' && $('table').querySelector('td button').textContent === '%s'" % (order, name), order)
    look.run("S.sort = 'change'; changed()")
    for mode in ("abs", "rel", "new"):
        look.run("S.diff = '%s'; changed()" % mode)
        look.is_true("rows[0][0].w === wide", mode)
        listed = look.run("[...$('table').querySelectorAll('td button')].map(b => b.textContent)")
        first = {"abs": "hot", "rel": "hot", "new": "f0"}[mode]
        require(listed[0] == first and (listed == ["f0"]) == (mode == "new"), "%s: the table has %s" % (mode, listed))
    look.is_true("describe(kidsOf(kidsOf(root)[0])[0])[1].join().includes('of parent ')", "the share of the parent")
    look.open("#fn=%d" % look.run("names.indexOf('hot')"))
    look.is_true("!$('code').hidden && $('lines').rows[0].textContent === 'BeforeAfter'", "code of both sides")
    look.is_true("$('about-code').textContent.startsWith('before: 1 flat sample of TIMER; after: 3 flat samples of TIMER.')",
                 "how many they are")
    look.is_true("[...$('lines').rows].some(r => r.textContent.startsWith('100.0 %100.0 %1void hot'))",
                 "a line has the samples of both")
    look.all_looks(look.run("location.hash"), "-source")
    look.is_true("changeText(10, 51).includes('(noise)') && !changeText(0, 400).includes('(noise)')", "noise is told")


def check_flat(look):
    """The change of a function is that of flat samples where they say more, but not of a part of the
    profiles.
    """
    look.open("")
    cells = "[...$('table').tBodies[0].rows].map(r => [r.cells[3].textContent, r.cells[2].textContent, r.cells[2].title])"
    rows = {name: (text, title) for name, text, title in look.run(cells)}
    require(rows["hot"] == ("+10.0 ± 0.77, ×1.14", "70,000 → 80,000 flat samples of TIMER"), "hot: %s" % (rows,))
    require(rows["cold"][1] == "0 → 20,000 flat samples of TIMER" and ", new" in rows["cold"][0], "cold: %s" % (rows,))
    look.run("S.comm = 'prog'; changed(); $('more').click()")
    rows = {name: (text, title) for name, text, title in look.run(cells)}
    require(rows["hot"][1].endswith(" stack samples"), "a part: %s" % (rows,))


def check_where(look, before):
    """Callers and callees tell in which cgroup and process a function ran; a click there selects."""
    before.open()
    cold = "#fn=%d" % before.run("names.indexOf('cold')")
    before.open(cold)
    rows = before.run("Object.fromEntries([...$('where').rows].map(row => [row.cells[0].textContent,"
                      " [...row.cells[1].children].map(x => x.textContent)]))")
    require(rows["Cgroup"] == ["(no cgroup) 96.0 %", "/a.slice/b 4.00 %"] and rows["Application"] == ["prog 100.0 %"] and
            "other 4.00 %" in rows["Process"], "where it ran: %s" % rows)
    before.all_looks(cold, "-where")
    before.run("[...$('where').querySelectorAll('button')].find(b => b.textContent === '/a.slice/b').click()")
    before.is_true("all.a === 4 && nameOf(root.f) === 'cold' && location.hash.includes('cgroup=')", "a click selects a cgroup")
    before.run("reset()")
    before.is_true("!$('where').rows.length", "no function, no place")
    before.open()  # groups have the same numbers in whatever order they are seen first
    before.run("S.by = 'comm'; changed(true)")
    group = before.run("(() => { zoomTo(kidsOf(root)[1]); return nameOf(zoomed.f); })()")
    before.open(before.run("location.hash"))
    before.is_true("nameOf(zoomed.f) === %s" % json.dumps(group), "the hash keeps the group %s" % group)
    look.open()
    look.open("#fn=%d" % look.run("names.indexOf('cold')"))
    look.is_true("$('where').textContent.includes('/a.slice/b 4.00 % → 0.00 %')", "of both sides")


def check_states(look):
    """What an address asks for and what is not there: the page says so, and goes on."""
    look.open("#by=comm&q=^other$")
    look.is_true("$('matched').textContent.startsWith('0 functions, 0 samples')", "groups are no functions: " +
                 look.run("$('matched').textContent"))
    look.open("#q=(")
    look.is_true("$('matched').textContent.includes('not a valid expression')", "a bad expression is told")
    look.open("#view=nosuch&by=nosuch&rec=nosuch")
    look.is_true("S.view === 'icicle' && S.by === 'app' && all.a === 100 && rows[1][0].node.f > 0", "unknown words are left out")
    look.open("#comm=nosuch")
    look.is_true("$('crumbs').textContent.includes('No samples are selected.') && $('choices').textContent.includes('nosuch')",
                 "a process that is not there")
    look.open("#cgroup=/a.slice/b&fn=%d" % look.run("names.indexOf('hot')"))
    look.is_true("$('crumbs').textContent.includes('hot has no samples here.') && !location.hash.includes('fn=') && all.a === 4",
                 "a function that is not in the cgroup: " + look.run("location.hash + $('crumbs').textContent"))


def check_large(look):
    """What is too narrow to draw is a box, too, so that each row has all its samples."""
    look.open("#view=inverted")
    look.is_true("boxes.some(b => b.node.f === NARROW && describe(b.node)[0].endsWith(' functions'))", "a box of narrow ones")
    share = look.run("rows[1].reduce((n, b) => n + b.w, 0) / wide")
    require(0.998 < share < 1.002, "a row has %.4f of the samples" % share)
    look.tab.size(1280, 500)
    look.run("openFunction(rows[1][0].node.f)")
    look.is_true("$('frame').scrollTop > 0 && boxOf(root).y >= $('frame').scrollTop &&"
                 " boxOf(root).y + ROW <= $('frame').scrollTop + $('frame').clientHeight", "the function itself is in sight")
    look.tab.size(1280, 900)
    for rec in ("", "all"):
        look.run("S.rec = '%s'; changed()" % rec)
        look.is_true("describe(root)[1].join().includes('self ' + number(table.s0[root.f]))", "its own samples: " +
                     look.run("describe(root)[1].join() + table.s0[root.f]"))


def check_cgroups(look):
    """A cgroup can be chosen with those below it, and without."""
    look.open()
    look.is_true("[...$('choices').querySelector('[name=cgroup]').options].map(o => o.text).join() === 'all,/m and below,"
                 "/m/app and below,/n,/m/app/a,/m/app,/m/app/b,/m/apple'", "the choices: " +
                 look.run("[...$('choices').querySelector('[name=cgroup]').options].map(o => o.text).join()"))
    for value, samples in (("/m/app", 10), ("/m/app/", 31), ("/m/", 39), ("", 55)):
        look.run("(() => { const s = $('choices').querySelector('[name=cgroup]'); s.value = '%s'; s.onchange(); })()" % value)
        look.is_true("all.a === %d" % samples, "%s has %d samples: %s" % (value, samples, look.run("all.a")))
        look.open(look.run("location.hash"))
        look.is_true("all.a === %d" % samples, "%s from the hash" % value)


def check_time(look):
    """Six sessions, of which one is chosen, then some, with the mouse and with keys."""
    look.all_looks()
    sums = [100, 70, 0, 500, 30, 200]
    look.is_true("!$('time').hidden && slots === sessions && slots.length === 6", "a column for each session")
    require(look.run("sessions.map(x => x.sum)") == sums, "sessions: %s" % look.run("sessions.map(x => x.sum)"))
    look.is_true("all.a === 900 && $('span').textContent.includes('all 6 sessions, 900 samples')", "all of them")
    places = look.run(COLUMNS)
    look.tab.drag(places[3], places[1])
    look.is_true("location.hash.includes('from=1') && location.hash.includes('to=3')", "the hash keeps what is brushed")
    look.is_true("all.a === 570 && root.a === 570 && table.s0.reduce((x, y) => x + y, 0) === 570", "the brush filters")
    look.is_true("$('span').textContent.includes('3 of 6 sessions, 570 samples, 0.317 per second')", "a label tells the span")
    look.is_true("$('ledger').textContent.includes('Stacks on this page570 of 900')", "the ledger follows: " +
                 look.run("$('ledger').textContent"))
    look.is_true("$('ledger').textContent.includes('Recorded1,800 s')", "its time is that of the span")
    look.is_true("!$('ledger').textContent.includes('Still open')", "all sessions have ended")
    look.run("D.sides[0].sessions[3].open = true; drawLedger()")
    look.is_true("$('ledger').textContent.includes('Still open')", "the ledger of an open session is older than its stacks")
    for counted, said in ((2, True), (8, False)):
        look.run("Object.assign(D.sides[0].sessions[3].events[0], { enabled: 8, counted: %d }); drawLedger()" % counted)
        look.is_true("$('ledger').textContent.includes('counted25.0 %% of the time') === %s" % str(said).lower(),
                     "the ledger tells how long an event was counted: " + look.run("$('ledger').textContent"))
    look.all_looks(look.run("location.hash"), "-brushed")
    look.is_true("all.a === 570 && slots.length === 6", "the hash brings it back")
    look.run("$('to').focus()")
    look.tab.key("ArrowLeft")
    look.is_true("all.a === 70 && S.to === '2'", "keys move the end")
    look.run("$('from').focus()")
    look.tab.key("ArrowRight")
    look.is_true("all.a === 0 && S.from === '2' && rows[0][0].w === wide", "a session without samples is shown as such")
    look.is_true("$('from').getAttribute('aria-valuetext').includes('UTC')", "the ends have names")
    look.run("$('whole').click()")
    look.is_true("all.a === 900 && !location.hash.includes('from') && $('whole').hidden", "all times")
    look.tab.click(*places[0])
    look.is_true("all.a === 100", "a click chooses one session")


def measure(look, limit_ms):
    """First paint, and how long a zoom takes until the next frame is drawn."""
    look.open()
    paint = look.run("new Promise(done => new PerformanceObserver(list => list.getEntriesByName('first-contentful-paint')"
                     ".forEach(entry => done(entry.startTime))).observe({type: 'paint', buffered: true}))")
    zoom = look.run("(async () => { const took = []; for (let i = 0; i < 12; i++) {"
                    " const kid = kidsOf(zoomed)[0], start = performance.now(); zoomTo(kid && i % 6 !== 5 ? kid : root);"
                    " await new Promise(done => requestAnimationFrame(done)); took.push(performance.now() - start); }"
                    " return took.sort((x, y) => x - y); })()")
    print("%s: %d bytes, first paint %.0f ms, zoom %.1f ms (median), %.1f ms (longest)" % (
        look.name, os.path.getsize(look.path), paint, zoom[len(zoom) // 2], zoom[-1]))
    require(limit_ms is None or paint < limit_ms, "first paint takes %.0f ms" % paint)


def real_page(box):
    path = os.path.join(box.dir, "stacks")
    compile_to(box, path, "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", file="stacks.c")
    box.start_daemon("--event=default", "--stacks=499")
    # Stacks are whole when the tables of its images are made, which a busy machine delays.
    box.good(path, 300)
    opdtest.wait_until(lambda: not any(box.status()[key] for key in ("tables_waiting", "stacks_waiting")),
                       opdtest.HANG_SECONDS, "tables are not made")
    box.opcontrol("--reset")
    box.good(path, 3000)
    box.opcontrol("--stop")
    page = os.path.join(box.dir, "real.html")
    # Alone: programs of others may be gone from the disk before the second report.
    box.opreport("--html=" + page, path)
    totals = json.loads(box.opreport("--stacks", "--format=json", path))["stacks"]
    listed = samples_of_lines(box, path)
    box.shutdown()
    return page, totals, listed


def samples_of_lines(box, path):
    """{text: samples} of the lines of leaf, from opannotate."""
    shown = box.good(os.path.join(box.bin, "opannotate"), "--source", "--session-dir=" + box.session, "-i", "leaf", path)
    return {text.strip(): int(count) for count, text in re.findall(r"^ *(\d+) +[\d.]+ :(.*?)(?: /\*.*\*/)?$", shown, re.M)}


def made_minutes(box, page_data, sessions):
    """The page of a session with a timeline of ten minutes: `burst` runs from minute 3 to minute 5."""
    store, page = page_data.Store(), os.path.join(box.dir, "minutes.html")
    where, lines, begin = page_data.positions, [], 1795230000
    for minute in range(10):
        lines.append("event STACKS:99:0")
        for comm, name, nr in (("steady", "hot", 40), ("burst", "warm", 160 if 3 <= minute < 5 else 0)):
            if nr:
                lines.append("add %d 2 0 0 3 0 1 4 =%s 0 9 %d 1 9 %d 1" % (nr, comm, where["_start"], where[name]))
                store.add(page_data.START("_start", name), nr, comm=comm)
        lines.append("block %d000000000 %d000000000" % (begin + 60 * minute, begin + 60 * minute + 60))
    sessions.write(store, "minutes", begin=begin)
    maker = os.path.join(os.environ.get("OPD_BUILD", ""), "tests", "unit", "make_timeline")
    place = os.path.join(sessions.dir, "samples")
    if not os.access(maker, os.X_OK):
        print("the map of time is not looked at: there is no " + maker)
        return None
    subprocess.run([maker, os.path.join(place, "minutes")], input="\n".join(lines) + "\n", text=True, check=True)
    done = sessions.opreport("--html=" + page, "session:minutes")
    require(not done.returncode, done.stderr)
    return page


def made_waits(box, page_data, sessions):
    """The page of a session with waits, and of another one that waits longer for its disk."""
    pages = [os.path.join(box.dir, name + ".html") for name in ("waits", "slower")]
    for name in ("waits", "slower"):
        store = page_data.Store()
        page_data.fill_waits(store)
        if name == "slower":
            store.add(page_data.START("_start", "hot"), 3000000, state=2, records=21, event="WAIT:1:0", comm="other")
        sessions.write(store, name, ledger=page_data.WAITS_LEDGER)
    for page, words in zip(pages, (["session:waits"], ["{", "session:waits", "}", "{", "session:slower", "}"])):
        done = sessions.opreport("--html=" + page, *words)
        require(not done.returncode, done.stderr)
    return pages


def made_pages(box):
    os.environ["OPD_BINDIR"] = box.bin
    import page_data  # pylint: disable=import-outside-toplevel
    sessions = page_data.Sessions(box.dir)
    hostile, before, after, large, cgroups, paths, images = (page_data.Store() for _ in range(7))
    for name in page_data.HOSTILE:
        hostile.add(page_data.START("_start", "hot"), 1, cgroup="/" + name, comm=name[:9].replace("\0", ""))
    page_data.fill(before)
    for name, count in (("cold", 325), ("warm", 155), ("f0", 20)):
        after.add(page_data.START("_start", name), count)
    page_data.fill_many(large, 100000)
    for name, count in (("/m/app", 10), ("/m/app/a", 12), ("/m/app/b", 9), ("/m/apple", 8), ("/n", 16)):
        cgroups.add(page_data.START("_start", "hot"), count, cgroup=name)
    paths.add(page_data.START("_start", "hot"), 12, cgroup="/system.slice/docker-6a7130f1d5c0/merged/usr/sbin/opd")
    paths.add(page_data.START("_start", "hot"), 11, cgroup="/system.slice/other")
    paths.add(page_data.START("_start", "hot"), 10, cgroup="/system.slice/third")
    os.makedirs(os.path.join(box.dir, "second"))
    images.add(page_data.START("_start", "hot"), 30)
    images.add(page_data.START("_start", "hot", image=page_data.USERS), 20, app=page_data.USERS)
    days = []
    for i, count in enumerate((100, 70, 0, 500, 30, 200)):
        days.append("day-%d" % i)
        store = page_data.Store()
        if count:
            store.add(page_data.START("_start", "cold", "warm"), count)
        sessions.write(store, days[-1], begin=1795230000 + 86400 * i)
    pages = {"days": os.path.join(box.dir, "days.html")}
    require(not sessions.opreport("--html=" + pages["days"], "session:" + ",".join(days)).returncode, "a page of six sessions")
    for name, store in (("hostile", hostile), ("before", before), ("after", after), ("large", large), ("cgroups", cgroups),
                        ("paths", paths), ("images", images)):
        other = page_data.Sessions(os.path.join(box.dir, "second")).program if name == "images" else None
        sessions.write(store, name, flat=3 if name == "after" else 1, other=other)
        words = ["{", "session:before", "}", "{", "session:after", "}"] if name == "after" else ["session:" + name]
        pages[name] = os.path.join(box.dir, name + ".html")
        done = sessions.opreport("--html=" + pages[name], *words)
        require(not done.returncode, done.stderr)
    pages["minutes"] = made_minutes(box, page_data, sessions)
    pages["waits"], pages["slower"] = made_waits(box, page_data, sessions)
    for name, cold, warm in (("moved-before", 500, 100), ("moved-after", 100, 500)):
        store = page_data.Store()
        store.add(page_data.START("_start", "cold", "hot"), cold)
        store.add(page_data.START("_start", "warm", "hot"), warm)
        sessions.write(store, name)
    pages["moved"] = os.path.join(box.dir, "moved.html")
    done = sessions.opreport("--html=" + pages["moved"], "{", "session:moved-before", "}", "{", "session:moved-after", "}")
    require(not done.returncode, done.stderr)
    clock = "TIMER.1000000.0.all.all.all"
    for name, counts in (("flat-before", {"hot": 70000, "warm": 30000}), ("flat-after", {"hot": 80000, "cold": 20000})):
        sessions.write(before, name, flat=counts, event=clock)
    pages["flat"] = os.path.join(box.dir, "flat.html")
    done = sessions.opreport("--html=" + pages["flat"], "{", "session:flat-before", "}", "{", "session:flat-after", "}")
    require(not done.returncode, done.stderr)
    return page_data, pages


def test(box):
    page, totals, listed = real_page(box)
    page_data, pages = made_pages(box)
    with browser.Browser() as tab:
        check_real(Look(tab, page), totals, listed)
        check_hostile(Look(tab, pages["hostile"]), page_data)
        check_difference(Look(tab, pages["after"]))
        check_verdict(Look(tab, pages["after"]), Look(tab, pages["moved"]))
        check_flat(Look(tab, pages["flat"]))
        check_contrast(Look(tab, pages["after"]), ["", "#diff=rel", "#diff=new"])
        check_where(Look(tab, pages["after"]), Look(tab, pages["before"]))
        check_states(Look(tab, pages["before"]))
        check_height(Look(tab, pages["before"]), Look(tab, pages["large"]))
        check_names(Look(tab, pages["paths"]))
        check_colours(Look(tab, pages["images"]), Look(tab, pages["before"]))
        check_large(Look(tab, pages["large"]))
        check_cgroups(Look(tab, pages["cgroups"]))
        check_time(Look(tab, pages["days"]))
        check_waits(Look(tab, pages["waits"]), Look(tab, pages["before"]))
        check_waits_change(Look(tab, pages["slower"]))
        check_contrast(Look(tab, pages["waits"]), ["#time=wait", "#time=wall&by=none"])
        if pages["minutes"]:
            check_map(Look(tab, pages["minutes"]), Look(tab, pages["before"]))
        measure(Look(tab, page), None)
        measure(Look(tab, pages["large"]), None)
        Look(tab, page).quiet()


if __name__ == "__main__":
    opdtest.run(test, needs=needs_browser)
