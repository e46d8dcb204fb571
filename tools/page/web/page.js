'use strict';
// SPDX-License-Identifier: GPL-3.0-or-later
// The page of opreport --html. The data (tools/page/pack.c) are one JSON object:
//   sides      one profile, or the one before and the one after: host, times, the words that
//              selected it, samples, those that are not selected, us: the same of waits in
//              microseconds, and all that the files have; sessions with ledgers, and code: for some
//              functions name, image, line where it begins, flat samples, and blocks of lines:
//              number or address, samples, text; 0: lines are left out; flat: of a comparison the
//              flat samples of functions, an event, the sum, and name, image, samples of each;
//              whole: of all
//   spans      of the only side, where its sessions have timelines: begin, end, lost stacks of each
//   strings    every name once
//   functions  four numbers each: kind, and the strings of name, image, source
//   contexts   eleven numbers each: side, session, end, the strings of event, application,
//              process name, cgroup, user, thread, CPU, and the state; the last of `states` is of
//              threads that wait for work
//   nodes      numbers in digits of five bits (the sixth: more follow). First the counts of the
//              root; then for each node: levels up from the node before to the parent, function
//              from 1 (0: what was pruned), counts: how many, and for each context and samples,
//              or microseconds, records and who ended the waits where the context is of waits: how
//              many, and for each the strings of its name and program, and microseconds
//   times      in the same digits, what the spans added: for a node and a context how far the node
//              is from the one before, the context, how many spans; how far each is, and samples
//   time, idle what is shown first: CPU time, waits or both; whether waits for work are
//   ends, states  name, and meaning; of an end also what helps
// Names are text only: nothing here makes HTML of them.
// The script on the page has short names; tests use these:
// kept: B D NARROW ROW S accepted all boxOf boxes changeText changed colourOf context countOf
// kept: counts describe draw drawLedger edges focus formsOf wide height images imageColour
// kept: imageOf inkOf isFunction isNoise kidsOf kinds matched nameOf names number openFunction
// kept: rankOf regex reset root rows sessions setFocus shownEvent slots table timeRows two zoomTo
// kept: zoomed

const { abs, max, min, round } = Math;
const $ = id => document.getElementById(id);
const say = (id, text) => { $(id).textContent = text; };
const rectOf = x => x.getBoundingClientRect();
const query = $('q'), bars = $('bars'), rowsOf = $('table'), graph = $('graph'), frame = $('frame');
const on = (target, events, act) => events.split(' ').forEach(event => target.addEventListener(event, act));
const D = JSON.parse($('data').textContent), sides = D.sides, strings = D.strings;
const two = sides.length > 1;
const GROUP = 0, END = 1, USER = 2, KERNEL = 3, INLINED = 4, LESS = 5, LIBRARY = 6, JIT = 7, STATE = 8;
const KINDS = [
  ['application, group', 225, 50, 87, 34], ['callers are missing', 0, 0, 72, 40], ['program', 26, 88, 68, 60],
  ['kernel', 208, 68, 72, 62], ['inlined', 322, 50, 76, 66], ['not shown: other', 275, 24, 84, 38],
  ['library', 54, 82, 66, 56], ['JIT code', 158, 45, 62, 58], ['state of the thread', 90, 22, 80, 33],
  ['Python etc.', 112, 46, 66, 56]];
// Why callers are missing, and what helps; what states mean.
const MEANINGS = Object.fromEntries([...D.ends, ...D.states].map(([name, ...words]) => [name, words]));
const why = end => MEANINGS[end]?.[0] ? ': ' + MEANINGS[end][0] : '';
const DIMS = [
  ['event', 'Event', 3], ['app', 'Application', 4], ['comm', 'Process', 5], ['cgroup', 'Cgroup', 6],
  ['user', 'User', 7], ['thread', 'Thread', 8], ['cpu', 'CPU', 9]];
const SIDES = ['Before', 'After'], LEVELS = 150;

// ---- the data ----

