// Plain text of any length: the beginning, and more on request.
import { html, useState } from './ui.js';
import { visible } from './text.js';

const FIRST = 20_000; // characters
const STEP = 20_000;
const LIVE = 5_000; // of a text that grows, which is laid out again and again

/** Where to cut a text: at a line's end if there is one nearby, and never within a character. */
function cut(text, most) {
  if (text.length <= most) return text.length;
  const line = text.lastIndexOf('\n', most);
  const at = line > most / 2 ? line + 1 : most;
  return /[\ud800-\udbff]/.test(text[at - 1]) ? at - 1 : at;
}

/** `isLive`: the end is shown, not the beginning. */
export function Plain({ text, isLive = false }) {
  const [ends, setEnds] = useState([FIRST]);
  if (isLive && text.length > LIVE) return html`<span class="muted">${(text.length - LIVE).toLocaleString()} characters before this …</span>${'\n'}${visible(text.slice(-LIVE).replace(/^[\udc00-\udfff]/, ''))}`;
  const pieces = [];
  let from = 0;
  for (const most of ends) { const end = cut(text, most); if (end > from) pieces.push(text.slice(from, end)); from = end; }
  const left = text.length - from;
  return html`${pieces.map((piece) => (pieces.length > 1 ? html`<div class="piece">${visible(piece)}</div>` : visible(piece)))}${left > 0 && html`<button class="link" data-held=${ends.length > 1 || null} onClick=${() => setEnds([...ends, from + STEP])}>Show ${Math.min(STEP, left).toLocaleString()} of ${left.toLocaleString()} more characters</button>`}`;
}
