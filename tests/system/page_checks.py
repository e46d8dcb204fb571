# SPDX-License-Identifier: GPL-3.0-or-later
"""What test_page.py asks of the graph and of the table: folded rows, heights, names, colours, and the
verdict of a difference. `look` is a page in the browser.
"""
import json
import re

from opdtest import require


def box_of(name):
    """The widest box with that name."""
    return "Object.values(rows).flat().sort((x, y) => y.w - x.w).find(box => nameOf(box.node.f) === %s)" % json.dumps(name)


def check_fold(look):
    """The beginning that all calls have is one row, which a click or Enter opens."""
    # interrupts have a beginning of their own
    folded = "boxes.filter(box => !box.above && box.chain[1] && nameOf(box.chain[0].f) === '_start')" \
             ".sort((x, y) => y.w - x.w)[0]"
    for opens in (lambda: look.click_box(folded), lambda: look.tab.key("Enter", "\r")):
        look.open()
        names = look.run("%s.chain.map(node => nameOf(node.f))" % folded)
        require(names[0] == "_start" and names[-1] == "main", "folded: %s" % names)
        require("_start … main (%d calls)" % len(names) in look.labels(), "the row tells its calls: %s" % look.labels())
        look.is_true("describe(%s.node)[1][0] === '%d calls in one row, to main: a click opens them'" % (folded, len(names)),
                     "the tip tells")
        look.run("$('graph').focus()")
        look.run("setFocus(%s.node)" % folded)
        opens()
        look.is_true("!boxOf(focus).chain[1] && zoomed === root", "it opens")
        require(all(look.run("!!" + box_of(name)) for name in names), "all calls are there")
        look.is_true("nameOf(focus.f) === '_start'", "and keeps the focus")
    look.open("#q=^main$")
    look.is_true("!!%s" % box_of("main"), "a match is in no fold")
    look.open()
    look.is_true("(root.kids[0].a - rows[3].reduce((n, box) => n + box.node.a, 0)) / root.kids[0].a < 0.02", "little is hidden")


def check_height(look, large):
    """A small graph has the height that it needs; where a large one is cut, a button says so and shows all."""
    look.open()
    look.is_true("$('frame').clientHeight >= height && $('cut').hidden", "a small graph is whole")
    large.open()
    hidden = "Math.round((height - $('frame').clientHeight) / ROW)"
    large.is_true("%s > 3 && $('cut').textContent === %s + ' of ' + height / ROW + ' rows are out of sight: show all'" % (
        hidden, hidden), "the cut: " + large.run("$('cut').textContent"))
    large.is_true("rows[%s - 1] && $('frame').clientHeight <= 0.85 * innerHeight" % "Math.floor($('frame').clientHeight / ROW)",
                  "no more than the window")
    large.run("$('cut').click()")
    large.is_true("%s <= 0 && $('cut').hidden" % hidden, "the whole graph")
    path = large.run("(() => { const path = []; for (let n = root; path.length < 20; path.push(n.f)) n = kidsOf(n)[0];"
                     " return path.join('.'); })()")
    large.open("#zoom=" + path)
    large.is_true("zoomed.d === 20 && boxOf(zoomed).row < 8", "what is above takes few rows: %s" % large.run("boxOf(zoomed).row"))
    large.run("const enter = boxes.find(box => box.above && box.chain[1]).node; enter.open = true; draw()")
    large.is_true("boxOf(zoomed).row === 20", "and opens, too")


