// Markdown as blocks of tokens, reduced to what is shown and small enough to be shown at once.
import { Marked } from './vendor/marked.js';
import { FORMULAS } from './formulas.js';

const MAX_DEPTH = 40; // of nested quotes, lists and emphasis
const MOST_IN_BLOCK = 2000; // tokens; a larger block is shown as its source
const SHOWN_OF_CODE = 20_000; // characters, without being asked
const MOST_IN_CELL = 200;
const MOST_IN_TABLE = 30_000;
const MAX_COLUMNS = 60;
const ITEMS = 100; // of a list in one block
const MOST_FORMULAS = 300; // of a text; more are shown as their source
const REREAD = 3; // the last blocks, which may change as a text grows
const PER_CHARACTER = 1 / 20; // what a character weighs, in tokens
const WEIGHTS = { code: 15, maths: 12, image: 4, list_item: 2 }; // of tokens with more elements than others
const SAID = new Set(['text', 'code', 'codespan', 'maths', 'escape', 'image', 'link', 'list', 'br', 'hr', 'checkbox']);
const KEPT = ['type', 'text', 'lang', 'depth', 'ordered', 'start', 'task', 'checked', 'align', 'href', 'display', 'pre', 'block'];

const reader = new Marked({ gfm: true, breaks: true, extensions: FORMULAS }); // a newline is a line break, as in the terminal

class TooLarge extends Error {}

class Reducer {
  constructor() { this.formulas = 0; }

  /** What is shown of a token; counts down `left` with each. */
  token(one, left, depth = 0) {
    const own = depth > MAX_DEPTH ? one.raw : one.tokens || one.items ? '' : one.text ?? one.raw;
    if ((left.tokens -= (WEIGHTS[one.type] ?? 1) + Math.min(own.length, one.type === 'code' ? SHOWN_OF_CODE : own.length) * PER_CHARACTER) < 0) throw new TooLarge();
    if (depth > MAX_DEPTH) return { type: 'raw', raw: one.raw };
    const kept = {};
    for (const name of KEPT) if (one[name] !== undefined) kept[name] = one[name];
    if (one.type === 'maths' && (this.formulas += 1) > MOST_FORMULAS) return { type: 'raw', raw: one.raw };
    if (one.type === 'table') return this.table(one, kept, left);
    if (one.tokens) { kept.tokens = this.all(one.tokens, left, depth + 1); if (one.type !== 'image') delete kept.text; }
    else if (!SAID.has(one.type)) kept.raw = one.raw;
    if (one.items) kept.items = this.all(one.items, left, depth + 1);
    return kept;
  }

  all(tokens, left, depth) { return tokens.map((one) => this.token(one, left, depth)); }

  table(one, kept, left) {
    const room = { tokens: MOST_IN_TABLE };
    const row = (cells) => {
      const before = room.tokens;
      const shown = cells.slice(0, MAX_COLUMNS).map((cell) => this.cell(cell, room));
      return { cells: shown, size: before - room.tokens };
    };
    kept.header = row(one.header).cells;
    kept.columns = one.header.length;
    kept.rows = [];
    for (const cells of one.rows) {
      const made = row(cells);
      if (room.tokens < 0) break;
      kept.rows.push(made);
    }
    kept.total = one.rows.length;
    left.tokens -= Math.min(400, MOST_IN_TABLE - room.tokens);
    return kept;
  }

  cell({ text, tokens }, room) {
    const own = { tokens: MOST_IN_CELL };
    let made;
    try { made = this.all(tokens, own, 0); } catch { [made, own.tokens] = [[{ type: 'raw', raw: text.slice(0, 2000) }], 0]; }
    room.tokens -= 1 + MOST_IN_CELL - own.tokens;
    return made;
  }

  /** { raw, size, token }; without a token, the block is shown as its source. */
  block(one) {
    const left = { tokens: MOST_IN_BLOCK - 4 };
    let token = null;
    try { token = this.token(one, left); } catch (error) { if (!(error instanceof TooLarge)) throw error; }
    return { raw: one.raw, size: MOST_IN_BLOCK - Math.max(0, left.tokens), token };
  }
}

/** A list in pieces, each a list of its own. */
function pieces(token) {
  if (token.type !== 'list' || token.items.length <= ITEMS) return [token];
  const found = [];
  for (let from = 0; from < token.items.length; from += ITEMS) {
    const items = token.items.slice(from, from + ITEMS);
    found.push({ ...token, items, raw: items.map((one) => one.raw).join(''), start: token.ordered ? (token.start || 1) + from : token.start });
  }
  return found;
}

const normal = (text) => text.replace(/\r\n?/g, '\n');

/** The blocks of a text. */
export function blocks(text) {
  const reducer = new Reducer();
  return reader.lexer(text).flatMap(pieces).filter((one) => one.type !== 'space' && one.type !== 'def').map((one) => reducer.block(one));
}

/** The blocks of a text that grows; only its last blocks are read again. */
export class Growing {
  constructor() { this.text = ''; this.begun = []; }

  /** { kept, blocks }: how many of the blocks stay, and those that follow. */
  read(given) {
    const text = normal(given);
    if (!text.startsWith(this.text)) this.begun = [];
    this.text = text;
    const stable = this.begun.slice(0, -REREAD);
    const from = stable.reduce((all, one) => all + one.length, 0);
    const tokens = reader.lexer(text.slice(from));
    const isWhole = tokens.reduce((all, one) => all + one.raw.length, from) === text.length;
    const reducer = new Reducer();
    const made = tokens.map((token) => ({ length: token.raw.length, blocks: token.type === 'space' || token.type === 'def' ? [] : pieces(token).map((one) => reducer.block(one)) }));
    const kept = stable.reduce((all, one) => all + one.count, 0);
    this.begun = isWhole ? [...stable, ...made.map(({ length, blocks: own }) => ({ length, count: own.length }))] : [];
    return { kept, blocks: made.flatMap((one) => one.blocks) };
  }
}
