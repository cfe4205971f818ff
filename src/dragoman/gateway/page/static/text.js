// Text for display: decodes HTML entities and makes invisible control characters visible.
import { h } from './ui.js';

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

// Bidirectional overrides and isolates, tag characters that hide text, and control characters.
const HIDDEN = /[\u202a-\u202e\u2066-\u2069\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]|[\u{e0000}-\u{e007f}]+/gu;

const named = (found) => `U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`;

/** The text, with characters that hide or reorder it replaced by their names; where no element can be. */
export const spelled = (text) => text.replace(HIDDEN, (found) => `[${named(found)}]`);

/** The text, with characters that hide or reorder it replaced by visible markers. */
export function visible(text) {
  if (text.search(HIDDEN) < 0) return text;
  const pieces = [];
  let from = 0;
  for (const found of text.matchAll(HIDDEN)) {
    const point = named(found[0]);
    pieces.push(text.slice(from, found.index), h('span', { class: 'control', title: `Invisible control character ${point}` }, point));
    from = found.index + found[0].length;
  }
  pieces.push(text.slice(from));
  return pieces;
}
