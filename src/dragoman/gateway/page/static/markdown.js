// Renders Markdown as DOM nodes. Each token becomes an element from a fixed list of kinds. No HTML
// is ever written, so model output can't inject markup. The tokens come from the worker.
import { h, html, Component, useEffect, useRef, useState } from './ui.js';
import { CodeBlock, Maths } from './rendering.js';
import { Link, Picture } from './links.js';
import { Plain } from './plain.js';
import { decoded, visible } from './text.js';
import { known, read, work } from './work.js';

const MAX_ROWS = 200;
const MAX_CELLS = 1200; // tokens of the rows that are shown at a time
const MAX_COLUMNS = 60;
const MAX_FORMATTED = 300_000; // characters; longer texts are shown unformatted until the user asks
const [LEAST, MOST] = [50, 1000]; // what is drawn in a frame, in tokens; see `size` in lexer.js
const [SLOW, FAST] = [60, 30]; // milliseconds of a frame in which less, or more, is drawn in the next one
const UNASKED = 20_000; // what is drawn without being asked for
const PATIENCE = 400; // milliseconds that a conversation waits for its texts

/** Waits a little until texts can be shown formatted at once. */
export function prepared(texts) {
  const reading = texts.filter((text) => text && text.length <= MAX_FORMATTED).map((text) => read('markdown', text));
  return Promise.race([Promise.all(reading), new Promise((done) => { setTimeout(done, PATIENCE); })]);
}

/** How much to draw in a frame, as this machine can. */
const pace = {
  step: 300,
  last: null,
  /** The next step, in a frame that follows one in which a step was drawn. */
  next() {
    const now = document.timeline.currentTime; // the same throughout a frame
    const took = this.last === null || now === this.last ? SLOW : now - this.last;
    this.last = now;
    if (took > SLOW) this.step = Math.max(LEAST, this.step / 2);
    else if (took < FAST) this.step = Math.min(MOST, this.step * 1.25);
    return this.step;
  },
};

let streams = 0;
let latest = { text: '', blocks: [] }; // of the response that streams, so that nothing flickers when it is complete

/** The blocks of a text that grows: the worker reads it again when it is done with what came before. */
class Growing {
  constructor(draw) { [this.draw, this.stream, this.text, this.blocks, this.isBusy] = [draw, (streams += 1), '', undefined, false]; }

  async take(text) {
    this.text = text;
    if (this.isBusy || this.isGone || this.blocks === null) return;
    this.isBusy = true;
    const found = await work('growing', text, this.stream);
    this.isBusy = false;
    if (this.isGone) return;
    this.blocks = found && [...(this.blocks ?? []).slice(0, found.kept), ...found.blocks];
    if (found) latest = { text, blocks: this.blocks };
    this.draw({});
    if (this.text !== text) this.take(this.text);
  }
}

/** The blocks of a text; undefined while they aren't there yet, null if it can't be formatted. */
function useBlocks(text, live, isWanted) {
  const [, draw] = useState({});
  const growing = useRef(null);
  useEffect(() => () => { if (growing.current) growing.current.isGone = true; }, []);
  useEffect(() => {
    if (!isWanted) return undefined;
    if (live) { (growing.current ??= new Growing(draw)).take(text); return undefined; }
    if (known('markdown', text) !== undefined) return undefined;
    let gone = false;
    read('markdown', text).then(() => { if (!gone) draw({}); });
    return () => { gone = true; };
  }, [text, live, isWanted]);
  if (!isWanted) return null;
  if (live) return growing.current ? growing.current.blocks : undefined;
  const found = known('markdown', text);
  return found === undefined && latest.text.length > text.length / 2 && text.startsWith(latest.text) ? latest.blocks : found;
}

export function Markdown({ text, live = false }) {
  const [anyway, setAnyway] = useState(false);
  const [most, setMost] = useState(() => pace.step);
  const isLong = text.length > MAX_FORMATTED && !anyway;
  const found = useBlocks(text, live, !isLong);
  const shown = [];
  let size = 0;
  for (const one of found ?? []) { if (size > most) break; shown.push(one); size += one.size; }
  const left = (found?.length ?? 0) - shown.length;
  useEffect(() => { // the rest follows frame by frame
    if (!left || size > UNASKED) { pace.last = null; return undefined; }
    const frame = requestAnimationFrame(() => setMost(most + pace.next()));
    return () => cancelAnimationFrame(frame);
  }, [left, most, size]);
  if (isLong) {
    return html`<div class="md"><p class="note">Long text (${text.length.toLocaleString()} characters), shown without formatting.
      <button class="link" onClick=${() => setAnyway(true)}>Show formatted</button></p><pre class="plain-text"><${Plain} text=${text} isLive=${live} /></pre></div>`;
  }
  if (found === undefined) return html`<div class="md" dir="auto"><div class="unread"><${Plain} text=${text} isLive=${live} /></div></div>`;
  if (found === null) return html`<div class="md"><pre class="plain-text"><${Plain} text=${text} isLive=${live} /></pre></div>`;
  return html`<div class="md" dir="auto" data-held=${anyway || null}>${shown.map((one, index) =>
    html`<${Block} key=${index} raw=${one.raw} token=${one.token} live=${live && index === found.length - 1} />`)}
    ${left > 0 && size > UNASKED && html`<button class="link" onClick=${() => setMost(most + pace.step)}>Show more (${left.toLocaleString()} more blocks)</button>`}</div>`;
}

/** Re-renders only when its own source changes: while text streams in, most blocks don't change. */
class Block extends Component {
  shouldComponentUpdate(next) { return next.raw !== this.props.raw || next.live !== this.props.live; }
  render({ raw, token, live }) { return token ? block(token, 0, live) : h('pre', { class: 'plain-text' }, h(Plain, { text: raw, isLive: live })); }
}

function all(tokens, depth, live) { return (tokens ?? []).map((token) => block(token, depth, live)); }

function block(token, depth, live) {
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
    if (!item.tokens) return h('li', null, visible(item.raw)); // nested too deeply
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
  const [most, setMost] = useState(1);
  const cell = (tag) => (tokens, index) => h(tag, { class: token.align[index] ? `to-${token.align[index]}` : null }, inline(tokens, 0));
  let [count, size] = [0, 0];
  for (const row of token.rows) {
    if (count && (count >= most * MAX_ROWS || size + row.size > most * MAX_CELLS)) break;
    [count, size] = [count + 1, size + row.size];
  }
  const [left, unread] = [token.rows.length - count, token.total - token.rows.length];
  return html`<div class="table" role="region" aria-label="Table" tabindex="0" data-held=${most > 1 || null}><table>
    <thead><tr>${token.header.map(cell('th'))}</tr></thead>
    <tbody>${token.rows.slice(0, count).map((row) => h('tr', null, row.cells.map(cell('td'))))}</tbody>
  </table>
  ${left > 0 && html`<button class="link" onClick=${() => setMost(most + 1)}>Show more of ${token.total.toLocaleString()} rows</button>`}
  ${unread > 0 && !left && html`<p class="note">${unread.toLocaleString()} more rows are not shown.</p>`}
  ${token.columns > MAX_COLUMNS && html`<p class="note">${token.columns - MAX_COLUMNS} more columns are not shown.</p>`}
  </div>`;
}

// --- within a line

function inline(tokens, depth) {
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
