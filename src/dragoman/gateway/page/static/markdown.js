// Renders Markdown as DOM nodes. Each token becomes an element from a fixed list of kinds. No HTML
// is ever written, so model output can't inject markup.
import { Marked } from './vendor/marked.js';
import { h, html, Component, useState } from './ui.js';
import { CodeBlock } from './code.js';
import { Maths } from './maths.js';
import { Link, Picture } from './links.js';
import { decoded, visible } from './text.js';

const MAX_DEPTH = 40; // of nested quotes and lists
const MAX_ROWS = 200;
const MAX_COLUMNS = 60;
const MAX_FORMATTED = 300_000; // characters; longer texts are shown unformatted until the user asks

const INLINE = [
  [/^\$\$([^$]{1,5000}?)\$\$/, true],
  [/^\\\[([^]{1,5000}?)\\\]/, true],
  [/^\\\(([^]{1,5000}?)\\\)/, false],
  [/^\$(?![\s$\d])((?:\\.|[^$\\\n]){1,2000}?)(?<![\s\\])\$(?!\d)/, false],
  [/^\$(\d(?:\\.|[^$\\\n]){0,2000}?[\\^_={}](?:\\.|[^$\\\n]){0,2000}?)(?<![\s\\])\$(?!\d)/, false],
];
const BLOCK = /^ {0,3}(?:\$\$[ \t]*\n?([^]{1,20000}?)\n?[ \t]*\$\$|\\\[([^]{1,20000}?)\\\])[ \t]*(?:\n|$)/;

