// The Lens view: one conversation or request body in two dialects, side by side, with findings inline.
import { ask, askExactly } from './api.js';
import { brief, count, plural } from './format.js';
import { Icon } from './icons.js';
import { JsonLines, Finding, at, findingsOf, isWithin, lines, normal, placed, parent } from './json_view.js';
import { gateway, lensDraft, lensSource, place, restate, address } from './state.js';
import { useDrop } from './talk.js';
import { visible } from './text.js';
import { html, useState, useEffect, useMemo, useRef, useStore, Button, Menu, Select, Dialog, Loading, toast, copy, failed } from './ui.js';

// A line diff: the lines of each text that the other lacks (longest common subsequence).

const MAX_CELLS = 400_000; // of the table; larger inputs are compared as sets of lines

export function differences(left, right) {
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start += 1;
  let end = 0;
  while (end < left.length - start && end < right.length - start && left.at(-1 - end) === right.at(-1 - end)) end += 1;
  const a = left.slice(start, left.length - end);
  const b = right.slice(start, right.length - end);
  const found = a.length * b.length > MAX_CELLS ? asSets(a, b) : common(a, b);
  return found.map((set) => new Set([...set].map((index) => index + start)));
}

function asSets(a, b) {
  const [inA, inB] = [new Set(a), new Set(b)];
  const missing = (all, other) => new Set(all.map((line, index) => (other.has(line) ? -1 : index)).filter((index) => index >= 0));
  return [missing(a, inB), missing(b, inA)];
}

function common(a, b) {
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) for (let j = b.length - 1; j >= 0; j -= 1) {
    table[i * width + j] = a[i] === b[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
  }
  const [onlyA, onlyB] = [new Set(), new Set()];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) { i += 1; j += 1; }
    else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) { onlyA.add(i); i += 1; }
    else { onlyB.add(j); j += 1; }
  }
  for (; i < a.length; i += 1) onlyA.add(i);
  for (; j < b.length; j += 1) onlyB.add(j);
  return [onlyA, onlyB];
}

const PAGE = 40; // rows rendered at first, and added each time the user nears the end

export function Lens() {
  const { info } = useStore(gateway);
  const source = useStore(lensSource);
  if (!info) return html`<${Loading} what="the lens" />`;
  return source ? html`<${Comparison} info=${info} source=${source} />` : html`<${Choose} info=${info} />`;
}

/** The part of the request that holds content; it is never put into a URL. */
const wanted = (source) => (source.conversation ? { conversation: source.conversation } : { body: source.text, source: source.dialect || undefined });

function Choose({ info }) {
  const { text, dialect } = useStore(lensDraft);
  const [recent, setRecent] = useState([]);
  useEffect(() => { ask('conversations', { query: { limit: 8 } }).then((found) => setRecent(found.items)).catch(() => {}); }, []);
  const look = (given) => { lensDraft.patch({ text: given }); lensSource.set({ text: given, dialect, title: 'Pasted text' }); };
  const drop = useDrop((files) => files[0].text().then(look).catch(() => toast('The file can’t be read.', 'error')));
  return html`<div class=${`view scrolls ${drop.over ? 'dropping' : ''}`} ...${drop.handlers}><div class="paste">
    <h1>The lens</h1><p class="muted">Compare how a conversation or request body is sent to any two providers, side by side, with differences, losses, repairs and rule violations marked.</p>
    <label class="field"><span>Request body, response or stream, in any dialect</span><textarea data-search spellcheck="false" placeholder='{"model": "…", "messages": […]}' value=${text} onInput=${(event) => lensDraft.patch({ text: event.target.value })}></textarea></label>
    <div class="row"><${Select} label="Dialect" value=${dialect} onChange=${(chosen) => lensDraft.patch({ dialect: chosen })} options=${[{ value: '', text: 'detect automatically' }, ...info.dialects.map((one) => ({ value: one, text: one }))]} />
      <span class="grow"></span><${Button} kind="primary" text="Compare" disabled=${!text.trim()} onClick=${() => look(text)} /></div>
    ${recent.length > 0 && html`<h2>Or choose a conversation</h2><ul class="recent-list">${recent.map((one) => html`<li key=${one.id}><button class="link" onClick=${() => lensSource.set({ conversation: one.id, title: one.title || one.first_line })}><span>${visible(one.title || one.first_line || 'Untitled')}</span></button></li>`)}</ul>`}
  </div></div>`;
}

// --- the comparison