def check_names(look):
    """Paths lose their beginning, names of C++ first what is in their templates, then parameters."""
    look.tab.size(390, 844)
    look.open("#by=cgroup")
    labels = look.labels()
    require(any(re.fullmatch("…(.*)/sbin/opd", label) for label in labels) and not any("6a71" in label for label in labels),
            "a path: %s" % labels)
    look.tab.size(1280, 900)
    name = ("std::vector<std::pair<int, std::map<long, char> >, std::allocator<int> >::insert<int>"
            "(std::vector<int> const&, void (*)(int))")
    wanted = (name, "std::vector<…>::insert<…>(std::vector<…> const&, void (*)(int))", "std::vector<…>::insert<…>(…)",
              "std::vector::insert", "insert")
    forms = look.run("formsOf(%s)" % json.dumps(name))
    require(forms == list(wanted), "what it loses: %s" % forms)
    look.open("#by=none")
    look.run("names[names.indexOf('hot')] = %s" % json.dumps(name))
    for label in wanted[:3]:
        width = look.run("(() => { const pen = $('graph').getContext('2d'); pen.font = '12px system-ui, sans-serif';"
                         " return pen.measureText(%s).width; })()" % json.dumps(label))
        look.run("$('frame').style.width = '%dpx'" % (width + 16))
        require(label in look.labels(), "%d pixels: no %s in %s" % (width, label, look.labels()))
        look.is_true("describe(%s.node)[0] === %s" % (box_of(name), json.dumps(name)), "the tip has the whole name")
    for name, short in (("bool operator< <int>(A<int> const&, A<int> const&)", "bool operator< "), ("<", "<"), ("a<", "a<"),
                        ("A<int>::operator->() const", "operator->() const"), ("(anonymous namespace)::f(int)", "f"),
                        ("<alloc::vec::Vec<T> as Drop>::drop", "drop"), ("operator()", "operator()"), ("::", "::"),
                        ("f(int) [clone .cold]", "f"), ("x<a ... b>(c>)", "x")):
        forms = look.run("formsOf(%s)" % json.dumps(name))
        require(all(forms) and forms[-1] == short, "%s: %s" % (name, forms))
    look.tab.size(1280, 900)
    look.open()
    look.run("(f => { kinds[f] = 3; images[f] = 'kallsyms'; S.q = '^kernel$'; changed(); })(names.indexOf('hot'))")
    look.is_true("$('table').tBodies[0].rows.length === 1 && $('table').tBodies[0].rows[0].textContent.endsWith('hotkernel')",
                 "the kernel is called kernel: " + look.run("$('table').tBodies[0].textContent"))


def check_colours(look, before):
    """Images of a kind have colours of their own. Grey is what misses callers, and says why and what helps."""
    for theme in ("light", "dark"):
        look.tab.theme(theme)
        look.open()
        look.unfold()
        hot = look.run("boxes.filter(box => nameOf(box.node.f) === 'hot').map(box => [imageOf(box.node.f), colourOf(box.node)])")
        hues = [float(re.match(r"hsl\(([\d.]+)", colour).group(1)) for _, colour in hot]
        require(len(hot) == 2 and hot[0][0] != hot[1][0] and abs(hues[0] - hues[1]) > 5, "two images: %s" % hot)
        look.is_true("[...$('legend').children].filter(x => x.textContent.endsWith('/prog')).length === 2", "the legend has both")
        before.open()
        grey = before.run("boxes.filter(box => / 0%/.test(colourOf(box.node))).map(box => nameOf(box.node.f))")
        require(grey == ["[cut]"], "grey: %s" % grey)
        tip = before.run("describe(%s.node)[1].join()" % box_of("[cut]"))
        require("callers are missing: the copy of the stack was too short" in tip and
                "What helps: opcontrol --apply --stacks=99:16384" in tip, "the tip of a cut stack: " + tip)
    look.tab.theme("light")
    ends = before.run("D.ends.map(end => end[0]).filter(end => end !== 'complete')")
    for end in ends:
        before.run("names[%s.node.f] = '[%s]'" % (box_of("[%s]" % ("cut" if end == ends[0] else ends[ends.index(end) - 1])), end))
        before.is_true("describe(%s.node)[1].some(line => line.startsWith('What helps: '))" % box_of("[%s]" % end),
                       "%s: a remedy" % end)


