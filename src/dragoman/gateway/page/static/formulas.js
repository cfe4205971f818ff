// Finds formulas in Markdown, in time that grows with the length of a text: an end that was found
// once is remembered, and every other look ahead is bounded.

const [MOST, MOST_IN_LINE, MOST_IN_BLOCK] = [5000, 2000, 20_000]; // characters of a formula
const TRIES = 20; // for the end, or the beginning, of a formula in a block
const WINDOW = 200; // characters that are searched for the next formula of a line at a time
const ENDS_LINE = /[ \t]*(?:\n|$)/y;
const NEEDS_MATHS = /[\\^_={}]/; // after an amount: $5 and 6$ is no formula

const ends = new WeakMap(); // by the tokens of a line: where the next ends are, counted from the end of the line

/** The next `close` after `from`; `line` is the same for all later pieces of a line. */
function next(source, close, from, line) {
  if (!ends.has(line)) ends.set(line, {});
  const known = ends.get(line);
  if (known[close] === undefined || (known[close] > 0 && source.length - known[close] < from)) {
    const found = source.indexOf(close, from);
    known[close] = found < 0 ? 0 : source.length - found;
  }
  return known[close] ? source.length - known[close] : -1;
}

function between(source, open, close, line) {
  const end = next(source, close, open.length + 1, line);
  if (end < 0 || end > open.length + MOST) return null;
  const text = source.slice(open.length, end);
  return { type: 'maths', raw: open + text + close, text, display: open !== '\\(' };
}

function betweenDollars(source) {
  let at = 1;
  while (at <= MOST_IN_LINE && at < source.length && source[at] !== '$') {
    if (source[at] === '\n' || (source[at] === '\\' && source[at + 1] === '\n')) return null;
    at += source[at] === '\\' ? 2 : 1;
  }
  const text = source.slice(1, at);
  if (source[at] !== '$' || !text || /^\s|[\s\\]$/.test(text[0] + text.at(-1)) || /\d/.test(source[at + 1] ?? '')) return null;
  if (/\d/.test(text[0]) && !NEEDS_MATHS.test(text.slice(1))) return null;
  return { type: 'maths', raw: source.slice(0, at + 1), text, display: false };
}

/** The formula that a piece of a line begins with; of a row of dollars, what can't begin one. */
function inLine(source, line) {
  if (source.startsWith('\\[')) return between(source, '\\[', '\\]', line);
  if (source.startsWith('\\(')) return between(source, '\\(', '\\)', line);
  if (source[0] !== '$') return null;
  if (source[1] !== '$') return betweenDollars(source);
  const found = between(source, '$$', '$$', line);
  if (found && !found.text.includes('$')) return found;
  const row = /^\$+/.exec(source)[0].length - 2;
  return row > 0 ? { type: 'text', raw: '$'.repeat(row), text: '$'.repeat(row) } : null;
}

/** The formula that a block begins with. */
function inBlock(source) {
  const open = /^ {0,3}(?:\$\$|\\\[)/.exec(source)?.[0];
  if (!open) return null;
  const close = open.endsWith('$') ? '$$' : '\\]';
  const all = source.slice(0, open.length + MOST_IN_BLOCK);
  let end = open.length;
  for (let turn = 0; turn < TRIES; turn += 1) {
    end = all.indexOf(close, end + 1);
    if (end < 0) return null;
    ENDS_LINE.lastIndex = end + 2;
    const rest = ENDS_LINE.exec(all);
    const text = all.slice(open.length, end).trim();
    if (rest && text) return { type: 'maths', raw: all.slice(0, ENDS_LINE.lastIndex), text, display: true };
  }
  return null;
}

/** Where the first block with a formula interrupts a paragraph. */
function startInBlock(source) {
  const end = source.indexOf('\n\n');
  let turn = 0;
  for (const { index } of (end < 0 ? source : source.slice(0, end)).matchAll(/\n {0,3}(?:\$\$|\\\[)/g)) {
    if (inBlock(source.slice(index + 1))) return index;
    if ((turn += 1) === TRIES) break;
  }
  return undefined;
}

/** Where the next formula of a line may begin, or where to look again. */
function startInLine(source) {
  const near = source.slice(0, WINDOW);
  const found = near.search(/\$|\\[([]/);
  if (found >= 0 || near.length === source.length) return found < 0 ? undefined : found;
  for (let at = WINDOW - 2; at > 0; at -= 1) if (near[at] === ' ' && /\w/.test(near[at - 1]) && /\w/.test(near[at + 1])) return at;
  return undefined;
}

export const FORMULAS = [
  { name: 'maths', level: 'block', start: startInBlock, tokenizer: (source) => inBlock(source) ?? undefined },
  { name: 'maths', level: 'inline', start: startInLine, tokenizer: (source, line) => inLine(source, line) ?? undefined },
];