/** The choice stored in the URL: dialects and filters, never content. */
function useChoice(info) {
  const { query } = useStore(place);
  const targets = info.targets.map((one) => one.id);
  const known = (id, otherwise) => (targets.includes(id) ? id : otherwise);
  const choice = { left: known(query.left, targets[0]), right: known(query.right, targets[1] ?? targets[0]), rules: (query.rules ?? '').split(',').filter(Boolean), only: query.only ?? '' };
  const choose = (change) => { const next = { ...choice, ...change }; restate('lens', '', { left: next.left, right: next.right, rules: next.rules.join(','), only: next.only }); };
  return [choice, choose];
}

function Comparison({ info, source }) {
  const [choice, choose] = useChoice(info);
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const [showRules, setShowRules] = useState(null);
  useEffect(() => {
    const control = new AbortController();
    setError(null);
    askExactly('lens', { method: 'POST', body: { ...wanted(source), left: choice.left, right: choice.right }, signal: control.signal })
      .then(setFound).catch((problem) => { if (problem.name !== 'AbortError') { setError(problem.message); setFound(null); } });
    return () => control.abort();
  }, [source, choice.left, choice.right]);
  const targets = info.targets.map((one) => ({ value: one.id, text: brief(one.label ?? one.id) }));
  const link = () => copy(new URL(address('lens', '', { left: choice.left, right: choice.right, rules: choice.rules.join(','), only: choice.only }), location.href).href).then((done) => done && toast('Link copied. It contains the dialects and filters, not the conversation.'));
  return html`<div class="view">
    <div class="toolbar">
      <h1 class="clip">${visible(source.title || 'Conversation')}</h1>
      <${Button} text="Change …" onClick=${() => lensSource.set(null)} label="Choose another conversation or request body" />
      <span class="grow"></span>
      <${Select} label="Left" hideLabel value=${choice.left} options=${targets} onChange=${(left) => choose({ left })} aria-label="Left target" />
      <${Button} kind="plain" icon="swap" label="Swap sides" onClick=${() => choose({ left: choice.right, right: choice.left })} />
      <${Select} label="Right" hideLabel value=${choice.right} options=${targets} onChange=${(right) => choose({ right })} aria-label="Right target" />
      <${Button} kind="plain" icon="link" label="Copy a link to these dialects and filters" onClick=${link} />
    </div>
    ${error && html`<div class="paste"><div class="notice bad" role="alert"><${Icon} name="warn" /><span>${error}</span></div></div>`}
    ${!found && !error && html`<${Loading} what="the comparison" />`}
    ${found && html`<${Sides} found=${found} choice=${choice} choose=${choose} source=${source} onRules=${setShowRules} />`}
    ${showRules && html`<${Rules} target=${showRules} choice=${choice} choose=${choose} onClose=${() => setShowRules(null)} />`}
  </div>`;
}

function Sides({ found, choice, choose, source, onRules }) {
  const sides = useMemo(() => ({ left: prepared(found.left), right: prepared(found.right) }), [found]);
  const rows = useMemo(() => arranged(found, sides), [found, sides]);
  const counts = useMemo(() => ruleCounts(sides), [sides]);
  const toggle = (rule) => choose({ rules: choice.rules.includes(rule) ? choice.rules.filter((one) => one !== rule) : [...choice.rules, rule] });
  const shown = rows.filter((row) => (choice.only !== 'differs' || row.differs) && (choice.only !== 'findings' || row.findings.length) && (!choice.rules.length || row.findings.some((one) => choice.rules.includes(ruleOf(one)))));
  const box = useRef(null);
  const [most, setMost] = useState(PAGE);
  const more = () => { const { scrollTop, scrollHeight, clientHeight } = box.current; if (scrollHeight - scrollTop - clientHeight < 1200 && most < shown.length) setMost(most + PAGE); };
  const chip = (value, text) => html`<button class="chip" aria-pressed=${choice.only === value} onClick=${() => choose({ only: choice.only === value ? '' : value })}>${text}</button>`;
  return html`<div class="summary" role="group" aria-label="Filters">
      ${chip('differs', `${plural(rows.filter((row) => row.differs).length, 'row differs', 'rows differ')}`)}
      ${chip('findings', plural(sides.left.findings.length + sides.right.findings.length, 'finding'))}
      ${[...counts].map(([rule, number]) => html`<button key=${rule} class="chip" aria-pressed=${choice.rules.includes(rule)} onClick=${() => toggle(rule)}>${rule}${number > 1 ? ` × ${number}` : ''}</button>`)}
      ${choice.rules.filter((rule) => !counts.has(rule)).map((rule) => html`<button key=${rule} class="chip" aria-pressed="true" onClick=${() => toggle(rule)}>${rule} × 0</button>`)}
      <span class="grow"></span><span class="muted">source dialect: ${found.source}</span>
    </div>
    ${found.is_cut && html`<p class="notice warn" role="note"><${Icon} name="warn" /><span>Only the latest ${count(found.rows.length)} messages of this conversation are compared.</span></p>`}
    ${found.damaged > 0 && html`<p class="notice warn" role="note"><${Icon} name="warn" /><span>${plural(found.damaged, 'message')} of this conversation can’t be read and ${found.damaged === 1 ? 'is' : 'are'} not compared.</span></p>`}
    <div class="lens-rows" ref=${box} onScroll=${more} tabindex="0" role="region" aria-label="Both sides">
      <div class="lens-heads"><span></span>${['left', 'right'].map((side) => html`<${Head} key=${side} side=${side} view=${found[side]} choice=${choice} source=${source} onRules=${onRules} />`)}</div>
      ${!shown.length && html`<p class="loading">No rows match the filters.</p>`}
      ${shown.slice(0, most).map((row) => html`<${Row} key=${row.key} row=${row} found=${found} rules=${choice.rules} />`)}
    </div>`;
}