def check_ancestors(look):
    """What calls a match is marked, and differs from the rest; a match keeps its colour."""
    look.open()
    look.unfold()
    colour = look.run("colourOf(%s.node)" % box_of("leaf"))
    look.open("#q=^leaf$")
    look.is_true("colourOf(%s.node) === %s" % (box_of("leaf"), json.dumps(colour)), "a match")
    above = look.run("[...new Set(boxes.filter(box => box.node.f > 0 && !matched.is[box.node.f] && kidsOf(box.node).some(kid =>"
                     " matched.is[kid.f])).map(box => colourOf(box.node)))]")
    rest = look.run("[...new Set(boxes.filter(box => box.node.f > 0 && !box.node.its.some(i => { for (; i; i = B.p[i])"
                    " if (matched.is[B.f[i]]) return true; return B.f.some((f, j) => matched.is[f] && (() => { for (let k = j; k;"
                    " k = B.p[k]) if (box.node.its.includes(k)) return true; })()); })).map(box => colourOf(box.node)))]")
    require(len(above) == 1 and above[0] != colour and above[0] not in rest and len(rest) <= 1,
            "ancestors %s, rest %s" % (above, rest))


def check_table(look):
    """Bars and colours of the graph; one line each on a phone; what is no more than noise comes with a click."""
    look.open()
    look.unfold()
    rows = look.run("[...$('table').tBodies[0].rows].map(row => [row.querySelector('button').title.split('\\n')[0],"
                    " row.style.getPropertyValue('--tint'), row.cells[0].style.getPropertyValue('--heat')])")
    require(rows[0][2] == "100%" and all(heat.endswith("%") for _, _, heat in rows), "bars: %s" % rows[:4])
    for name, tint, _ in rows:
        look.is_true("(box => !box || colourOf(box.node) === %s)(%s)" % (json.dumps(tint), box_of(name)), name + " has its colour")
    look.is_true("[...$('table').tBodies[0].rows].every(row => +row.cells[1].title.replace(/\\D/g, '') > 4)", "no noise")
    nr, few = look.run("[$('table').tBodies[0].rows.length, names.filter((name, f) => isFunction(f) && table.t0[f] > 0 &&"
                       " table.t0[f] < 5).length]")
    if few:
        look.is_true("$('more').textContent === 'Show %d function%s with less than 5 samples: noise'" % (few, "s" * (few > 1)),
                     "the others are told: " + look.run("$('more').textContent"))
        look.run("$('more').click()")
        look.is_true("$('table').tBodies[0].rows.length === %d" % (nr + few), "and a click shows them")
    look.tab.size(390, 844)
    look.open()
    check_lines(look)
    look.tab.size(1280, 900)


def check_lines(look):
    """Each function has one line."""
    look.is_true("[...$('table').tBodies[0].rows].every(row => row.offsetHeight < 40 && new Set([...row.cells]"
                 ".filter(cell => cell.offsetWidth).map(cell => cell.offsetTop)).size === 1)", "one line for each function")


def check_verdict(look, moved):
    """A difference has one verdict: what the table calls noise is grey in the graph, though calls moved from
    one caller to another one.
    """
    moved.open()
    moved.unfold()
    moved.is_true("isNoise(names.indexOf('hot')) && !isNoise(names.indexOf('cold'))", "calls of hot moved, and are as many")
    grey = "boxes.filter(box => nameOf(box.node.f) === '%s').map(box => colourOf(box.node) === '#d3d8de').join()"
    moved.is_true(grey % "hot" + " === 'true,true'", "hot is grey")
    moved.is_true(grey % "cold" + " === 'false'", "cold is not")
    moved.run("$('more').click()")
    texts = moved.run("[...$('table').tBodies[0].rows].map(row => row.textContent)")
    wanted = ("total −66.7 ± 8.16, ÷5.00coldprog", "total +66.7 ± 8.16, ×5.00warmprog", "(noise)", "(noise)")
    require(len(texts) == 4 and all(words in text for words, text in zip(wanted, texts)), "the table: %s" % texts)
    look.open()
    look.unfold()
    hidden = look.run("$('more').textContent")
    require(hidden == "Show 1 function that changed no more than the noise", "the noise is collapsed: %s" % hidden)
    look.run("$('more').click()")
    look.unfold()
    noise = look.run("[...$('table').tBodies[0].rows].filter(row => row.textContent.includes('(noise)'))"
                     ".map(row => row.querySelector('td button').textContent)")
    require(noise == ["_start"], "noise: %s" % noise)
    grey = look.run("[...new Set(boxes.filter(box => colourOf(box.node) === '#d3d8de').map(box => nameOf(box.node.f)))]")
    require(set(noise) <= set(grey), "grey: %s, noise: %s" % (grey, noise))
    look.is_true("boxes.every(box => !%s.includes(nameOf(box.node.f)) || colourOf(box.node) === '#d3d8de' &&"
                 " describe(box.node)[1].join().includes('(noise)'))" % json.dumps(noise), "all calls of these are grey")
    look.is_true("$('legend').textContent.includes('÷2: half')", "÷ is explained")
    look.tab.size(390, 844)
    look.open()
    check_lines(look)
    look.tab.size(1280, 900)


