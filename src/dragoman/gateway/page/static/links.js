// Links and images in model output. Only web and email addresses become links, a link whose text
// names another host shows the real one, and no image is loaded from other sites.
import { h, html } from './ui.js';
import { Icon } from './icons.js';
import { visible } from './text.js';

const SAFE = new Set(['http:', 'https:', 'mailto:']);
const PICTURE = /^data:image\/(?:png|jpeg|gif|webp);base64,[a-z0-9+/=\s]+$/i;
const ADDRESS = /(?:[a-z][a-z0-9+.-]*:\/\/)?(?:[^\s/@]+@)?((?:[\p{L}\p{N}-]+\.)+[\p{L}]{2,})/iu;

const MAX_SEARCHED = 300; // characters of a link's text; of longer ones the host is always shown

/** The parsed URL if it is absolute and of an allowed scheme; else null. */
export function safeAddress(text) {
  let url;
  try { url = new URL(text.trim()); } catch { return null; }
  return SAFE.has(url.protocol) ? url : null;
}

const bare = (host) => host.toLowerCase().replace(/^www\./, '');

/** The real host of a link whose text names another host or whose URL contains a user name. */
export function disguise(url, text) {
  if (url.protocol === 'mailto:') return null;
  if (url.username || url.password) return url.host;
  if (text.length > MAX_SEARCHED) return url.host;
  const named = ADDRESS.exec(text.trim())?.[1];
  if (!named) return null;
  return bare(url.hostname) === bare(named) ? null : url.host;
}

export function Link({ href, text, children }) {
  const url = safeAddress(href);
  if (!url) return h('span', { class: 'dead-link', title: 'Not a web or email address' }, children, ' (', visible(href.slice(0, 200)), ')');
  const other = disguise(url, text);
  return html`<a href=${url.href} title=${url.href} target="_blank" rel="noopener noreferrer nofollow">${children}</a>${other &&
    html`<span class="leads-to"> (leads to ${other})</span>`}`;
}

export function Picture({ href, text }) {
  if (PICTURE.test(href) && href.length < 10_000_000) return h('img', { src: href, alt: text || 'Image', class: 'picture' });
  const url = safeAddress(href);
  const name = text || 'image';
  if (!url) return h('span', { class: 'dead-link' }, '[', visible(name), ']');
  return html`<a class="outside" href=${url.href} title=${url.href} target="_blank" rel="noopener noreferrer nofollow">
    <${Icon} name="link" /> ${visible(name)} <span class="leads-to">(image at ${url.host}, not loaded)</span></a>`;
}