function Head({ side, view, choice, source, onRules }) {
  const snippet = (form) => () => ask('snippet', { method: 'POST', body: { ...wanted(source), left: choice.left, right: choice.right, side, form } }).then(({ text }) => copy(text)).then((done) => done && toast('Copied.')).catch(failed);
  return html`<div class="side-name"><strong>${view.target}</strong><span class="muted">${view.dialect !== view.target && `${view.dialect} `}${view.path && html`<code>${view.path}</code>`}</span><span class="acts">
    <${Button} kind="plain small" text="Rules" label=${`Rules for ${view.target}`} onClick=${() => onRules(view.target)} />
    <${Menu} icon="copy" kind="plain small" label=${`Copy the ${side} side`} items=${[{ text: 'Copy as JSON', action: snippet('json') }, { text: 'Copy as curl', action: snippet('curl') }, { text: 'Copy as Python', action: snippet('python') }]} />
  </span></div>`;
}

function Row({ row, found, rules }) {
  const isShown = (one) => !rules.length || rules.includes(ruleOf(one));
  return html`<section class="lens-row" aria-label=${row.title}><div><h2>${row.title}</h2>${row.differs && html`<span class="tag">differs</span>`}</div>
    ${['left', 'right'].map((side) => html`<${Cell} key=${side} label=${found[side].target} pieces=${row[side]} loose=${row.loose[side].filter(isShown)} isShown=${isShown} />`)}</section>`;
}

function Cell({ label, pieces, loose, isShown }) {
  return html`<div class="lens-cell"><div class="side-label">${label}</div>
    ${pieces.map((piece) => html`<${JsonLines} key=${piece.key} all=${piece.lines} marks=${filtered(piece.marks, isShown)} differing=${piece.differing} />`)}
    ${loose.map((finding) => html`<${Finding} finding=${finding} />`)}
    ${!pieces.length && !loose.length && html`<div class="nothing">Nothing on this side</div>`}</div>`;
}

function filtered(marks, isShown) {
  const kept = new Map();
  for (const [key, all] of marks) { const own = all.filter(isShown); if (own.length) kept.set(key, own); }
  return kept;
}

const ruleOf = (finding) => finding.rule || (finding.kind === 'loss' ? 'losses' : '');
const ruleCounts = (sides) => [...sides.left.findings, ...sides.right.findings].reduce((counts, one) => { const rule = ruleOf(one); return rule ? counts.set(rule, (counts.get(rule) ?? 0) + 1) : counts; }, new Map());
const prepared = (side) => ({ body: side.body, findings: findingsOf(side), dialect: side.dialect });

/** The rows in display order: first the fields that belong to no message, then the messages. */
function arranged(found, sides) {
  const covered = { left: new Set(), right: new Set() };
  for (const row of found.rows) for (const side of ['left', 'right']) for (const path of row[side] ?? []) covered[side].add(normal(path));
  const settings = { key: 'request', title: 'Request', message: null, left: [], right: [] };
  const own = found.rows.map((row, index) => ({
    key: index, title: `${row.message === null || row.message === undefined ? '' : `${row.message + 1} · `}${row.role ?? 'message'}`, message: row.message, differs: row.differs,
    left: (row.left ?? []).map((path) => piece(sides.left.body, path)), right: (row.right ?? []).map((path) => piece(sides.right.body, path)),
  }));
  const between = new Map(); // added items, by the row that they follow
  for (const side of ['left', 'right']) for (const one of rest(sides[side], covered[side])) {
    const row = own.findLastIndex((each) => each[side].some((shown) => precedes(shown.base, one.base)));
    if (row < 0) { settings[side].push(one); continue; }
    if (!between.has(row)) between.set(row, { key: `after ${row}`, title: 'added', left: [], right: [] });
    between.get(row)[side].push(one);
  }
  for (const row of between.values()) row.differs = !row.left.length || !row.right.length;
  const rows = [settings, ...own.flatMap((row, index) => (between.has(index) ? [row, between.get(index)] : [row]))].map((row) => ({ ...row, loose: { left: [], right: [] }, findings: [] }));
  for (const side of ['left', 'right']) mark(rows, side, sides[side].findings);
  const isSame = sides.left.dialect === sides.right.dialect;
  for (const row of rows) if (isSame || row.message === null) compared(row, isSame);
  return rows;
}