const reader = new Marked({
  gfm: true,
  extensions: [
    {
      name: 'maths', level: 'block',
      start: (source) => source.match(/(?:^|\n) {0,3}(?:\$\$|\\\[)/)?.index,
      tokenizer(source) {
        const found = BLOCK.exec(source);
        return found ? { type: 'maths', raw: found[0], text: found[1] ?? found[2], display: true } : undefined;
      },
    },
    {
      name: 'maths', level: 'inline',
      start: (source) => source.match(/\$|\\[([]/)?.index,
      tokenizer(source) {
        for (const [pattern, display] of INLINE) {
          const found = pattern.exec(source);
          if (found) return { type: 'maths', raw: found[0], text: found[1], display };
        }
        return undefined;
      },
    },
  ],
});

/** The block tokens of a text; null if it can't be parsed (nested too deeply). */
function blocks(text) {
  try { return reader.lexer(text); } catch { return null; }
}

export function Markdown({ text, live = false }) {
  const [anyway, setAnyway] = useState(false);
  if (text.length > MAX_FORMATTED && !anyway) {
    return html`<div class="md"><p class="note">Long text (${text.length.toLocaleString()} characters), shown without formatting.
      <button class="link" onClick=${() => setAnyway(true)}>Show formatted</button></p><pre class="plain-text">${visible(text)}</pre></div>`;
  }
  const tokens = blocks(text);
  if (!tokens) return html`<div class="md"><pre class="plain-text">${visible(text)}</pre></div>`;
  return html`<div class="md" dir="auto" data-held=${anyway || null}>${tokens.map((token, index) =>
    html`<${Block} key=${index} raw=${token.raw} token=${token} live=${live && index === tokens.length - 1} />`)}</div>`;
}

/** Re-renders only when its own source changes: while text streams in, most blocks don't change. */
class Block extends Component {
  shouldComponentUpdate(next) { return next.raw !== this.props.raw || next.live !== this.props.live; }
  render({ token, live }) { return block(token, 0, live); }
}

function all(tokens, depth, live) { return (tokens ?? []).map((token) => block(token, depth, live)); }

function block(token, depth, live) {
  if (depth > MAX_DEPTH) return visible(token.raw ?? '');
  switch (token.type) {
    case 'space': case 'def': return null;
    case 'hr': return h('hr');
    case 'code': return h(CodeBlock, { code: token.text, language: token.lang, live });
    case 'maths': return h(Maths, { source: token.text, display: true, live });
    case 'heading': return h(`h${Math.min(6, token.depth + 2)}`, null, inline(token.tokens, depth));
    case 'paragraph': return h('p', null, inline(token.tokens, depth));
    case 'blockquote': return h('blockquote', null, all(token.tokens, depth + 1, live));
    case 'list': return list(token, depth, live);
    case 'table': return h(Table, { token });
    case 'text': return token.tokens ? inline(token.tokens, depth) : words(token.text);
    case 'html': return token.pre || token.block ? h('p', { class: 'raw-html' }, visible(token.raw.trim())) : inlineOne(token, depth);
    case 'checkbox': return checkbox(token.checked);
    default: return inlineOne(token, depth);
  }
}

function list(token, depth, live) {
  const items = token.items.map((item) => {
    const box = item.task && !item.tokens.some(hasBox) ? checkbox(item.checked) : null;
    return h('li', { class: item.task ? 'task' : null }, box, all(item.tokens, depth + 1, live));
  });
  return token.ordered ? h('ol', { start: token.start || null }, items) : h('ul', null, items);
}

const hasBox = (token) => token.type === 'checkbox' || token.tokens?.some(hasBox);

function checkbox(checked) {
  return h('span', { role: 'img', class: 'box', 'aria-label': checked ? 'done' : 'to do' }, checked ? '☑ ' : '☐ ');
}

function Table({ token }) {
  const [most, setMost] = useState(MAX_ROWS);
  const columns = token.header.slice(0, MAX_COLUMNS);
  const cell = (tag) => (one, index) => h(tag, { class: token.align[index] ? `to-${token.align[index]}` : null }, inline(one.tokens, 0));
  const left = token.rows.length - most;
  return html`<div class="table" role="region" aria-label="Table" tabindex="0" data-held=${most > MAX_ROWS || null}><table>
    <thead><tr>${columns.map(cell('th'))}</tr></thead>
    <tbody>${token.rows.slice(0, most).map((row) => h('tr', null, row.slice(0, MAX_COLUMNS).map(cell('td'))))}</tbody>
  </table>
  ${left > 0 && html`<button class="link" onClick=${() => setMost(most + 2000)}>Show ${Math.min(left, 2000).toLocaleString()} more of ${token.rows.length.toLocaleString()} rows</button>`}
  ${token.header.length > MAX_COLUMNS && html`<p class="note">${token.header.length - MAX_COLUMNS} more columns are not shown.</p>`}
  </div>`;
}

// --- within a line

function inline(tokens, depth) {
  if (depth > MAX_DEPTH) return (tokens ?? []).map((token) => visible(token.raw ?? ''));
  return (tokens ?? []).map((token) => inlineOne(token, depth + 1));
}

function inlineOne(token, depth) {
  switch (token.type) {
    case 'text': return token.tokens ? inline(token.tokens, depth) : words(token.text);
    case 'escape': return visible(token.text);
    case 'strong': return h('strong', null, inline(token.tokens, depth));
    case 'em': return h('em', null, inline(token.tokens, depth));
    case 'del': return h('del', null, inline(token.tokens, depth));
    case 'codespan': return h('code', null, visible(token.text));
    case 'br': return h('br');
    case 'maths': return h(Maths, { source: token.text, display: token.display });
    case 'link': return h(Link, { href: decoded(token.href), text: plain(token.tokens) }, inline(token.tokens, depth));
    case 'image': return h(Picture, { href: decoded(token.href), text: token.text });
    case 'html': return /^<br\s*\/?>$/i.test(token.raw) ? h('br') : visible(token.raw);
    case 'checkbox': return checkbox(token.checked);
    default: return visible(token.raw ?? '');
  }
}

const words = (text) => visible(decoded(text));
const plain = (tokens) => (tokens ?? []).map((token) => (token.tokens ? plain(token.tokens) : decoded(token.text ?? token.raw ?? ''))).join('');
