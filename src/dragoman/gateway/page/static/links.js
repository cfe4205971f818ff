// Links and pictures in what a model says: only web and mail addresses lead anywhere, a link that
// pretends to lead elsewhere says so, and no picture is loaded from outside.
import { h, html } from './ui.js';
import { Icon } from './icons.js';
import { visible } from './text.js';

const SAFE = new Set(['http:', 'https:', 'mailto:']);
const PICTURE = /^data:image\/(?:png|jpeg|gif|webp);base64,[a-z0-9+/=\s]+$/i;
const ADDRESS = /(?:[a-z][a-z0-9+.-]*:\/\/)?(?:[^\s/@]+@)?((?:[\p{L}\p{N}-]+\.)+[\p{L}]{2,})/iu;

/** The address, if it is absolute and of a kind that can be opened; else null. */
export function safeAddress(text) {
  let url;
  try { url = new URL(text.trim()); } catch { return null; }
  return SAFE.has(url.protocol) ? url : null;
}

const bare = (host) => host.toLowerCase().replace(/^www\./, '');

/** Where a link leads, if its text names another place or its address hides one. */
export function disguise(url, text) {
  if (url.protocol === 'mailto:') return null;
  if (url.username || url.password) return url.host;
  const named = ADDRESS.exec(text.trim())?.[1];
  if (!named) return null;
  return bare(url.hostname) === bare(named) ? null : url.host;
}

export function Link({ href, text, children }) {
  const url = safeAddress(href);
  if (!url) return h('span', { class: 'dead-link', title: 'This address is not a web or mail address' }, children, ' (', visible(href.slice(0, 200)), ')');
  const other = disguise(url, text);
  return html`<a href=${url.href} title=${url.href} target="_blank" rel="noopener noreferrer nofollow">${children}</a>${other &&
    html`<span class="leads-to"> (leads to ${other})</span>`}`;
}

export function Picture({ href, text }) {
  if (PICTURE.test(href) && href.length < 10_000_000) return h('img', { src: href, alt: text || 'Picture', class: 'picture' });
  const url = safeAddress(href);
  const name = text || 'picture';
  if (!url) return h('span', { class: 'dead-link' }, '[', visible(name), ']');
  return html`<a class="outside" href=${url.href} title=${url.href} target="_blank" rel="noopener noreferrer nofollow">
    <${Icon} name="link" /> ${visible(name)} <span class="leads-to">(picture at ${url.host}, not loaded)</span></a>`;
}
