// Shows JSON as lines that know their path, with findings inline.
import { html, memo, useState, Some } from './ui.js';
import { Plain } from './plain.js';
import { visible } from './text.js';

const LONG = 600; // longer strings are truncated
const MOST_LINES = 500; // of a value at a time
const WORD = { loss: 'Loss', repair: 'Repair', violation: 'Rule violation' };

/** Splits a path such as `messages[3].content[0]["a b"]` into its keys and indexes. */
export function steps(path) {
  const found = [];
  for (const part of (path ?? '').replace(/^\$\.?/, '').matchAll(/\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.[\]]+)/g)) found.push(part[1] ?? (part[2] !== undefined ? Number(part[2]) : part[3]));
  return found;
}
const joined = (all) => all.map((step) => (typeof step === 'number' ? `[${step}]` : `/${step}`)).join('');
/** Normalises a path, so that paths can be compared. */
export const normal = (path) => joined(steps(path));
export const parent = (key) => key.replace(/(?:\[\d+\]|\/[^/[]*)$/, '');
export const isWithin = (key, whole) => whole === '' || key === whole || key.startsWith(`${whole}/`) || key.startsWith(`${whole}[`);

export function at(value, path) {
  let found = value;
  for (const step of steps(path)) { if (found === null || typeof found !== 'object') return undefined; found = found[step]; }
  return found;
}

/** The lines of a value: { depth, key (path), pieces: [[class, text]…] } */
export function lines(value, key = '', label = null, depth = 0, comma = false, out = []) {
  const start = label === null ? [] : [['j-key', JSON.stringify(label)], ['', ': ']];
  const end = comma ? [['', ',']] : [];
  if (value !== null && typeof value === 'object' && !JSON.isRawJSON?.(value)) {
    const isList = Array.isArray(value);
    const entries = isList ? value.map((one, index) => [index, one]) : Object.entries(value);
    const [open, close] = isList ? '[]' : '{}';
    if (!entries.length) { out.push({ depth, key, pieces: [...start, ['', open + close], ...end] }); return out; }
    out.push({ depth, key, pieces: [...start, ['', open]] });
    entries.forEach(([name, one], index) => lines(one, isList ? `${key}[${name}]` : `${key}/${name}`, isList ? null : name, depth + 1, index < entries.length - 1, out));
    out.push({ depth, key, isEnd: true, pieces: [['', close], ...end] });
    return out;
  }
  const kind = typeof value === 'string' ? 'j-text' : typeof value === 'number' || value?.rawJSON ? 'j-number' : 'j-word';
  out.push({ depth, key, pieces: [...start, [kind, JSON.stringify(value) ?? 'null'], ...end] });
  return out;
}

/** Groups findings by line: the line of their path, or of its nearest existing ancestor. */
export function placed(findings, all) {
  const known = new Set(all.map((line) => line.key));
  const found = new Map();
  for (const finding of findings) {
    let key = normal(finding.wire_path ?? finding.path);
    while (key && !known.has(key)) key = parent(key);
    if (known.has(key)) found.set(key, [...(found.get(key) ?? []), finding]);
  }
  return found;
}

function Piece({ kind, text }) {
  const [open, setOpen] = useState(false);
  if (text.length <= LONG || open) return html`<span class=${kind}><${Plain} text=${text} /></span>`;
  return html`<span class=${kind}>${visible(text.slice(0, LONG))}<button class="link" onClick=${() => setOpen(true)}>… ${(text.length - LONG).toLocaleString()} more characters</button></span>`;
}

export function Finding({ finding }) {
  return html`<div class=${`finding ${finding.kind} ${finding.severity ?? ''}`} role="note">
    <strong>${WORD[finding.kind] ?? finding.kind}${finding.rule ? ` ${finding.rule}` : ''}${finding.action ? `: ${finding.action}` : ''}</strong>
    ${finding.path && !finding.wire_path && html`<code>${visible(finding.path)}</code>`}
    <span>${visible(finding.message ?? finding.reason ?? '')}</span>
    ${finding.text && html`<q>${visible(finding.text)}</q>`}
  </div>`;
}

/** `differing`: the set of line numbers that differ from the other side. */
export const JsonLines = memo(({ all, marks, differing, shift = 0 }) => html`<div class="json"><${Some} all=${all} most=${MOST_LINES} what="lines" each=${(line, index) => {
  const own = line.isEnd ? null : marks?.get(line.key);
  return html`<div key=${index} class=${`line ${own ? `marked ${own[0].kind} ${own[0].severity ?? ''}` : ''} ${differing?.has(index) ? 'differs' : ''}`} style=${{ paddingLeft: `${(line.depth - shift) * 1.25 + 0.75}em` }}>
    ${line.pieces.map(([kind, text], number) => (text.length > LONG ? html`<${Piece} key=${number} kind=${kind} text=${text} />` : kind ? html`<span key=${number} class=${kind}>${visible(text)}</span>` : text))}
    ${own?.map((finding) => html`<${Finding} finding=${finding} />`)}</div>`;
}} /></div>`);

export const findingsOf = (side) => [
  ...(side.violations ?? []).map((one) => ({ ...one, kind: 'violation' })),
  ...(side.repairs ?? []).map((one) => ({ ...one, kind: 'repair' })),
  ...(side.losses ?? []).map((one) => ({ ...one, kind: 'loss' })),
];