# The middle of each column of the map of time, in its upper row.
COLUMNS = ("(at => edges.slice(1).map((x, i) => [at.left + (edges[i] + x) / 2, at.top + 20]))"
           "($('bars').getBoundingClientRect())")


def check_map(look, without):
    """What burned when: a burst from minute 3 to minute 5 of ten. The brush filters graph, table and heading to the
    chosen minutes, with the mouse, with a finger and with keys. Without a timeline there is no map.
    """
    without.open()
    without.is_true("$('time').hidden", "no timeline, no map")
    for theme in ("light", "dark"):
        for width in (1280, 390):
            look.tab.theme(theme)
            look.tab.size(width, 844)
            look.open("#by=comm")
            look.is_true("!$('time').hidden && $('time').getClientRects().length && slots.length === 10", "the map")
            look.is_true("document.documentElement.scrollWidth <= innerWidth", "the map fits")
            rows = look.run("timeRows.map(row => [row.name, row.n])")
            burst = [160 if 3 <= i < 5 else 0 for i in range(10)]
            require(rows == [["all", [40 + n for n in burst]], ["steady", [40] * 10], ["burst", burst]], "the rows: %s" % rows)
            look.is_true("innerWidth > 500 || $('frame').getBoundingClientRect().top <= innerHeight / 3", "a phone has it below")
            dots = look.run("(() => { const canvas = $('bars'), k = canvas.width / canvas.clientWidth,"
                            " all = canvas.getContext('2d').getImageData(0, Math.round(62 * k), canvas.width, 1).data;"
                            " return slots.map((_, i) => { const at = 4 * Math.round((edges[i] + 2) * k);"
                            " return all.slice(at, at + 4).join(); }); })()")
            require(len(set(dots)) == 2 and dots[3] == dots[4] != dots[2] == dots[5], "the burst is seen: %s" % dots)
    look.tab.theme("light")
    look.tab.size(1280, 900)
    look.open("#by=comm")
    samples = look.run("all.a")
    require(samples == 720 and look.run("$('whole').hidden"), "all: %s" % samples)
    places = look.run(COLUMNS)
    look.tab.drag(places[3], places[4])
    look.is_true("location.hash.includes('from=3') && location.hash.includes('to=4')", "the hash keeps what is brushed")
    look.is_true("all.a === 400 && root.a === 400 && table.s0.reduce((x, y) => x + y, 0) === 400", "the brush filters")
    look.is_true("table.s0[names.indexOf('warm')] === 320", "the function of the burst")
    look.is_true("$('table').tBodies[0].rows[0].textContent.includes('warm')", "leads the table")
    look.is_true("$('title').textContent.includes('400 samples of STACKS:99 in 2 minutes')", look.run("$('title').textContent"))
    words = look.run("$('span').textContent")
    require(words == "2026-11-21 03:03:00 to 03:05:00 UTC, 2 minutes, 400 samples, 3.33 per second", "the span: " + words)
    look.is_true("$('ledger').textContent.includes('Recorded120 s') && $('ledger').textContent.includes('400 of 720')",
                 "the ledger: " + look.run("$('ledger').textContent"))
    look.open(look.run("location.hash"))
    look.is_true("all.a === 400", "the hash brings it back")
    look.run("$('to').focus()")
    look.tab.key("ArrowRight")
    look.is_true("all.a === 440 && S.to === '5'", "keys move the end")
    look.run("$('from').focus()")
    look.tab.key("ArrowRight")
    look.is_true("all.a === 240 && $('from').getAttribute('aria-valuetext').includes('03:04:00')", "and the begin")
    look.run("$('whole').focus()")
    look.tab.key("Enter", "\r")
    look.is_true("all.a === 720 && S.from === '' && S.to === '' && $('whole').hidden", "the button shows the whole time")
    look.run("openFunction(names.indexOf('warm'))")
    look.is_true("timeRows[0].name === 'warm' && timeRows[0].n.join() === '0,0,0,160,160,0,0,0,0,0'", "when a function burned")
    look.open("#q=^hot$")
    look.is_true("timeRows[0].n.join() === Array(10).fill(40).join()", "when what matches burned")
    look.open()
    touch = ("$('bars').dispatchEvent(new PointerEvent('pointer%s', { pointerId: 1, pointerType: 'touch', clientX: %f,"
             " clientY: %f }))")
    look.run("$('bars').setPointerCapture = () => {}")
    look.run(touch % ("down", *places[4]))
    look.run(touch % ("move", *places[6]))
    look.run(touch % ("up", *places[6]))
    look.run(touch % ("move", *places[9]))
    look.is_true("S.from === '4' && S.to === '6' && all.a === 280", "a finger chooses")
    look.is_true("!$('tip').hidden && $('tip').textContent.includes('40 samples')", "and is told: " +
                 look.run("$('tip').textContent"))
    look.is_true("getComputedStyle($('bars')).touchAction === 'pan-y'", "and still scrolls the page")


