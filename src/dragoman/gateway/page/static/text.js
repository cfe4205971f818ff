// Text for display: decodes HTML entities and makes invisible control characters visible.
import { h } from './ui.js';
import { INVISIBLE } from './invisible.js';

const NAMED = {
  amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', copy: '©', reg: '®', trade: '™', deg: '°',
  ndash: '–', mdash: '—', hellip: '…', middot: '·', bull: '•', times: '×', divide: '÷', plusmn: '±', le: '≤', ge: '≥',
  ne: '≠', larr: '←', rarr: '→', uarr: '↑', darr: '↓', lsquo: '‘', rsquo: '’', ldquo: '“', rdquo: '”', laquo: '«',
  raquo: '»', euro: '€', pound: '£', sect: '§', para: '¶', frac12: '½', micro: 'µ', infin: '∞', colon: ':', tab: '\t',
  newline: '\n', lpar: '(', rpar: ')', sol: '/', ensp: '\u2002', emsp: '\u2003', thinsp: '\u2009', zwj: '\u200d', zwnj: '\u200c',
};

export function decoded(text) {
  if (!text.includes('&')) return text;
  return text.replace(/&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|([a-z][a-z0-9]{1,31}));/gi, (whole, hex, decimal, name) => {
    if (name) return NAMED[name] ?? NAMED[name.toLowerCase()] ?? whole;
    const point = hex ? parseInt(hex, 16) : Number(decimal);
    return point === 0 || point > 0x10ffff || (point >= 0xd800 && point < 0xe000) ? '\ufffd' : String.fromCodePoint(point);
  });
}

const MAX_WORD = 500; // characters without a space
const MAX_MARKED = 300; // runs marked by an element each; the rest are spelled out

const named = (found) => {
  const all = [...found].map((one) => `U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`);
  return all.length > 3 ? `${all[0]} … ${all.at(-1)}, ${all.length} characters` : all.join(' ');
};

/** Calls `plain` and `hidden` with the pieces of a text: what can be shown, and runs of invisible characters. */
function pieces(text, plain, hidden) {
  let [from, start, end] = [0, -1, -1];
  const close = () => { plain(text.slice(from, start)); hidden(text.slice(start, end)); from = end; };
  for (const { index, 0: { length } } of text.matchAll(INVISIBLE)) {
    if (index === end) { end += length; continue; }
    if (end > 0) close();
    [start, end] = [index, index + length];
  }
  if (end > 0) close();
  plain(text.slice(from));
}

/** The text, with characters that hide or reorder it replaced by their names; where no element can be. */
export function spelled(text) {
  let shown = '';
  pieces(text, (piece) => { shown += piece; }, (run) => { shown += `[${named(run)}]`; });
  return shown;
}

/** The text with places to break in words without end: to lay out a line of joined letters takes their number squared. */
function breakable(text) {
  if (text.length <= MAX_WORD) return text;
  const shown = [];
  let from = 0;
  for (const { index, 0: { length } } of text.matchAll(/\S+/g)) {
    for (let at = index + MAX_WORD; at < index + length; at += MAX_WORD) {
      const end = /[\ud800-\udbff]/.test(text[at - 1]) ? at - 1 : at;
      shown.push(text.slice(from, end), h('wbr'));
      from = end;
    }
  }
  return shown.length ? [...shown, text.slice(from)] : text;
}

/** The text, with characters that hide or reorder it replaced by visible markers. */
export function visible(text) {
  if (text.search(INVISIBLE) < 0) return breakable(text);
  const shown = [];
  let marked = 0;
  const add = (piece) => { if (typeof shown.at(-1) === 'string') shown[shown.length - 1] += piece; else shown.push(piece); };
  pieces(text, add, (run) => {
    if ((marked += 1) > MAX_MARKED) add(`[${named(run)}]`);
    else shown.push(h('span', { class: 'control', title: `Invisible control character ${named(run)}` }, named(run)));
  });
  return shown.map((piece) => (typeof piece === 'string' ? breakable(piece) : piece));
}