const names = ['(other)'], images = [''], sources = [''], kinds = [LESS];
for (let i = 0; i < D.functions.length; i += 4) {
  const image = strings[D.functions[i + 2]];
  let kind = D.functions[i];
  if (kind === USER) kind = /^anon\b|^\[?jit|^jitted-|\.jit$/i.test(image) ? JIT : /\.so(\.|$| )/.test(image) ? LIBRARY : USER;
  names.push(strings[D.functions[i + 1]]); images.push(image); sources.push(strings[D.functions[i + 3]]); kinds.push(kind);
}
const made = new Map();
function label(kind, name) {
  const key = kind + name;
  if (!made.has(key)) { made.set(key, names.length); names.push(name); images.push(''); sources.push(''); kinds.push(kind); }
  return made.get(key);
}
const nrContexts = D.contexts.length / 11;
const ofContexts = act => Array.from({ length: nrContexts }, (_, i) => act(i));
const context = (i, field) => D.contexts[11 * i + field];
const sideOf = i => context(countOf[i], 0);
const text = (i, field) => strings[context(i, field)];

// Sessions, the earliest first. A part of a session (of a cgroup) has no time and no stacks.
const sessions = sides.flatMap((side, s) => side.sessions.map((x, i) => ({ ...x, s, at: s + ':' + i, sum: 0 })));
{
  const used = new Set(ofContexts(i => context(i, 0) + ':' + context(i, 1)));
  sessions.splice(0, Infinity, ...sessions.filter(x => x.begin || used.has(x.at))
    .sort((x, y) => (x.begin || 0) - (y.begin || 0) || x.s - y.s));
}
// Labels have their numbers from here on, so that a hash means the same whatever is selected.
const stateOf = i => label(STATE, '[' + D.states[context(i, 10)][0] + ']');
for (let i = 0; i < nrContexts; i++) {
  for (const [, , field] of DIMS) label(GROUP, text(i, field));
  if (context(i, 2)) label(END, '[' + D.ends[context(i, 2)][0] + ']');
}
// Which contexts are of waits; then those have labels of states, too.
const waits = ofContexts(i => text(i, 3).startsWith('WAIT:')), hasWaits = waits.includes(true);
if (hasWaits) ofContexts(stateOf);
const sessionOf = ofContexts(i =>
  sessions.findIndex(x => x.at === context(i, 0) + ':' + context(i, 1)));

// What the brush chooses: spans, or sessions.
const spans = D.spans[1] && D.spans.map(([begin, end, lost]) => ({ begin, end, lost, s: 0, name: '' }));
const slots = spans || sessions;

// Counts: nodes, contexts, samples; slots; and records.
const parents = [0], functions = [0], inAll = [[], [], [], [], [], []];
const byTime = spans ? [[], [], [], [], [], []] : inAll;
let [countAt, countOf, counts, , records, wakers] = inAll;
{
  const digits = new Uint8Array(128), path = [0];
  [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'].forEach((c, i) => { digits[c.charCodeAt(0)] = i; });
  let at, numbers, depth = 0;
  const next = () => {
    for (let value = 0, unit = 1; ; unit *= 32) {
      const digit = digits[numbers.charCodeAt(at++)];
      value += (digit & 31) * unit;
      if (digit < 32) return value;
    }
  };
  const read = (text, act) => { for (at = 0, numbers = text; at < text.length;) act(); };
  const put = ([nodes, contexts, samples, slots, records, wakers], node, context, slot) => {
    nodes.push(node); contexts.push(context); samples.push(next()); slots.push(slot ?? sessionOf[context]);
    records.push(waits[context] ? next() : 0);
    const list = [];
    if (waits[context] && slot === undefined)
      for (let n = next(); n; n--) {
        const name = strings[next()], program = strings[next()];
        list.push([name + (program && ' (' + program + ')'), next()]);
      }
    wakers.push(list);
  };
  const take = node => { for (let n = next(); n; n--) put(inAll, node, next()); };
  let node = 0, isRoot = true;
  read(D.nodes, () => {
    if (isRoot) { isRoot = false; return take(0); }
    depth += 1 - next();
    parents.push(path[depth - 1]);
    functions.push(next());
    path[depth] = parents.length - 1;
    take(parents.length - 1);
  });
  read(spans ? D.times : '', () => {
    node += next();
    const context = next();
    for (let n = next(), slot = 0; n; n--) put(byTime, node, context, slot += next());
  });
}
D.nodes = D.times = '';

// ---- the state, in the hash ----

const ofCpu = waits.includes(false) || !hasWaits;
const DEFAULTS = {
  time: !hasWaits ? 'cpu' : ofCpu ? D.time : 'wait', idle: D.idle ? 'show' : 'hide',
  view: 'icicle', by: 'app', diff: 'abs', sort: two ? 'change' : 'self', event: '', app: '', comm: '', cgroup: '',
  user: '', thread: '', cpu: '', from: '', to: '', q: '', fn: '', zoom: '', rec: '',
};
const WORDS = {
  view: ['icicle', 'flame', 'inverted'], by: [...DIMS.map(d => d[0]), 'none'],
  diff: ['abs', 'rel', 'new'], rec: ['', 'all'], idle: ['hide', 'show'],
  time: hasWaits ? ['cpu', 'wait', 'wall'] : ['cpu'],
};
let S = { ...DEFAULTS };
function readHash() {
  S = { ...DEFAULTS };
  for (const part of location.hash.slice(1).split('&')) {
    const at = part.indexOf('=');
    try {
      const key = part.slice(0, at), value = decodeURIComponent(part.slice(at + 1));
      if (at > 0 && key in DEFAULTS && (!WORDS[key] || WORDS[key].includes(value))) S[key] = value;
    } catch { /* a bad escape is no state */ }
  }
}
function save(push) {
  const hash = '#' + Object.keys(S).filter(k => S[k] !== DEFAULTS[k]).map(k => k + '=' + encodeURIComponent(S[k])).join('&');
  if (hash === (location.hash || '#')) return;
  history[push ? 'pushState' : 'replaceState'](null, '', hash);
}

// ---- what is selected: a tree with a total for each side ----

let B, all, matched, regex, groupOf, accepted;
const zeros = n => new Float64Array(n), bits = n => new Uint8Array(n);
const events = [...new Set(ofContexts(i => context(i, 3)).filter((_, i) => !waits[i]))]
  .sort((x, y) => strings[x] < strings[y] ? -1 : 1);
const shownEvent = () => S.event || strings[events[0]] || '';
// Stacks of the clock have a number of nanoseconds.
const nanoseconds = event => +/^STACKS:(\d{4,})\b/.exec(event)?.[1];
// Whether all is time, in microseconds; a sample is as much as it stands for.
const isTime = () => S.time !== 'cpu';
const scaleOf = c => S.time === 'wall' && !waits[c] ? nanoseconds(text(c, 3)) / 1e3 : 1;
const amountOf = i => counts[i] * scaleOf(countOf[i]);
// Waits for work are one line, which says how much they are.
const isHidden = i => context(i, 10) === D.states.length - 1 && S.idle === 'hide';

// "/a/": the cgroup /a with those below it. "/" is the root alone.
const isBelow = (value, wanted) => wanted.length > 1 && wanted.endsWith('/') && (value + '/').startsWith(wanted);
function accepts(i) {
  for (const [key, , field] of DIMS)
    if (key !== 'event' && S[key] !== '' && text(i, field) !== S[key] && !(key === 'cgroup' && isBelow(text(i, field), S[key])))
      return false;
  return isTime() ? waits[i] || S.time === 'wall' && nanoseconds(text(i, 3)) > 0 : text(i, 3) === shownEvent();
}
// The first and the last slot that are chosen.
const span = () => [S.from, S.to].map((x, i) => x !== '' && slots[+x] ? +x : i && slots.length - 1).sort((x, y) => x - y);
const isPart = () => span()[1] - span()[0] < slots.length - 1;
const picked = () => spans && !isPart() ? sessions : slots.slice(span()[0], span()[1] + 1);

function build() {
  const dim = DIMS.find(d => d[0] === S.by), groups = new Map(), byGroup = [];
  const [from, to] = span(), its = [];
  accepted = ofContexts(i => accepts(i) && !isHidden(i));
  if (isPart()) byTime[3].forEach((slot, i) => { if (slot >= from && slot <= to) its.push(i); });
  [countAt, countOf, counts, , records, wakers] = isPart() ? byTime.map(list => its.map(i => list[i])) : inAll;
  groupOf = accepted.map((is, i) => {
    if (!is) return -1;
    const key = ((dim ? context(i, dim[2]) : 0) * 16 + context(i, 2)) * 16 + (isTime() && context(i, 10) + 1);
    if (!groups.has(key)) { groups.set(key, byGroup.length); byGroup.push({ context: i, counts: [] }); }
    return groups.get(key);
  });
  counts.forEach((n, i) => { if (accepted[countOf[i]]) byGroup[groupOf[countOf[i]]].counts.push(i); });
  const p = [-1], f = [-1], s0 = [0], s1 = [0], r0 = [0], r1 = [0], ofWait = [], wokenBy = [];
  const first = [0], next = [0], tops = new Map();
  const add = (parent, fn) => {
    for (const list of [s0, s1, r0, r1, first]) list.push(0);
    p.push(parent); f.push(fn); next.push(first[parent]);
    return first[parent] = p.length - 1;
  };
  const top = (parent, fn) => {
    const key = parent + ':' + fn;
    if (!tops.has(key)) tops.set(key, add(parent, fn));
    return tops.get(key);
  };
  const at = new Int32Array(parents.length), stamp = new Int32Array(parents.length).fill(-1);
  byGroup.forEach((group, g) => {
    const end = context(group.context, 2);
    if (!(0 in group.counts)) return;
    let start = dim ? top(0, label(GROUP, text(group.context, dim[2]))) : 0;
    if (isTime()) start = top(start, stateOf(group.context));
    if (end) start = top(start, label(END, '[' + D.ends[end][0] + ']'));
    stamp[0] = g; at[0] = start;
    for (const i of group.counts) {
      const path = [];
      let n = countAt[i];
      for (; stamp[n] !== g; n = parents[n]) path.push(n);
      for (let j = path.length - 1; j >= 0; j--) {
        at[path[j]] = add(at[n], functions[path[j]]);
        stamp[n = path[j]] = g;
      }
      (sideOf(i) ? s1 : s0)[at[n]] += amountOf(i);
      (sideOf(i) ? r1 : r0)[at[n]] += records[i];
      ofWait[at[n]] = waits[countOf[i]];
      if (wakers[i][0]) (wokenBy[at[n]] ||= []).push(...wakers[i]);
    }
  });
  const [t0, t1, R0, R1] = [s0, s1, r0, r1].map(list => Float64Array.from(list));
  B = { p, f, s0, s1, r0, r1, first, next, t0, t1, R0, R1, ofWait, wokenBy, n: p.length };
  for (let i = B.n - 1; i > 0; i--) for (const list of [t0, t1, R0, R1]) list[p[i]] += list[i];
  all = { a: t0[0], b: t1[0] };
  // For how much a record stands, to tell what is noise.
  unit = [0, 1].map(side => isTime() ? [t0, t1][side][0] / max([R0, R1][side][0], 1) : 1);
  const idle = [0, 0];
  counts.forEach((n, i) => { if (accepts(countOf[i]) && isHidden(countOf[i])) idle[sideOf(i)] += n; });
  const [a, b] = idle, of = { a: all.a + a, b: all.b + b }, isThere = isTime() && a + b > 0;
  $('idle').replaceChildren(...isThere ? ['Not shown: ' + eachSide(s => timeOf(idle[s])) + ', ' + shares(a, b, of) +
    ' of the time: threads that wait for work. ', button('Show', () => { S.idle = 'show'; changed(true); })] : []);
  sums();
}

// Samples of each function: its own, and with what it calls. Recursion counts once.
let table, unit;
// Where a thread waited: the innermost function of the program, not of the kernel or the C library.
function siteOf(i) {
  const isCode = f => f >= 0 && isFunction(f);
  while (kinds[B.f[i]] === KERNEL && isCode(B.f[B.p[i]])) i = B.p[i];
  let at = i;
  while (isCode(B.f[at]) && /(^|\/)(libc(\.so|-|\.musl)|libpthread|librt|ld-(linux|musl)|\[vdso)[^/]*$/.test(images[B.f[at]]))
    at = B.p[at];
  return B.f[isCode(B.f[at]) ? at : i];
}
const ownOf = f => [table.s0[f], table.s1[f]], totalOf = f => [table.t0[f], table.t1[f]];
function sums() {
  const n = names.length, on = new Int32Array(n);
  verdicts.clear();
  table = { s0: zeros(n), s1: zeros(n), t0: zeros(n), t1: zeros(n), r0: zeros(n), r1: zeros(n), wakers: [] };
  for (let i = B.first[0], down = true; i > 0;) {
    const f = B.f[i];
    if (down) {
      const own = B.ofWait[i] ? siteOf(i) : f;
      table.s0[own] += B.s0[i]; table.s1[own] += B.s1[i];
      table.r0[own] += B.r0[i]; table.r1[own] += B.r1[i];
      for (const [who, us] of B.wokenBy[i] || []) (table.wakers[own] ||= {})[who] = (table.wakers[own][who] || 0) + us;
      if (!on[f]++) { table.t0[f] += B.t0[i]; table.t1[f] += B.t1[i]; }
      if (B.first[i]) { i = B.first[i]; continue; }
    }
    on[f]--;
    down = B.next[i] > 0;
    i = down ? B.next[i] : B.p[i];
  }
}

// ---- nodes that are shown, made when they are needed ----

const share = (a, b) => two ? (all.a ? a / all.a : 0) + (all.b ? b / all.b : 0) : a;
const finish = (kids, parent) => {
  for (const kid of kids) { kid.w = share(kid.a, kid.b); kid.p = parent; kid.d = parent.d + 1; }
  return kids.filter(kid => kid.a + kid.b > 0).sort((x, y) => y.w - x.w || (names[x.f] < names[y.f] ? -1 : 1));
};
const into = (map, f, i, a, b, up) => {
  let kid = map.get(f);
  if (!kid) map.set(f, kid = { f, a: 0, b: 0, its: [], up });
  kid.its.push(i); kid.a += a; kid.b += b;
  if (up) { (kid.as ||= []).push(a); (kid.bs ||= []).push(b); }
};
const collapses = f => S.rec === '' && f > 0 && kinds[f] !== GROUP;
// Nodes with the same callers become one; with `up`, those with the same callees.
function kidsOf(node) {
  if (node.kids) return node.kids;
  const map = new Map();
  node.sa = node.sb = 0;
  if (node.up) {
    for (let j = 0; j < node.its.length; j++) {
      let i = B.p[node.its[j]];
      while (collapses(node.f) && B.f[i] === node.f) i = B.p[i];
      if (i > 0) into(map, B.f[i], i, node.as[j], node.bs[j], true);
      else { node.sa += node.as[j]; node.sb += node.bs[j]; }
    }
  } else {
    const its = node.its.slice();
    for (let j = 0; j < its.length; j++) {
      node.sa += B.s0[its[j]]; node.sb += B.s1[its[j]];
      for (let c = B.first[its[j]]; c; c = B.next[c])
        if (collapses(node.f) && B.f[c] === node.f) its.push(c);
        else into(map, B.f[c], c, B.t0[c], B.t1[c], false);
    }
  }
  return node.kids = finish([...map.values()], node);
}

const whole = () => ({ f: -1, a: all.a, b: all.b, w: share(all.a, all.b), d: 0, p: null, its: [0] });
function treeRoot() {
  const node = whole();
  if (S.view !== 'inverted') return node;
  const map = new Map();
  for (let i = 1; i < B.n; i++) if (B.s0[i] + B.s1[i]) into(map, B.f[i], i, B.s0[i], B.s1[i], true);
  node.sa = B.s0[0]; node.sb = B.s1[0];
  node.kids = finish([...map.values()], node);
  return node;
}
// A function: what calls it, and what it calls. Of a recursion the outermost call counts.
function sandwich(f) {
  const down = { f, a: 0, b: 0, d: 0, p: null, its: [] }, up = { ...down, its: [], as: [], bs: [], up: true };
  const inner = bits(B.n);
  for (let i = 1; i < B.n; i++) {
    inner[i] = inner[B.p[i]] || B.f[B.p[i]] === f ? 1 : 0;
    if (B.f[i] !== f || inner[i]) continue;
    for (const side of [down, up]) { side.its.push(i); side.a += B.t0[i]; side.b += B.t1[i]; }
    up.as.push(B.t0[i]); up.bs.push(B.t1[i]);
  }
  for (const side of [down, up]) side.w = share(side.a, side.b);
  down.twin = up; up.twin = down;
  return down;
}

// ---- search ----

const isFunction = f => ![GROUP, END, STATE].includes(kinds[f]);
function search() {
  regex = matched = null;
  try { if (S.q) regex = new RegExp(S.q, 'i'); } catch { /* it is marked */ }
  query.setAttribute('aria-invalid', !!S.q && !regex);
  if (!regex) { say('matched', S.q ? 'not a valid expression' : ''); return; }
  const is = names.map((name, f) => isFunction(f) &&
    (regex.test(name) || [images[f], imageOf(f)].some(image => image && regex.test(image))));
  const seen = new Set(), above = bits(B.n), has = bits(B.n);
  matched = { a: 0, b: 0, is, above, has };
  for (let i = B.n - 1; i; i--) if (has[i] ||= +is[B.f[i]]) has[B.p[i]] = 1;
  for (let i = 1; i < B.n; i++) {
    above[i] = above[B.p[i]] || is[B.f[i]] ? 1 : 0;
    if (is[B.f[i]]) seen.add(B.f[i]);
    if (above[i] && !above[B.p[i]]) { matched.a += B.t0[i]; matched.b += B.t1[i]; }
  }
  say('matched', functionsOf(seen.size) + ', ' + (two ? '' : samplesOf(matched.a) + ', ') + shares(matched.a, matched.b, all));
}

// ---- words ----

const number = n => round(n).toLocaleString('en');
const functionsOf = n => number(n) + (n === 1 ? ' function' : ' functions');
const timeOf = n => {
  const i = [999.5, 999500, 1e11].findIndex(x => n < x), x = n / [1, 1e3, 1e6, 3.6e9].at(i);
  return (i && x < 99.95 ? x.toPrecision(3) : number(x)) + ' ' + ['µs', 'ms', 's', 'h'].at(i);
};
const amount = n => isTime() ? timeOf(n) : number(n);
const samplesOf = n => amount(n) + (isTime() ? '' : ' samples');
const few = x => x < 10 ? x.toPrecision(2) : number(x);
const inPercent = x => (x >= 10 ? x.toFixed(1) : x >= 0.1 || !x ? x.toFixed(2) : x.toPrecision(1)) + ' %';
const percent = (part, of) => inPercent(of ? 100 * part / of : 0);
const shares = (a, b, of) => (of.a || !two ? percent(a, of.a) : '–') + (two ? ' → ' + (of.b ? percent(b, of.b) : '–') : '');
// The change in points of percent, and twice its standard deviation from counting.
function change(a, b, of = all) {
  const A = of.a || 1, C = of.b || 1;
  const [u, v] = of.isFlat ? [1, 1] : unit;
  return { by: 100 * (b / C - a / A), noise: 200 * Math.sqrt(max(a, u) * u / A / A + max(b, v) * v / C / C) };
}
// 1: twice as much, -1: half.
const ratioOf = (a, b, of = all) => Math.log2((b / (of.b || 1) + 1e-9) / (a / (of.a || 1) + 1e-9));
// To sort by: what is sure of a change. It is negative where that is no more than noise.
function sureSize(a, b, of = all) {
  const { by, noise } = change(a, b, of), sure = abs(by) - noise;
  return S.diff === 'rel' && sure > 0 ? abs(ratioOf(a, b, of)) : sure;
}
// The verdict on a function, in the table and in the graph: neither its own samples nor all of its
// calls changed more than the noise.
const verdicts = new Map();
function isNoise(f) {
  if (!verdicts.has(f)) verdicts.set(f, max(sureSize(...selfOf(f)), sureSize(...totalOf(f))) <= 0);
  return verdicts.get(f);
}
const signed = x => (x < 0 ? '−' : '+') + inPercent(abs(x)).replace(' %', '');
function changeText(a, b, of = all, isNoise = false) {
  const { by, noise } = change(a, b, of);
  const times = b / (of.b || 1) / (a / (of.a || 1)), ratio = !a ? ', new' : !b ? ', gone'
    : times < 1 ? ', ÷' + (1 / times).toPrecision(3) : ', ×' + times.toPrecision(3);
  return signed(by) + ' ± ' + inPercent(noise).replace(' %', '') + ' points' + (isNoise || abs(by) <= noise ? ' (noise)' : ratio);
}
// An image without what tells its build: a comparison has it once.
const plain = image => two ? image.replace(/ \((build-id [0-9a-f]+|inode \d+)( #\d+)?\)$/, '') : image;
// Flat samples of a function on both sides, by name and image.
const flatKey = f => names[f] + '\n' + images[f];
const flats = two && sides.every(side => side.flat && side.flat.total && side.flat.event === sides[0].flat.event)
  ? sides.map(({ flat: { rows } }) => {
    const sums = new Map();
    for (let i = 0; i < rows.length; i += 3) {
      const key = rows[i] + '\n' + plain(rows[i + 1]);
      sums.set(key, (sums.get(key) || 0) + rows[i + 2]);
    }
    return sums;
  }) : null;
const nrOfKey = new Map();
for (let f = 1; f < names.length; f++) nrOfKey.set(flatKey(f), (nrOfKey.get(flatKey(f)) || 0) + 1);
// Flat samples are of whole profiles, and belong to stacks of the clock or of their own event.
function mayBeFlat() {
  const event = shownEvent();
  return flats && !isTime() && DIMS.every(([key]) => key === 'event' || S[key] === '') && !isPart() &&
    (event.startsWith('STACKS:') || event.startsWith(sides[0].flat.event + ':'));
}
// The samples that tell most of the change of a function: [before, after, of how many].
function selfOf(f) {
  const own = [...ownOf(f), all], key = flatKey(f);
  if (!mayBeFlat() || nrOfKey.get(key) !== 1 || kinds[f] === INLINED) return own;
  const [a, b] = flats.map((sums, side) => sums.has(key) ? sums.get(key) : sides[side].flat.whole ? 0 : NaN);
  const flat = [a, b, { a: sides[0].flat.total, b: sides[1].flat.total, isFlat: true }];
  return a + b > 0 && change(...flat).noise < change(...own).noise ? flat : own;
}
// What a name loses, step by step, where there is no room: template arguments, parameters, both,
// scopes. The middle of a very long one is not on the page.
const forms = new Map(), inner = (name, what, mark) => {
  for (let last; last !== name;) name = (last = name).replace(what, '\0');
  return name.replace(/\0/g, mark);
};
function formsOf(name) {
  if (!forms.has(name)) {
    const short = inner(name.replace(/<.* \.\.\. .*[>)]/, '<>'), /<[^<>]*>/g, '<…>');
    const least = inner(short, /\((?!anon)[^()]+\)/g, '(…)'), bare = least.replace(/<…>|\(…\)| \[clone .*/g, '') || name;
    forms.set(name, [name, short, least, bare, bare.replace(/.*::(?=.)/, '')]);
  }
  return forms.get(name);
}
// Paths lose their beginning, others their end.
const cut = (name, nr) => {
  const end = name.slice(-nr);
  return name.includes('/') ? '…' + end.slice(max(0, end.indexOf('/'))) : name.slice(0, nr) + '…';
};
const brief = (name, nr = 60) => formsOf(name).find(form => form.length <= nr) || cut(formsOf(name)[4], nr - 1);
const groupName = name => /^(kallsyms|(no-)?vmlinux)\b/.test(name) ? 'kernel' : name;
const imageOf = f => kinds[f] === KERNEL ? groupName(images[f]) : images[f];
const NARROW = -2;
const nameOf = f => f === NARROW ? '(narrow)' : f < 0 ? 'all'
  : (kinds[f] === GROUP ? groupName(names[f]) : names[f]) || '(no name)';
// Who ended the waits of a function: a name and a share of the time that it waited, most first.
const wakersOf = f => Object.entries(table.wakers[f] || {}).sort((x, y) => y[1] - x[1])
  .map(([who, us]) => who + ' ' + percent(us, table.s0[f] + table.s1[f]));
// In words: of each side, or of the only one.
const eachSide = words => sides.map((_, s) => words(s)).join(' → ');
const recordsOf = nr => eachSide(s => number(nr(s))) + ' records of waits';
function describe(node) {
  if (node.f === NARROW)
    return [functionsOf(node.nr), ['too narrow to draw: a click zooms',
      (two ? '' : samplesOf(node.a) + ' · ') + shares(node.a, node.b, all) + ' of all']];
  const rows = [], parent = node.p, f = node.f, chain = boxOf(node)?.chain || [];
  if (chain[1]) rows.push(chain.length + ' calls in one row, to ' + nameOf(chain[chain.length - 1].f) + ': a click opens them');
  if (f >= 0 && images[f]) rows.push(imageOf(f) + (sources[f] ? ' · ' + sources[f] : ''));
  const end = [END, STATE].includes(kinds[f]) && names[f].slice(1, -1), help = MEANINGS[end]?.[1];
  if (f >= 0)
    rows.push(f ? KINDS[kinds[f]][0] + why(end)
      : 'rare calls: each has less than ' + D.threshold.toPrecision(2) + ' %');
  if (help) rows.push('What helps: ' + help);
  kidsOf(node);
  const isWhole = S.fn && node === root; // each call of the function
  const [sa, sb] = isWhole ? ownOf(f) : [node.sa, node.sb];
  if (two) {
    rows.push('before ' + samplesOf(node.a) + ', ' + percent(node.a, all.a) +
      ' · after ' + amount(node.b) + ', ' + percent(node.b, all.b));
    rows.push('change ' + changeText(node.a, node.b, all, isFunction(f) && isNoise(f)));
    rows.push((parent && parent.p ? 'of parent ' + shares(node.a, node.b, parent) + (node.up ? '' : ' · ') : '') +
      (node.up ? '' : 'self ' + amount(sa) + ' → ' + amount(sb)));
  } else {
    rows.push(samplesOf(node.a) + ' · ' + percent(node.a, all.a) + ' of all' +
      (parent && parent.p ? ' · ' + percent(node.a, parent.a) + ' of parent' : '') +
      (node.up ? '' : ' · self ' + amount(sa)));
  }
  if (isTime() && !node.up) rows.push('from ' + recordsOf(s => node.its.reduce((n, i) => n + (s ? B.R1 : B.R0)[i], 0)));
  return [nameOf(f), rows];
}

// ---- colours ----

const dark = matchMedia('(prefers-color-scheme: dark)');
let printing = false;
const isDark = () => dark.matches && !printing;
const tone = (day, night) => isDark() ? night : day;
const kindColour = (kind, shift = 0, turn = 0) => {
  const [, hue, saturation, day, night] = KINDS[kind];
  return `hsl(${hue + turn} ${saturation * tone(1, 0.72)}% ${tone(day, night) + (saturation && shift)}%)`;
};
// 0: no change. `size` is from 0 to 1.
const tint = (by, size) => by ? `hsl(${by > 0 ? `24 ${60 + 35 * size}` : `212 ${50 + 30 * size}`}% ${
  tone(84 - 22 * size, 54 + 12 * size)}%)` : tone('#d3d8de', '#4a525c');
// Images of a kind, those with most samples first, have colours around its own.
const rankOf = new Map();
{
  const sums = new Map(), nr = {};
  functions.forEach(f => sums.set(images[f], 0));
  counts.forEach((n, i) => { const image = images[functions[countAt[i]]]; sums.set(image, sums.get(image) + n); });
  const kindOf = new Map(images.map((image, f) => [image, kinds[f]]));
  [...sums].sort((x, y) => y[1] - x[1]).forEach(([image]) => {
    const kind = kindOf.get(image);
    rankOf.set(image, nr[kind] = nr[kind] + 1 || 0);
  });
}
const imageColour = f => {
  const rank = rankOf.get(images[f]) || 0;
  return kindColour(kinds[f], f * 7 % 5 - rank * 2 % 5, (rank * 0.618 + 0.5) % 1 * 28 - 14);
};
const hues = new Map();
function colourOf(node) {
  const f = node.f;
  if (matched && !(matched.is[f] || f < 0))
    return node.its.some(i => (node.up ? matched.above : matched.has)[i]) ? tone('#b7cbea', '#3d5272') : tone('#f0f2f5', '#20252b');
  if (f < 0) return two ? tint(0) : kindColour(GROUP);
  if (two && isFunction(f) && isNoise(f)) return tint(0);
  if (two) {
    const { by, noise } = change(node.a, node.b);
    const fresh = !node.a && by > noise, strong = abs(by) > noise;
    if (S.diff === 'new' ? !fresh : !strong) return tint(0);
    return tint(by, min(1, S.diff === 'rel' ? abs(ratioOf(node.a, node.b)) / 2 : abs(by) / 10));
  }
  const key = isDark() + f;
  if (!hues.has(key)) hues.set(key, imageColour(f)); // neighbours differ
  return hues.get(key);
}
// Names are light on what is dark: greys at night.
const inkOf = colour => isDark() && !(parseFloat(colour.split(' ')[2]) > 50) ? '#f2f4f7' : '#14181d';

// ---- the graph ----

let deeper, root, focus, zoomed, rows, boxes, height, wide, ROW;
const ctx = graph.getContext('2d');

// The beginning that all calls of a program have is one row, until a click opens it.
function chainOf(node) {
  const chain = [node], isCode = f => f > 0 && isFunction(f) && kinds[f] !== KERNEL && !(matched && matched.is[f]);
  if (S.view === 'inverted' || S.fn || node.open || node === zoomed || !isCode(node.f) || isCode(node.p.f)) return chain;
  for (let kid = node; (kid = kidsOf(kid)[0]) && kid.w > 0.98 * node.w && isCode(kid.f) && kidsOf(kid).length;) chain.push(kid);
  return chain.length > 2 ? chain : [node];
}
function place(node, x, w, row, step, limit) {
  const chain = chainOf(node), last = chain[chain.length - 1];
  (rows[row] ||= []).push({ node, x, w, row, chain });
  if (limit > 0) placeKids(last, node.w, x, w, row + step, step, limit - 1);
  else if (kidsOf(last).length) deeper = ', and calls below ' + LEVELS + ' levels: zoom in';
}
// What is too narrow comes last, and is one box together.
function placeKids(node, of, x, w, row, step, limit) {
  const kids = kidsOf(node);
  let i = 0;
  for (; i < kids.length && w * kids[i].w / of >= 0.7; i++) {
    place(kids[i], x, w * kids[i].w / of, row, step, limit);
    x += w * kids[i].w / of;
  }
  if (i === kids.length) return;
  const rest = { f: NARROW, a: 0, b: 0, w: 0, d: node.d + 1, p: node, its: [], kids: [], nr: kids.length - i };
  for (; i < kids.length; i++) for (const part of ['a', 'b', 'w']) rest[part] += kids[i][part];
  if (w * rest.w / of >= 2) (rows[row] ||= []).push({ node: rest, x, w: w * rest.w / of, row });
}

function layout() {
  const found = [];
  rows = {};
  deeper = '';
  if (S.fn) {
    place(root, 0, wide, 0, 1, LEVELS);
    placeKids(root.twin, root.w, 0, wide, -1, -1, LEVELS);
  } else {
    for (let node = zoomed.p; node; node = node.p) found.unshift(node);
    const chain = found.length > 6 && !found[2].open ? found.splice(2, found.length - 4) : [];
    if (chain.length) found.splice(2, 0, chain[0]);
    found.forEach((node, i) => { rows[i] = [{ node, x: 0, w: wide, row: i, above: true, chain: i === 2 ? chain : [] }]; });
    place(zoomed, 0, wide, found.length, 1, LEVELS);
  }
  const numbers = Object.keys(rows).map(Number), least = min(...numbers), most = max(...numbers);
  height = (most - least + 1) * ROW;
  boxes = Object.values(rows).flat();
  for (const box of boxes) box.y = (S.view === 'flame' && !S.fn ? most - box.row : box.row - least) * ROW;
}

// An empty canvas of that size.
function clear(pen, width, height) {
  const ratio = min(devicePixelRatio || 1, 2), canvas = pen.canvas, w = round(width * ratio), h = round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.height = height + 'px';
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = '12px system-ui, sans-serif';
  pen.textBaseline = 'middle';
  pen.direction = 'ltr';
}
function paint() {
  clear(ctx, wide, height);
  for (const box of boxes) {
    const w = max(box.w - (box.w > 3 ? 1 : 0), 0.6), colour = colourOf(box.node);
    ctx.globalAlpha = box.above ? 0.62 : 1;
    ctx.fillStyle = colour;
    ctx.fillRect(box.x, box.y, w, ROW - 1);
    ctx.globalAlpha = 1;
    if (matched && matched.is[box.node.f]) {
      ctx.fillStyle = tone('#c2185b', '#ff8ab8');
      ctx.fillRect(box.x, box.y + ROW - 4, w, 3);
    }
    if (box.w > 26) {
      ctx.fillStyle = inkOf(colour);
      ctx.fillText(labelOf(box), box.x + 4, box.y + ROW / 2);
    }
  }
  const box = focus && boxOf(focus);
  if (box && !printing) {
    ctx.lineWidth = 2;
    ctx.strokeStyle = tone('#0b3d91', '#ffd54a');
    ctx.strokeRect(box.x + 1, box.y + 1, max(box.w - 2, 2), ROW - 3);
  }
}
const widths = new Map();
function widthOf(name) {
  if (name.length > 300) return Infinity;
  if (!widths.has(name)) widths.set(name, ctx.measureText(name).width);
  return widths.get(name);
}
function fit(name, w) {
  const [least, fits] = [formsOf(name)[4], formsOf(name).find(form => widthOf(form) <= w)];
  const nr = min(99, Math.floor(least.length * w / widthOf(least.slice(0, 300)))) - 1;
  return fits ?? (nr > 1 ? cut(least, nr) : '');
}
// A row that is folded has the first and the last of its names, or the last.
function labelOf({ node, chain, w }) {
  const last = chain?.[1] && nameOf(chain[chain.length - 1].f);
  if (!last) return fit(nameOf(node.f), w - 9);
  const both = formsOf(nameOf(node.f))[3] + ' … ' + formsOf(last)[3] + ' (' + chain.length + ' calls)';
  return widthOf(both) <= w - 9 ? both : '… ' + fit(last, w - 21);
}
const boxOf = node => boxes.find(box => box.node === node);
// The node below the mouse.
function hit(event) {
  const bounds = rectOf(graph), y = event.clientY - bounds.top;
  const x = (event.clientX - bounds.left) * wide / bounds.width;
  return boxes.find(box => box.y <= y && y < box.y + ROW && box.x <= x && x < box.x + box.w)?.node;
}

// ---- what the user does in the graph ----

const tell = (node, x, y) => showTip(node && describe(node), x, y);
function showTip(words, x, y) {
  const tip = $('tip');
  tip.hidden = !words;
  if (!words) return;
  const [name, lines] = words;
  tip.replaceChildren(el('b', name), ...lines.map(line => el('span', line)));
  const box = rectOf(tip);
  tip.style.left = max(8, min(x + 14, innerWidth - box.width - 8)) + 'px';
  tip.style.top = (y + 18 + box.height > innerHeight ? max(8, y - box.height - 12) : y + 18) + 'px';
}
function setFocus(node) {
  if (!node) return;
  focus = node;
  paint();
  const box = boxOf(node);
  if (!box) return;
    if (box.y < frame.scrollTop) frame.scrollTop = box.y;
  if (box.y + ROW > frame.scrollTop + frame.clientHeight) frame.scrollTop = box.y + ROW - frame.clientHeight;
  const bounds = rectOf(graph);
  tell(node, bounds.left + box.x, bounds.top + box.y);
  const [name, lines] = describe(node);
  say('live', name + ', ' + lines.join(', '));
}
// Opens what is folded, else zooms.
function enter(node) {
  if (boxOf(node)?.chain?.[1]) { node.open = true; draw(); setFocus(node); } else zoomTo(node);
}
function zoomTo(node) {
  if (node.f === NARROW) node = node.p;
  if (S.fn) return openFunction(node.f);
  const path = [];
  for (let n = node; n.p; n = n.p) path.unshift(n.f);
  S.zoom = path.join('.');
  save(true);
  zoomed = focus = node;
  draw();
}
function openFunction(f) {
  if (f < 0 || !names[f]) return;
  S.fn = '' + f;
  save(true);
  arrange();
  $('crumbs').scrollIntoView({ block: 'nearest' });
}
function copy(name) {
  const told = words => {
    say('live', words + ' ' + name);
    say('said', words);
    setTimeout(() => { say('said', ''); }, 2000);
  };
  (navigator.clipboard?.writeText(name) || Promise.reject())
    .then(() => told('copied'), () => told('not copied'));
}
const step = (node, by) => {
  const box = boxOf(node), row = box && rows[box.row];
  return row && row[row.indexOf(box) + by]?.node;
};
function below(node, up) {
  const box = boxOf(node), row = box && rows[box.row + (up ? -1 : 1)];
  return row && row.find(b => b.x + b.w > box.x + 0.1)?.node;
}
on(graph, 'keydown', event => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const node = focus || zoomed, up = S.view === 'flame' && !S.fn;
  const acts = {
    ArrowDown: () => setFocus(below(node, up)), ArrowUp: () => setFocus(below(node, !up)),
    ArrowLeft: () => setFocus(step(node, -1)), ArrowRight: () => setFocus(step(node, 1)),
    Enter: () => enter(node), ' ': () => enter(node), Home: () => reset(), Escape: () => back(),
    s: () => openFunction(node.f), c: () => copy(nameOf(node.f)),
  };
  const act = acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (act) { event.preventDefault(); act(); }
});
on(document, 'keydown', event => {
  if (event.key === '/' && !/INPUT|SELECT/.test(document.activeElement.tagName)) { event.preventDefault(); query.focus(); }
  if (event.key === 'Escape' && document.activeElement === query) { S.q = query.value = ''; changed(); graph.focus(); }
});
function reset() { S.zoom = S.fn = ''; save(true); arrange(); }
function back() {
  if (S.fn) { S.fn = ''; save(true); arrange(); }
  else if (zoomed.p) zoomTo(zoomed.p);
}
on(graph, 'pointermove', event => tell(hit(event), event.clientX, event.clientY));
on(graph, 'pointerleave', () => tell());
on(graph, 'blur', () => { tell(); focus = null; paint(); });
on(graph, 'focus', () => { if (graph.matches(':focus-visible')) setFocus(zoomed); });
// A finger tells first, as a mouse does before its click.
on(graph, 'click', event => {
  const node = hit(event);
  if (!node) return;
  if (event.pointerType === 'touch' && node !== focus) setFocus(node);
  else enter(node);
});
on(graph, 'contextmenu', event => {
  const node = hit(event);
  if (!node || node.f <= 0) return;
  event.preventDefault();
  openFunction(node.f);
});

// ---- around the graph ----

const el = (tag, text, attributes) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const key in attributes) made[key] = attributes[key];
  return made;
};
// New contents. The button with the focus keeps it by its place, else the graph takes it.
function refill(id, parts) {
  const buttons = () => [...$(id).querySelectorAll('button')], place = buttons().indexOf(document.activeElement);
  $(id).replaceChildren(...parts);
  if (place >= 0) (buttons()[place] || graph).focus({ preventScroll: true });
}
const rowOf = (head, value) => {
  const row = el('tr');
  row.append(el('th', head, { scope: 'row' }), el('td', value));
  return row;
};
const button = (text, act, attributes) => el('button', text, { type: 'button', onclick: act, ...attributes });

function drawCrumbs() {
  const parts = [], path = [];
  if (S.fn) {
    if (S.zoom) parts.push(button('Back', back), el('i', '·'));
    parts.push(button('all', reset), el('i', '›'), el('b', nameOf(root.f)),
      el('i', 'callers above, callees below'));
  } else {
    for (let node = zoomed; node; node = node.p) path.unshift(node);
    path.forEach((node, i) => {
      if (path.length > 9 && i > 2 && i < path.length - 5) { if (i === 3) parts.push(el('i', '… ›')); return; }
      const name = brief(nameOf(node.f), 40);
      parts.push(...node === zoomed ? [el('b', name)] : [button(name, () => zoomTo(node)), el('i', '›')]);
    });
    if (zoomed.p) parts.push(button('Reset', reset));
    if (zoomed.f > 0 && kinds[zoomed.f] !== GROUP) parts.push(button('Callers and callees', () => openFunction(zoomed.f)));
    if (zoomed.f > 0) parts.push(button('Copy name', () => copy(nameOf(zoomed.f))));
  }
  if (missing) parts.unshift(el('i', missing));
  if (!(all.a + all.b)) parts.push(el('i', 'No samples are selected.'));
  refill('crumbs', parts);
}

// The values of a dimension with the samples of each side, those with most first.
function valuesOf(field, is) {
  const sums = new Map();
  counts.forEach((n, i) => {
    if (!is(i)) return;
    const key = context(countOf[i], field), sum = sums.get(key) || [0, 0];
    sum[sideOf(i)] += amountOf(i);
    sums.set(key, sum);
  });
  return [...sums].map(([key, sum]) => [strings[key], ...sum]).sort((x, y) => y[1] + y[2] - x[1] - x[2]);
}
// Where a function ran: shares of its samples.
function drawWhere() {
  const has = bits(parents.length), rows = [];
  for (let i = 1; i < has.length; i++) has[i] = S.fn && (has[parents[i]] || functions[i] === +S.fn) ? 1 : 0;
  if (S.fn) rows.push(rowOf(isTime() ? 'Time' : 'Samples', describe(root)[1].join(' · ')));
  if (S.fn && wakersOf(+S.fn)[0]) rows.push(rowOf('Woken by', wakersOf(+S.fn).slice(0, 5).join(', ')));
  for (const [key, words, field] of DIMS) {
    const values = valuesOf(field, i => has[countAt[i]] && groupOf[countOf[i]] >= 0);
    if (key === 'event' || values.every(([value]) => value.startsWith('(no '))) continue;
    const row = rowOf(words), more = values.length - 5;
    for (const [value, a, b] of values.slice(0, 5)) {
      const part = el('span', undefined, { title: value });
      part.append(values.length > 1 ? button(brief(value), () => { S[key] = value; changed(true); }) : brief(value),
        ' ', el('i', shares(a, b, root)));
      row.lastChild.append(part);
    }
    if (more > 0) row.lastChild.append('and ' + number(more) + ' more');
    rows.push(row);
  }
  refill('where', rows);
}

function drawLegend() {
  const parts = [], swatch = (colour, words) => {
    const span = el('span'), box = el('i');
    box.style.background = colour;
    span.append(box, words);
    parts.push(span);
  };
  if (two) {
    swatch(tint(1, 1), S.diff === 'new' ? 'new' : 'more than before');
    if (S.diff !== 'new') swatch(tint(-1, 1), 'less than before');
    swatch(tint(0), S.diff === 'new' ? 'known before, or noise' : 'noise of counting');
    parts.push(el('span', 'A box is as wide as the mean of its shares. ×2: twice the share of before, ÷2: half.'));
  } else {
    const there = new Map();
    for (let i = 1; i < B.n; i++) {
      const f = B.f[i], kind = kinds[f];
      if (!there.has(kind)) there.set(kind, []);
      if (images[f]) there.get(kind)[rankOf.get(images[f])] = f;
    }
    KINDS.forEach(([words], kind) => {
      if (!there.has(kind)) return;
      swatch(kindColour(kind), words);
      const some = there.get(kind).filter(f => f);
      if (some[1]) for (const f of some.slice(0, 3)) swatch(imageColour(f), brief(imageOf(f), 20));
    });
  }
  $('legend').replaceChildren(...parts);
}

let shownRows = 50, hasNoise = false;
const COLUMNS = [['self', 'Self', f => share(...ownOf(f))], ['total', 'Total', f => share(...totalOf(f))],
  ['records', 'Records', f => table.r0[f] + table.r1[f]], ['change', 'Change of self', f => sureOf(f).size],
  ['name', 'Function'], ['woken', 'Woken by'], ['image', 'Image']];
// Each click takes the next order of a column. By change: the greatest, growth, loss.
const ORDERS = { change: ['change', 'growth', 'loss'] };
const ordersOf = key => ORDERS[key] || [key, '-' + key];
const ARROWS = { growth: ' ▴', loss: ' ▾', change: ' ±' };
function drawTable() {
  const t = table, list = [], wanted = COLUMNS.find(c => ordersOf(c[0]).includes(S.sort)) || COLUMNS[0];
  const orders = ordersOf(wanted[0]), order = orders.includes(S.sort) ? S.sort : orders[0], turned = order[0] === '-' ? -1 : 1;
  const points = f => change(...selfOf(f)).by;
  const few = f => !matched && (two ? isNoise(f) : t.t0[f] < (isTime() ? all.a / 200 : 5));
  const by = order === 'growth' ? points : order === 'loss' ? f => -points(f) : wanted[2];
  for (let f = 0; f < names.length; f++)
    if (isFunction(f) && (two && S.diff === 'new' ? !t.t0[f] && t.t1[f] : t.t0[f] + t.t1[f]) && (!matched || matched.is[f]))
      list.push(f);
  const less = (x, y) => x < y ? -1 : x > y ? 1 : 0;
  const words = wanted[0] === 'image' ? images : wanted[0] === 'woken' ? names.map((_, f) => wakersOf(f)[0] || '\uffff') : names;
  list.sort((x, y) => turned * (by ? by(y, t) - by(x, t) : less(words[x], words[y])) || less(names[x], names[y]));
  const head = el('tr');
  for (const [key, words] of COLUMNS) {
    if (key === 'change' && !two || ['records', 'woken'].includes(key) && !isTime()) continue;
    const cell = el('th', undefined, { scope: 'col',
      className: { name: 'name', woken: 'image', image: 'image' }[key] || 'n ' + key });
    const next = ordersOf(key), rises = by ? turned < 0 : turned > 0;
    if (key === wanted[0]) cell.setAttribute('aria-sort', rises ? 'ascending' : 'descending');
    cell.append(button(words + (key === wanted[0] ? ARROWS[order] || (rises ? ' ▴' : ' ▾') : ''),
      () => { S.sort = next[(next.indexOf(order) + 1) % next.length]; save(); drawTable(); }));
    head.append(cell);
  }
  const body = el('tbody'), main = list.filter(f => !few(f)), shown = hasNoise ? list : main;
  const most = [max(...shown.map(f => share(...ownOf(f)))), max(...shown.map(f => share(...totalOf(f))))];
  for (const f of shown.slice(0, shownRows)) {
    const row = el('tr'), name = el('td', undefined, { className: 'name' });
    name.append(button(brief(nameOf(f), 80), () => openFunction(f), { title: nameOf(f) + (sources[f] ? '\n' + sources[f] : '') }));
    row.style.setProperty('--tint', two ? tint(isNoise(f) ? 0 : sureOf(f).by, 1) : imageColour(f));
    [ownOf(f), totalOf(f)].forEach(([a, b], i) => {
      const cell = el('td', shares(a, b, all),
        { className: 'n part', title: amount(a) + (two ? ' → ' + amount(b) : '') + (isTime() ? '' : ' samples') });
      cell.style.setProperty('--heat', 100 * share(a, b) / most[i] + '%');
      row.append(cell);
    });
    if (isTime()) row.append(el('td', eachSide(s => number(table['r' + s][f])), { className: 'n records' }));
    if (two) {
      const { sum: [a, b, of], words } = sureOf(f);
      const what = of.isFlat ? ' flat samples of ' + sides[0].flat.event : isTime() ? '' : ' stack samples';
      row.append(el('td', words + changeText(a, b, of, isNoise(f)).replace(' points', ''),
        { className: 'n', title: amount(a) + ' → ' + amount(b) + what }));
    }
    row.append(name);
    if (isTime()) row.append(el('td', wakersOf(f)[0] || '', { className: 'image', title: wakersOf(f).join('\n') }));
    row.append(el('td', imageOf(f), { className: 'image', title: images[f] }));
    if (S.fn === '' + f) row.setAttribute('aria-selected', 'true');
    body.append(row);
  }
  const top = el('thead');
  top.append(head);
  rowsOf.className = two ? 'two' : '';
  refill('table', [top, body]);
  const nr = min(500, shown.length - shownRows), rest = list.length - shown.length;
  $('more').hidden = nr <= 0 && !rest;
  say('more', nr > 0 ? 'Show ' + nr + ' more of ' + number(shown.length) : 'Show ' + functionsOf(rest) + (two
    ? ' that changed no more than the noise' : isTime() ? ' with less than 0.5 %' : ' with less than 5 samples: noise'));
}
$('cut').onclick = () => { frame.className = 'all'; draw(); };
$('more').onclick = () => {
  if (rowsOf.tBodies[0].rows.length < shownRows) hasNoise = true;
  shownRows += 500;
  drawTable();
};
// The change of a function's own samples; of all its calls where only that is sure, and later.
function sureOf(f) {
  const own = selfOf(f), total = [...totalOf(f), all], size = sureSize(...own), other = sureSize(...total);
  const isTotal = size <= 0 && other > 0, sum = isTotal ? total : own;
  return { sum, by: change(...sum).by, words: isTotal ? 'total ' : '', size: size > 0 ? size + 1e4 : other };
}

// ---- source and code ----

// The one of the function that begins at its line; before a change it may have begun elsewhere.
const codeOf = (side, f) => {
  const same = side.code.filter(c => c.name === names[f] && plain(c.image) === images[f]);
  return same.find(c => !c.line || sources[f].endsWith(':' + c.line)) || (two && same.length === 1 ? same[0] : null);
};
// By file, and in it by number and text: the lines of all sides.
function linesOf(code) {
  const files = new Map();
  code.forEach((c, s) => {
    for (const block of c ? c.blocks : []) {
      if (!files.has(block.file)) files.set(block.file, new Map());
      let gap = true;
      for (const line of block.lines) {
        if (line) {
          const [nr, count, text] = line, key = ('' + nr).padStart(20, '0'), lines = files.get(block.file), at = key + text;
          const row = lines.get(at) || { key, nr, text, counts: code.map(() => 0), gap: true };
          row.counts[s] = count; row.gap &&= gap;
          lines.set(at, row);
        }
        gap = !line;
      }
    }
  });
  return [...files].map(([file, lines]) => [file, [...lines.values()].sort((x, y) => x.key < y.key ? -1 : x.key > y.key ? 1 : 0)]);
}
function drawCode() {
  const f = !S.fn ? -1 : +S.fn, code = sides.map(side => codeOf(side, f)), known = code.filter(c => c);
  $('code').hidden = f <= 0 || !isFunction(f);
  if (!known.length) {
    say('h-code', 'Source of ' + nameOf(f));
    say('about-code', 'Not on this page: only the hottest functions have it. opannotate shows all.');
    return $('lines').replaceChildren();
  }
  const files = linesOf(code), part = (n, s) => n / code[s].samples || 0;
  const parts = line => line.counts.map((n, s) => code[s] ? part(n, s) : 0);
  const most = max(...files.flatMap(([, lines]) => lines.flatMap(parts)));
  const body = el('tbody'), add = (look, nr, text, counts) => {
    const row = el('tr');
    row.append(...code.map((c, s) => el('td', counts[s] ? percent(counts[s], c.samples) : '',
      { className: 'n', title: counts[s] ? number(counts[s]) + ' samples' : '' })),
      el('td', nr, { className: 'nr' }), el('td', text, { className: look }));
    row.style.setProperty('--heat', 100 * max(0, ...counts.map((n, s) => n && part(n, s))) / most + '%');
    body.append(row);
  };
  if (two) {
    const row = el('tr');
    row.append(...SIDES.map(words => el('th', words, { className: 'n', scope: 'col' })));
    body.append(row);
  }
  for (const [file, lines] of files) {
    if (file) add('file', '', file, []);
    lines.forEach((line, i) => {
      if (i && line.gap) add('text', '⋮', '', []);
      add('text', line.nr, line.text, line.counts);
    });
  }
  const about = code.map((c, s) => {
    const rest = c ? c.samples - files.reduce((n, [, lines]) => lines.reduce((m, line) => m + line.counts[s], n), 0) : 0;
    const taken = c ? number(c.samples) + (kinds[f] > STATE ? ' stack' : ' flat sample') +
      (c.samples === 1 ? '' : 's') + ' of ' + c.event : '';
    return (two ? s ? 'after: ' : 'before: ' : '') + (taken || 'not among the hottest') +
      (rest > 0 ? ', ' + percent(rest, c.samples) + ' in other lines' : '');
  });
  say('h-code', (known[0].blocks[0].code ? 'Machine code of ' : 'Source of ') + nameOf(f));
  say('about-code', about.join('; ') + '. The choices above do not change these lines.');
  $('lines').replaceChildren(body);
}

// ---- the ledger ----

const eventWords = event => nanoseconds(event) ? 'CPU time, one each ' + (nanoseconds(event) / 1e6).toPrecision(3) + ' ms'
  : event.split(':', 2).join(':');
const UNITS = [['second', 1], ['minute', 60], ['hour', 3600], ['day', 86400]];
const duration = seconds => {
  const [unit, length] = UNITS.findLast(([, length], i) => !i || seconds >= 1.5 * length), nr = round(seconds / length);
  return number(nr) + ' ' + unit + (nr === 1 ? '' : 's');
};
const clock = seconds => new Date(1000 * seconds).toISOString().replace('T', ' ').slice(0, 19);
// The day is told once.
function timesOf({ begin, end, name }) {
  if (!begin) return name || '';
  const [from, to] = [begin, end].map(clock);
  return from + ' to ' + (to.startsWith(from.slice(0, 11)) ? to.slice(11) : to) + ' UTC';
}
function drawLedger() {
  const ofTime = picked(), isSpan = spans && isPart();
  const is = x => !x || (isSpan ? x.begin < ofTime.at(-1).end && x.end > ofTime[0].begin : ofTime.includes(x));
  $('ledger').replaceChildren(...sides.map((side, s) => {
    const events = new Map(), grid = el('table'), ofWaits = {}, [us, usLeft, usFound] = side.us;
    const chosen = side.sessions.filter((_, i) => is(sessions.find(x => x.at === s + ':' + i)));
    for (const session of chosen) {
      for (const k in session.waits) ofWaits[k] = (ofWaits[k] || 0) + session.waits[k];
      for (const event of session.events || []) {
        const key = event.event + ':' + event.count;
        const sum = events.get(key) || { received: 0, filtered: 0, enabled: 0, counted: 0, lost: {}, ends: {} };
        for (const part of ['received', 'filtered', 'enabled', 'counted']) sum[part] += event[part];
        for (const part of ['lost', 'ends']) for (const k in event[part]) sum[part][k] = (sum[part][k] || 0) + event[part][k];
        events.set(key, sum);
      }
    }
    const row = (head, value) => grid.append(rowOf(head, value));
    if (two) grid.append(el('caption', SIDES[s]));
    row('Host', side.hosts.join(', ') || 'not known');
    const kernels = [...new Set(side.sessions.map(x => x.kernel))].filter(x => x);
    if (kernels.length) row('Kernel', kernels.join(', '));
    const times = isSpan ? ofTime : chosen.filter(lasted);
    const part = isSpan || times.length && chosen.length < side.sessions.length;
    const when = part ? { begin: min(...times.map(x => x.begin)), end: max(...times.map(x => x.end)),
      seconds: times.reduce((n, x) => n + lasted(x), 0) } : side;
    if (when.begin) { row('Time', timesOf(when)); row('Recorded', number(when.seconds) + ' s'); }
    row('Sessions', chosen.map(x => x.name).join(', ') || 'none');
    if (chosen.some(x => x.open))
      row('Still open', events.size ? 'these figures are older than the stacks'
        : 'opd has not written a ledger yet: “opcontrol --dump” lets it');
    if (isSpan) row('', 'Below are the counts of these sessions as a whole.');
    for (const [key, sum] of events) {
      const walked = Object.values(sum.ends).reduce((x, y) => x + y, 0);
      row(eventWords(key), '');
      row('received', number(sum.received));
      if (sum.counted < 0.99 * sum.enabled)
        row('counted', percent(sum.counted, sum.enabled) + ' of the time: more events than counters');
      for (const reason in sum.lost)
        if (sum.lost[reason] || reason.startsWith('kernel'))
          row('lost, ' + reason.replace(/_/g, ' '), number(sum.lost[reason]));
      if (sum.filtered) row('filtered by image', number(sum.filtered));
      for (const end in sum.ends)
        if (sum.ends[end])
          row('stacks ' + end.replace(/_/g, ' '), number(sum.ends[end]) + ', ' + percent(sum.ends[end], walked) + why(end));
    }
    if (us + usFound) {
      const exact = Object.entries(ofWaits).filter(([k, n]) => n && /_us$/.test(k) && k !== 'lost_us');
      const sum = exact.reduce((n, x) => n + x[1], 0), nr = k => number(ofWaits[k]) + ' ' + k;
      row('Waits', '');
      row('found', timeOf(usFound) + (sum ? ' of the ' + timeOf(sum) + ' that threads waited, ' + percent(usFound, sum) : ''));
      for (const [k, n] of exact) row(k.slice(0, -3), timeOf(n));
      if (ofWaits.switches)
        row('switches', number(ofWaits.switches) + ' = ' + ['idle', 'kernel', 'emitted', 'skipped', 'lost'].map(nr).join(' + '));
      if (ofWaits.records) row('records', number(ofWaits.records));
      if (ofWaits.lost_us) row('lost', timeOf(ofWaits.lost_us));
      row('Waits on this page', timeOf(us));
      if (usLeft) row('not selected', timeOf(usLeft));
      if (D.prunedUs) row('added up as “(other)”', timeOf(D.prunedUs));
    }
    let shown = 0;
    counts.forEach((n, i) => { if (sideOf(i) === s && !waits[countOf[i]]) shown += n; });
    row('Stacks on this page' + (events.size > 1 ? ', of all events' : ''),
      number(shown) + (shown === side.samples ? ', all that were selected' : ' of ' + number(side.samples)));
    if (side.unselected) row('not selected', number(side.unselected));
    if (D.pruned) row('added up as “(other)”', number(D.pruned) + ': calls below ' + D.threshold.toPrecision(2) + ' %');
    return grid;
  }));
}

// ---- choices ----

const OPTIONS = 500;
function choose(place, key, words, options) {
  const box = el('label', words + ' '), select = el('select', undefined, { name: key });
  for (const [value, shown] of options.slice(0, OPTIONS)) select.append(el('option', brief(shown), { value }));
  if (options.length > OPTIONS)
    select.append(el('option', 'and ' + number(options.length - OPTIONS) + ' with fewer samples', { disabled: true }));
  select.onchange = () => { S[key] = select.value; S.zoom = ''; changed(true); };
  box.append(select);
  $(place).append(box);
}
// Cgroups with others below them, which can be chosen together.
function parentsOf(cgroups) {
  const nr = new Map();
  for (const value of cgroups)
    for (let at = value.length; at > 0; at = value.lastIndexOf('/', at - 1))
      nr.set(value.slice(0, at), (nr.get(value.slice(0, at)) || 0) + 1);
  return [...nr.keys()].sort().filter(x => nr.get(x) > 1).map(x => [x + '/', x + ' and below']);
}
function drawChoices() {
  for (const words of ['Icicle', 'Flame', 'Inverted']) {
    const name = words.toLowerCase();
    $('views').append(button(words, () => { S.view = name; S.fn = S.zoom = ''; changed(true); }, { name }));
  }
  if (hasWaits) {
    for (const [time, words] of [['cpu', 'CPU'], ['wait', 'Waits'], ['wall', 'Wall time']])
      if (ofCpu || time === 'wait')
        $('times').append(button(words, () => { S.time = time; S.zoom = ''; changed(true); }, { name: time }));
    choose('choices', 'idle', 'Waits for work', [['hide', 'one line'], ['show', 'in the graph']]);
  }
  const groups = [];
  for (const [key, words, field] of DIMS) {
    const values = valuesOf(field, () => true).map(([value]) => value);
    if (key === 'event' && values.length > 1)
      choose('choices', key, words, events.map((e, i) => [i ? strings[e] : '', strings[e]]));
    if (key === 'event') continue;
    if (values.length > 1)
      choose(key === 'app' ? 'first' : 'choices', key, words,
        [['', 'all'], ...(key === 'cgroup' ? parentsOf(values) : []), ...values.map(v => [v, v])]);
    if (values.length > 1 || key === 'app') groups.push([key, key === 'cpu' ? words : words.toLowerCase()]);
  }
  if (two)
    choose('first', 'diff', 'Show', [['abs', 'change in points'], ['rel', 'change as a ratio'], ['new', 'only what is new']]);
  choose(two || hasWaits ? 'choices' : 'first', 'by', 'Group by', [...groups, ['none', 'nothing']]);
  choose('choices', 'rec', 'Recursion', [['', 'as one call'], ['all', 'each call']]);
  $('others').onclick = () => $('others').setAttribute('aria-expanded', $('bar').classList.toggle('open'));
  query.oninput = () => { S.q = query.value; save(); search(); paint(); drawTable(); drawTime(); };
}
function showChoices() {
  for (const select of $('bar').querySelectorAll('select')) {
    const value = S[select.name];
    if (![...select.options].some(o => o.value === value)) select.append(el('option', brief(value), { value }));
    select.value = value;
  }
  const nr = [...$('choices').querySelectorAll('select')].filter(select => select.value !== DEFAULTS[select.name]).length;
  say('others', 'More' + (nr ? ' (' + nr + ')' : ''));
  for (const time of $('times').children) time.setAttribute('aria-pressed', S.time === time.name);
  for (const view of $('views').children) view.setAttribute('aria-pressed', S.view === view.name && !S.fn);
  if (document.activeElement !== query) query.value = S.q;
}

// ---- the map of time ----

const lasted = x => x.begin && x.end > x.begin ? x.end - x.begin : 0;
const timed = slots.every(lasted), lastOf = slots => slots.reduce((x, y) => y.end > x.end ? y : x);
// To the second where all is of one hour, and with the day where it is of several.
const wholeTime = lastOf(slots).end - slots[0].begin;
const shortTime = seconds => clock(seconds).slice(wholeTime < 86400 ? 11 : 5, wholeTime < 3600 ? 19 : 16);
const rate = (sum, seconds) =>
  timed ? ', ' + (isTime() ? timeOf(sum / seconds) : (sum / seconds).toPrecision(3)) + ' per second' : '';
const perSecond = (n, i) => timed ? n / lasted(slots[i]) : n;
const pen = bars.getContext('2d'), TOP = 36, HIGH = 17;
let timeRows, edges;
// What burned when, by what the graph is grouped by; of the function or of what matches, where one
// of these is chosen.
function drawTime() {
  if ($('time').hidden = slots.length <= sides.length) return;
  const dim = DIMS.find(d => d[0] === S.by) || DIMS[1], is = S.fn ? f => f === +S.fn : matched ? f => matched.is[f] : null;
  const hit = bits(parents.length), sums = new Map(), empty = () => slots.map(() => 0), total = empty();
  parents.forEach((parent, i) => { hit[i] = !is || i && (hit[parent] || is(functions[i])) ? 1 : 0; });
  byTime[2].forEach((n, i) => {
    const c = byTime[1][i], amount = n * scaleOf(c), slot = byTime[3][i], key = context(c, dim[2]);
    if (!accepted[c] || !hit[byTime[0][i]]) return;
    if (!sums.has(key)) sums.set(key, { name: groupName(strings[key]), n: empty(), sum: 0 });
    sums.get(key).n[slot] += amount;
    sums.get(key).sum += amount;
    total[slot] += amount;
  });
  const list = [...sums.values()].sort((x, y) => y.sum - x.sum), others = list.splice(list.length > 6 ? 5 : 6);
  if (others[0]) list.push({ name: 'other', n: total.map((_, i) => others.reduce((sum, x) => sum + x.n[i], 0)) });
  timeRows = [{ name: S.fn ? nameOf(+S.fn) : matched ? S.q : 'all', n: total }, ...list[1] ? list : []];
  slots.forEach((x, i) => { x.sum = total[i]; });
  const [from, to] = span(), chosen = slots.slice(from, to + 1);
  const seconds = chosen.reduce((n, x) => n + lasted(x), 0), sum = chosen.reduce((n, x) => n + x.sum, 0);
  [['from', from], ['to', to]].forEach(([id, value]) => {
    $(id).max = slots.length - 1;
    $(id).value = value;
    $(id).setAttribute('aria-valuetext', timesOf(slots[value]));
  });
  say('span', (chosen[0].begin ? timesOf({ begin: chosen[0].begin, end: lastOf(chosen).end }) + ', ' : '') +
    (spans ? duration(seconds) : (isPart() ? chosen.length + ' of ' : 'all ') + slots.length + ' sessions') + ', ' +
    samplesOf(sum) + rate(sum, seconds));
  $('whole').hidden = !isPart();
  paintTime();
}
function paintTime() {
  if (!timeRows) return;
  const [from, to] = span(), width = bars.clientWidth;
  const left = min(150, width * 0.26), rest = width - left;
  const high = TOP + HIGH * (timeRows.length - 1), long = x => timed ? lasted(x) : 1;
  const whole = slots.reduce((n, x) => n + long(x), 0);
  const most = timeRows.map(({ n }) => max(...n.map(perSecond))), hottest = max(...most.slice(1));
  let at = left, free = 0;
  edges = [left, ...slots.map(x => at += rest * long(x) / whole)];
  clear(pen, width, high + 18);
  const fill = (colour, alpha, x, y, w, h) => { pen.globalAlpha = alpha; pen.fillStyle = colour; pen.fillRect(x, y, w, h); };
  const write = (words, x, y) => { pen.globalAlpha = 1; pen.fillStyle = tone('#59636e', '#a3acb7'); pen.fillText(words, x, y); };
  slots.forEach((x, i) => {
    const isIn = i >= from && i <= to, colour = isIn ? tone('#0b63ce', '#78b3ff') : tone('#59636e', '#a3acb7');
    const w = edges[i + 1] - edges[i], gap = w > 4 ? 1 : 0;
    const label = x.begin && (spans || /^\d/.test(x.name)) ? shortTime(x.begin) : x.name;
    timeRows.forEach(({ n }, row) => {
      const part = perSecond(n[i], i) / (row ? hottest : most[0]) || 0;
      const y = row ? TOP + HIGH * (row - 1) : 0, h = row ? HIGH - 1 : TOP - 3;
      fill(tone('#f4f6f8', '#1e2328'), 1, edges[i], y, w, h);
      if (row) fill(colour, Math.sqrt(part), edges[i], y, w - gap, h);
      else fill(colour, (isIn ? 1 : 0.45) * (two && !x.s ? 0.55 : 1), edges[i], h, w - gap, -max(part && 2, h * part));
    });
    if (edges[i] < free || edges[i] + widthOf(label) > width) return;
    write(label, edges[i], high + 9);
    free = edges[i] + widthOf(label) + 12;
  });
  timeRows.forEach(({ name }, row) => write(fit(name, left - 8), 0, row ? TOP + HIGH * (row - 0.5) : TOP / 2));
  pen.lineWidth = 2;
  pen.strokeStyle = tone('#0b3d91', '#ffd54a');
  if (isPart()) pen.strokeRect(edges[from], 1, edges[to + 1] - edges[from], high - 2);
}
function brush(from, to) {
  S.from = '' + (min(from, to) || '');
  S.to = max(from, to) < slots.length - 1 ? '' + max(from, to) : '';
  changed();
}
{
  let anchor = -1;
  const at = event => {
    const i = edges.findIndex(x => event.clientX - rectOf(bars).left < x);
    return i < 0 ? slots.length - 1 : max(0, i - 1);
  };
  on(bars, 'pointerdown', event => {
    anchor = at(event);
    bars.setPointerCapture(event.pointerId);
    brush(anchor, anchor);
  });
  on(bars, 'pointermove', event => {
    const [from, to] = span(), i = at(event), y = event.clientY - rectOf(bars).top;
    if (anchor >= 0 && (from !== min(anchor, i) || to !== max(anchor, i))) brush(anchor, i);
    const { name, n } = timeRows[max(0, Math.floor((y - TOP) / HIGH) + 1)] || timeRows[0];
    showTip([name, [(two ? SIDES[slots[i].s] + ': ' : '') + slots[i].name, timesOf(slots[i]),
      samplesOf(n[i]) + rate(n[i], lasted(slots[i]))].filter(x => x)], event.clientX, event.clientY);
  });
  on(bars, 'pointerleave', () => showTip());
  on(bars, 'pointerup pointercancel', () => { anchor = -1; });
  $('from').oninput = () => brush(+$('from').value, max(span()[1], +$('from').value));
  $('to').oninput = () => brush(min(span()[0], +$('to').value), +$('to').value);
  $('whole').onclick = () => { S.from = S.to = ''; changed(true); $('from').focus(); };
}

// ---- the heading: what used the machine ----

const hosts = sides.map(side => side.hosts.join(', ') || 'profile');
const host = two && hosts[0] !== hosts[1] ? hosts.join(' → ') : hosts[hosts.length - 1];
function drawTitle() {
  const ns = nanoseconds(shownEvent()), sums = [all.a, all.b], chosen = picked();
  const seconds = s => chosen.reduce((n, x) => n + (x.s === s ? lasted(x) : 0), 0) || sides[s].seconds;
  let rows = valuesOf(4, i => groupOf[countOf[i]] >= 0).map(([name, a, b]) => [groupName(name), a, b, all]);
  if (rows.length < 2 || isTime()) rows = names.flatMap((name, f) => isFunction(f) ? [[name, ...selfOf(f)]] : []);
  const size = ([, ...sum]) => two ? sureSize(...sum) : sum[0];
  rows = rows.filter(row => two ? abs(change(...row.slice(1)).by) > change(...row.slice(1)).noise : row[1])
    .sort((x, y) => size(y) - size(x));
  const ends = [0, 0], lost = [0, 0];
  counts.forEach((n, i) => { if (groupOf[countOf[i]] >= 0 && !context(countOf[i], 2)) ends[sideOf(i)] += amountOf(i); });
  for (const { s, events, waits, lost: n } of chosen) {
    if (isTime()) { lost[s] += waits?.lost_us || 0; continue; }
    lost[s] += n || 0;
    for (const { event, count, lost: by } of events || [])
      if (shownEvent().startsWith(event + ':' + count + ':')) for (const reason in by) lost[s] += by[reason];
  }
  const list = rows.slice(0, 3).map(([name, ...sum]) =>
    brief(name, 30) + ' ' + (two ? signed(change(...sum).by) : round(100 * sum[0] / all.a) + ' %'));
  say('title', [
    host + ': ' + eachSide(s => isTime() ? timeOf(sums[s]) : ns ? few(sums[s] * ns / 1e9) : number(sums[s])) +
      (isTime() ? S.time === 'wall' ? ' of threads' : ' of waits'
        : ns ? ' CPU seconds' : ' samples of ' + eventWords(shownEvent())) +
      ' in ' + eachSide(s => duration(seconds(s))),
    list.join(', ') + (!two ? '' : list.length ? ' points' : 'no change beyond the noise') + (rows[3] ? ', …' : ''),
    eachSide(s => round(100 * ends[s] / sums[s] || 0) + ' %') + ' of stacks whole, ' +
      eachSide(s => amount(lost[s])) + ' lost',
  ].filter(x => x).join(' · '));
}

// ---- all of it ----

function draw() {
  wide = printing ? 1000 : max(frame.clientWidth, 240);
  ROW = wide < 600 ? 24 : 20; // fingers need more than a mouse
  layout();
  // As high as what is wide enough to be seen.
  const seen = Object.values(rows).findLastIndex(row => row.reduce((n, box) => n + box.w, 0) > wide / 50) + 1;
  frame.style.maxHeight = S.fn || frame.className ? '' : `min(85vh, ${seen * ROW + 2}px)`;
  paint();
  paintTime();
  tell();
  const nr = round((height - frame.clientHeight) / ROW);
  $('cut').hidden = nr < 1 && !deeper;
  say('cut', (nr > 0 ? nr + ' of ' + height / ROW + ' rows are out of sight: show all' : 'All rows') + deeper);
  if (S.fn) frame.scrollTop = boxOf(root).y - frame.clientHeight / 3;
  else if (S.view === 'flame') frame.scrollTop = height;
  drawCrumbs();
}
let missing = ''; // what was asked for and is not in the selection
function arrange() {
  root = S.fn && names[+S.fn] !== undefined ? sandwich(+S.fn) : null;
  missing = S.fn && !root?.its.length ? nameOf(+S.fn) + ' has no samples here.' : '';
  if (!root || !root.its.length) { S.fn = ''; root = treeRoot(); }
  if (missing) save();
  zoomed = root; focus = null;
  for (const f of !S.zoom || S.fn ? [] : S.zoom.split('.')) {
    const kid = kidsOf(zoomed).find(k => k.f === +f);
    if (!kid) break;
    zoomed = kid;
  }
  showChoices();
  drawTime();
  draw();
  drawWhere();
  drawCode();
  drawTable();
}
function changed(push) {
  save(push);
  build();
  search();
  arrange();
  drawLegend();
  drawLedger();
  drawTitle();
}
function start() {
  readHash();
  document.title = host + ' – opd';
  $('about').append(...sides.map((side, s) => {
    const words = side.words.length ? side.words : two ? side.sessions.map(x => 'session:' + x.name) : [];
    const host = two && side.hosts.length && 'host ' + side.hosts.join(', ');
    const stacks = events.map(e => number(counts.reduce((n, x, i) => sideOf(i) === s &&
      context(countOf[i], 3) === e ? n + x : n, 0)) + ' samples of ' + eventWords(strings[e])).join(', ');
    const about = [words.join(' '), host, timesOf(side), stacks, side.us[0] && timeOf(side.us[0]) + ' of waits'];
    return rowOf(two ? SIDES[s] : '', about.filter(x => x).join(' · '));
  }));
  drawChoices();
  changed();
}
on(window, 'resize', () => { if (frame.clientWidth !== wide) draw(); });
on(window, 'hashchange popstate', () => { readHash(); changed(); });
on(dark, 'change', () => { draw(); drawLegend(); });
on(window, 'beforeprint afterprint', event => { printing = event.type === 'beforeprint'; draw(); drawLegend(); });
start();