def press(look, words):
    look.run("[...document.querySelectorAll('button')].find(b => b.textContent === '%s').click()" % words)


def check_waits(look, without):
    """CPU, waits and wall time in one page: states below the application, waits for work as one line,
    records behind a share, the ledger of switches.
    """
    look.all_looks("#time=wait", "-wait")
    look.all_looks("#time=wall", "-wall")
    look.open()
    look.is_true("all.a === 200 && !$('idle').textContent && $('title').textContent.includes('2.0 CPU seconds')", "CPU is first")
    look.is_true("$('about').textContent.endsWith('200 samples of CPU time, one each 10.0 ms · 8.00 s of waits')", "both are told")
    press(look, "Waits")
    look.is_true("all.a === 4000000 && location.hash === '#time=wait'", "waits, and the hash keeps it")
    look.is_true("table.s0.reduce((x, y) => x + y, 0) === all.a", "the functions add up")
    title = look.run("$('title').textContent")
    require(re.fullmatch(r"\w+: 4.00 s of waits in 30 minutes · warm 88 %, hot 13 % · 88 % of stacks whole, 10.0 ms lost", title),
            "the heading: " + title)
    states = look.run("rows[2].map(box => [nameOf(box.node.f), nameOf(box.node.p.f), describe(box.node)[1].join('|')])")
    require([row[:2] for row in states] == [["[blocked]", "prog"], ["[disk]", "prog"], ["[runnable]", "prog"]] and
            "sleeps until something happens" in states[0][2] and "3.00 s · 75.0 % of all" in states[0][2] and
            "from 12 records of waits" in states[0][2], "states: %s" % states)
    idle = look.run("$('idle').textContent")
    require(idle == "Not shown: 4.00 s, 50.0 % of the time: threads that wait for work. Show", "the idle line: " + idle)
    found = look.run("[...$('table').tBodies[0].rows].slice(0, 2).map(row => [...row.cells].slice(0, 4).map(x => x.textContent))")
    require(found == [["87.5 %", "87.5 %", "14", "warm"], ["12.5 %", "12.5 %", "3", "hot"]], "the table: %s" % found)
    look.is_true("$('table').rows[1].cells[0].title === '3.50 s'", "its time")
    woken = look.run("[...$('table').rows].slice(0, 2).map(row => [row.cells[4].textContent, row.cells[4].title])")
    require(woken == [["Woken by", ""], ["keeper (prog) 57.1 %", "keeper (prog) 57.1 %\n(interrupt) 20.0 %"]],
            "who woke it: %s" % woken)
    look.run("openFunction(names.indexOf('warm'))")
    look.is_true("$('where').textContent.includes('Woken bykeeper (prog) 57.1 %, (interrupt) 20.0 %')", "where: " +
                 look.run("$('where').textContent"))
    look.run("reset()")
    look.run("[...$('table').querySelectorAll('th button')].find(b => b.textContent === 'Woken by').click()")
    look.is_true("$('table').rows[1].textContent.includes('keeper') && S.sort === 'woken'", "sorted by it")
    look.run("S.sort = 'self'; changed()")
    ledger = look.run("$('ledger').innerText").replace("\t", " ")
    for words in ("found 8.00 s of the 8.10 s that threads waited, 98.8 %", "blocked 7.10 s", "disk 500 ms", "lost 10.0 ms",
                  "switches 1,000 = 1 idle + 284 kernel + 26 emitted + 600 skipped + 89 lost", "records 20",
                  "Waits on this page 8.00 s", "Stacks on this page 200, all that were selected"):
        require(words in ledger, "the ledger has no %r: %s" % (words, ledger))
    press(look, "Show")
    look.is_true("all.a === 8000000 && !$('idle').textContent && location.hash === '#time=wait&idle=show'", "waits for work")
    look.is_true("$('others').textContent === 'More (1)'", "the choice is behind the button")
    press(look, "Wall time")
    look.is_true("all.a === 10000000 && kidsOf(kidsOf(root)[0]).some(kid => nameOf(kid.f) === '[running]' && kid.a === 2000000)",
                 "a sample is as long as it stands for")
    look.run("S.by = 'comm'; S.idle = 'hide'; changed()")
    look.is_true("all.a === 6000000 && rows[1].map(box => nameOf(box.node.f)).join() === 'prog,other'", "by process")
    top = "Math.round(%s.getBoundingClientRect().top)"
    look.is_true(top % "$('times')" + " - " + top % "$('others')" + " < 12", "one row of tools")
    look.open("#time=wall&view=inverted")
    look.is_true("Math.abs(kidsOf(root).reduce((x, y) => x + y.a, root.sa) - all.a) < 1e-6", "inverted adds up")
    look.open("#time=wall&fn=%d" % look.run("names.indexOf('cold')"))
    look.is_true("$('where').rows[0].textContent.includes('5.50 s · 91.7 % of all') && root.a === 5500000",
                 "callers and callees: " + look.run("$('where').textContent"))
    look.open("#time=nosuch&idle=nosuch")
    look.is_true("S.time === 'cpu' && S.idle === 'hide'", "unknown words are left out")
    without.open("#time=wait")
    without.is_true("S.time === 'cpu' && !$('times').children.length && !$('choices').querySelector('[name=idle]')",
                    "a page without waits has no switch")


def check_waits_change(look):
    """A difference of waits: times of both sides, and the noise is that of their records."""
    look.open("#time=wait")
    look.is_true("two && all.a === 4000000 && all.b === 7000000 && $('times').children.length === 3", "both sides")
    title = look.run("$('title').textContent")
    require(": 4.00 s → 7.00 s of waits in 30 minutes" in title and "warm +" not in title, "the heading: " + title)
    look.is_true("$('idle').textContent.startsWith('Not shown: 4.00 s → 4.00 s, 50.0 % → 36.4 % of the time')", "idle: " +
                 look.run("$('idle').textContent"))
    row = look.run("[...$('table').tBodies[0].rows].map(row => [...row.cells].map(x => x.textContent)).find(r => r[4] === 'hot')")
    require(row and row[2] == "3 → 24" and row[3].startswith("+37.5 ± 28.6, ×4.00"), "hot: %s" % row)
    look.all_looks("#time=wait", "-change")