const piece = (body, path) => ({ key: path, base: normal(path), lines: lines(at(body, path), normal(path)), marks: new Map() });

/** Whether one path is an earlier item of the same list as the other. */
function precedes(one, other) {
  const [a, b] = [one, other].map((key) => /^(\/[^/[]*)\[(\d+)\]/.exec(key));
  return Boolean(a && b && a[1] === b[1] && Number(a[2]) < Number(b[2]));
}

/** The fields of the body, and items of its lists, that no row covers; one piece each. */
function rest(side, covered) {
  const body = side.body && typeof side.body === 'object' ? side.body : {};
  const roots = new Set([...covered].map((key) => /^\/[^/[]*/.exec(key)?.[0]));
  return Object.entries(body).flatMap(([name, value]) => {
    const base = `/${name}`;
    if (!roots.has(base)) return [{ key: name, base, lines: lines(value, base, name), marks: new Map() }];
    if (!Array.isArray(value)) return [];
    return value.map((one, index) => [`${base}[${index}]`, one]).filter(([key]) => !covered.has(key) && ![...covered].some((own) => isWithin(own, key)))
      .map(([key, one]) => ({ key, base: key, lines: lines(one, key), marks: new Map() }));
  });
}

/** Attaches each finding to the piece that contains its path, else to its message, else to the first row. */
function mark(rows, side, findings) {
  for (const finding of findings) {
    let target = null;
    for (let key = normal(finding.wire_path ?? ''); key && !target; key = parent(key)) target = rows.map((row) => ({ row, piece: row[side].find((one) => isWithin(key, one.base)) })).find((one) => one.piece);
    if (target) {
      for (const [key, all] of placed([finding], target.piece.lines)) target.piece.marks.set(key, [...(target.piece.marks.get(key) ?? []), ...all]);
      target.row.findings.push(finding);
    } else {
      const number = /^messages\[(\d+)\]/.exec(finding.path ?? '')?.[1];
      const row = rows.find((one) => number !== undefined && one.message === Number(number)) ?? rows[0];
      row.loose[side].push(finding);
      row.findings.push(finding);
    }
  }
}

/** Marks the lines that differ from the other side; the request's fields are compared by name and value. */
function compared(row, isSame) {
  const sides = [row.left, row.right].map((all) => all.flatMap((one) => one.lines.map((line) => line.pieces.map(([, text]) => text).join('').replace(/,$/, ''))));
  const [left, right] = differences(sides[0], sides[1]);
  if (row.differs === undefined) row.differs = left.size + right.size > 0;
  if (!isSame && row.message !== null) return;
  for (const [side, set] of [['left', left], ['right', right]]) {
    let from = 0;
    for (const one of row[side]) { one.differing = new Set([...set].filter((index) => index >= from && index < from + one.lines.length).map((index) => index - from)); from += one.lines.length; }
  }
}

function Rules({ target, choice, choose, onClose }) {
  const [rules, setRules] = useState(null);
  const [filter, setFilter] = useState('');
  useEffect(() => { ask('rules', { query: { target } }).then((found) => setRules(found.rules)).catch((error) => { failed(error); onClose(); }); }, [target]);
  const shown = (rules ?? []).filter((rule) => `${rule.id} ${rule.text}`.toLowerCase().includes(filter.toLowerCase()));
  const toggle = (id) => choose({ rules: choice.rules.includes(id) ? choice.rules.filter((one) => one !== id) : [...choice.rules, id] });
  return html`<${Dialog} wide title=${`Rules for ${target}`} onClose=${onClose}>
    <label class="field"><span>Filter</span><input autofocus value=${filter} onInput=${(event) => setFilter(event.target.value)} /></label>
    ${!rules && html`<${Loading} what="the rules" />`}
    <ul class="rules-list">${shown.map((rule, index) => html`<li key=${index}><button class="chip" aria-pressed=${choice.rules.includes(rule.id)} onClick=${() => toggle(rule.id)}>${rule.id}</button><span>${rule.text}${rule.evidence && html` <span class="muted">Evidence: ${rule.evidence}</span>`}</span><span class=${`tag ${rule.severity === 'error' ? 'bad' : 'warn'}`}>${rule.severity}</span></li>`)}</ul>
  </${Dialog}>`;
}
