// Building blocks of every view: Preact and our shared components.
import { h, Fragment, Component, render, createRef } from './vendor/preact.js';
import { useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback } from './vendor/hooks.js';
import htm from './vendor/htm.js';
import { Icon } from './icons.js';

export { h, Fragment, Component, render, createRef };
export { useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback };
export const html = htm.bind(h);

/** Wraps a component so that it re-renders only when one of its props changes. */
export function memo(draw) {
  return class extends Component {
    shouldComponentUpdate(next) {
      const before = this.props;
      for (const name in next) if (next[name] !== before[name]) return true;
      for (const name in before) if (!(name in next)) return true;
      return false;
    }
    render(props) { return h(draw, props); }
  };
}

/** An observable value that components can subscribe to. */
export function store(value) {
  const watchers = new Set();
  return {
    get value() { return value; },
    set(next) {
      value = typeof next === 'function' ? next(value) : next;
      for (const watcher of [...watchers]) watcher(value);
    },
    patch(change) { this.set({ ...value, ...change }); },
    watch(watcher) { watchers.add(watcher); return () => watchers.delete(watcher); },
  };
}

export function useStore(source) {
  const [, draw] = useState({});
  useLayoutEffect(() => source.watch(() => draw({})), [source]);
  return source.value;
}

// --- notifications: visible toasts, and announcements for screen readers

export const toasts = store([]);
export const announcement = store('');

export function announce(text) {
  announcement.set('');
  setTimeout(() => announcement.set(text), 50); // screen readers skip an unchanged text
}
export function toast(text, kind = 'info') {
  const one = { text, kind, id: Math.random() };
  toasts.set((all) => [...all.slice(-2), one]);
  setTimeout(() => dismiss(one), kind === 'error' ? 9000 : 4000);
}
export function dismiss(one) { toasts.set((all) => all.filter((each) => each !== one)); }
export function failed(error) { if (error.name !== 'AbortError') toast(error.message, 'error'); }

export function Announcements() {
  const shown = useStore(toasts);
  const said = useStore(announcement);
  return html`<${Fragment}>
    <div class="hidden" role="status" aria-live="polite">${said}</div>
    <div class="toasts" role="region" aria-label="Notifications" aria-live="polite">
      ${shown.map((one) => html`<div key=${one.id} class=${`toast ${one.kind}`} role=${one.kind === 'error' ? 'alert' : null}>
        <span>${one.text}</span>
        <button class="plain small" aria-label="Dismiss" onClick=${() => dismiss(one)}><${Icon} name="close" /></button>
      </div>`)}
    </div>
  </${Fragment}>`;
}

// --- controls

export function Button({ icon, label, text, kind = '', ...rest }) {
  return html`<button type="button" class=${`${kind} ${text ? '' : 'square'}`} aria-label=${!text || label?.includes(text) ? label : null} title=${label} ...${rest}>
    ${icon && html`<${Icon} name=${icon} />`}${text && html`<span>${text}</span>`}</button>`;
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    announce('Copied');
    return true;
  } catch {
    toast('The browser blocked access to the clipboard.', 'error');
    return false;
  }
}

export function CopyButton({ text, label = 'Copy', showText = false, kind = 'plain' }) {
  const [done, setDone] = useState(false);
  const press = async () => {
    const content = typeof text === 'function' ? await text() : text;
    if (content !== null && await copy(content)) { setDone(true); setTimeout(() => setDone(false), 1500); }
  };
  return html`<${Button} kind=${kind} icon=${done ? 'check' : 'copy'} label=${label} text=${showText ? (done ? 'Copied' : label) : null} onClick=${press} />`;
}

/** A modal dialog or side drawer. Uses the native <dialog>, which handles focus and Escape. */
export function Dialog({ title, onClose, drawer = false, wide = false, actions, children }) {
  const ref = useRef(null);
  useEffect(() => { // closed by removal from the DOM, so focus is restored here
    const before = document.activeElement;
    ref.current.showModal();
    return () => before?.isConnected && before.focus?.();
  }, []);
  const outside = (event) => { if (event.target === ref.current) onClose(); };
  return html`<dialog ref=${ref} class=${drawer ? 'drawer' : wide ? 'wide' : ''} aria-label=${title}
      onCancel=${(event) => { event.preventDefault(); onClose(); }} onMouseDown=${outside}>
    <div class="dialog">
      <header><h2>${title}</h2><${Button} kind="plain" icon="close" label="Close" onClick=${onClose} /></header>
      <div class="dialog-body" tabindex=${drawer ? 0 : null}>${children}</div>
      ${actions && html`<footer>${actions}</footer>`}
    </div>
  </dialog>`;
}

/** A button that opens a menu of actions. Arrow keys move through it, Escape closes it. `items` may be a function. */
/** Shows a menu above everything else, beside its button, on the side with more room. */
function raise(list, button) {
  list.showPopover();
  const [above, below] = [button.top, innerHeight - button.bottom];
  Object.assign(list.style, above > below ? { bottom: `${innerHeight - above + 4}px` } : { top: `${button.bottom + 4}px` });
  list.style.maxHeight = `${Math.max(above, below) - 12}px`;
  list.style.left = `${Math.max(8, button.right - list.offsetWidth)}px`;
}

export function Menu({ icon = 'more', label, text, kind = 'plain', items }) {
  const [open, setOpen] = useState(false);
  const ref = useRef(null);
  useLayoutEffect(() => {
    if (!open) return undefined;
    raise(ref.current.querySelector('[role=menu]'), ref.current.getBoundingClientRect());
    ref.current.querySelector('[role=menuitem]')?.focus();
    const leave = (event) => { if (!ref.current.contains(event.target)) setOpen(false); };
    const events = ['pointerdown', 'scroll', 'resize'];
    for (const name of events) addEventListener(name, leave, true);
    return () => { for (const name of events) removeEventListener(name, leave, true); };
  }, [open]);
  const toggle = () => setOpen(!open);
  const close = () => { setOpen(false); ref.current.querySelector('button').focus(); };
  const keys = (event) => {
    const all = [...ref.current.querySelectorAll('[role=menuitem]')];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Escape') { event.stopPropagation(); event.preventDefault(); close(); }
    if (event.key === 'Tab') setOpen(false);
    if (step && open) { event.preventDefault(); all[(all.indexOf(document.activeElement) + step + all.length) % all.length]?.focus(); }
    if (step && !open) { event.preventDefault(); toggle(); }
  };
  return html`<div class="menu" ref=${ref} onKeyDown=${keys} onClick=${(event) => event.stopPropagation()}>
    <${Button} kind=${kind} icon=${icon} label=${label} text=${text} aria-haspopup="menu" aria-expanded=${open} onClick=${toggle} />
    ${open && html`<div class="menu-list" popover="manual" role="menu" aria-label=${label}>
      ${(typeof items === 'function' ? items() : items).filter(Boolean).map((item) => html`<button key=${item.text} type="button" role="menuitem" tabindex="-1" class=${item.kind ?? ''}
        onClick=${() => { close(); item.action(); }}>${item.icon && html`<${Icon} name=${item.icon} />`}<span>${item.text}</span></button>`)}
    </div>`}
  </div>`;
}

export function Select({ label, value, options, onChange, hideLabel = false, ...rest }) {
  return html`<label class="field inline"><span class=${hideLabel ? 'hidden' : ''}>${label}</span>
    <select value=${value} onChange=${(event) => onChange(event.target.value)} ...${rest}>
      ${options.map((one) => html`<option key=${one.value} value=${one.value} selected=${one.value === value}>${one.text}</option>`)}
    </select></label>`;
}

/** The first of many items, each drawn by `each(item, index)`, and more on request. */
export function Some({ all, most, what, each }) {
  const [count, setCount] = useState(most);
  const left = all.length - count;
  return html`${all.slice(0, count).map(each)}${left > 0 && html`<button class="link" data-held=${count > most || null} onClick=${() => setCount(count + most)}>Show ${Math.min(most, left).toLocaleString()} of ${left.toLocaleString()} more ${what}</button>`}`;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><h2>${title}</h2><p>${children}</p></div>`;
}

export function Loading({ what }) { return html`<p class="loading" role="status">Loading ${what} …</p>`; }
