// The application shell: header, navigation, the current view, and dialogs that belong to no view.
import { html, render, Component, useState, useEffect, useStore, store, Announcements, Button, Dialog, Loading } from './ui.js';
import { Icon } from './icons.js';
import { onKeyNeeded } from './api.js';
import { address, chooseTheme, gateway, go, meet, place, theme } from './state.js';
import { conversation } from './conversation.js';
import { Talk } from './talk.js';

const VIEWS = [
  { name: 'talk', text: 'Talk', load: async () => Talk },
  { name: 'lens', text: 'Lens', load: async () => (await import('./lens.js')).Lens },
  { name: 'history', text: 'History', load: async () => (await import('./history.js')).History },
  { name: 'traffic', text: 'Traffic', load: async () => (await import('./traffic.js')).Traffic },
  { name: 'keys', text: 'Keys', title: 'Keys and routes', load: async () => (await import('./keys.js')).KeysAndRoutes },
];
const loaded = { talk: Talk };
/** The open conversation belongs to Talk: going back to the view shows it again. */
const openIn = (view) => (view === 'talk' ? conversation.value.id ?? '' : '');

// --- asks for an admin key when the gateway requires one

const keyRequest = store(null);
let pending = null;
onKeyNeeded((wasWrong) => {
  pending ??= new Promise((resolve) => keyRequest.set({ wasWrong, resolve })).finally(() => { pending = null; keyRequest.set(null); });
  return pending;
});

function KeyDialog({ request }) {
  const [key, setKey] = useState('');
  const done = () => key.trim() && request.resolve(key.trim());
  return html`<${Dialog} title="Admin key required" onClose=${() => request.resolve(null)} actions=${html`<${Button} kind="primary" text="Continue" onClick=${done} />`}>
    <p>${request.wasWrong ? 'That key was not accepted. ' : ''}Enter an admin key to use this page. The key is kept until you close this tab and is sent to this gateway only.</p>
    <label class="field"><span>Admin key</span><input type="password" autocomplete="off" autofocus value=${key} onInput=${(event) => setKey(event.target.value)} onKeyDown=${(event) => event.key === 'Enter' && done()} /></label>
  </${Dialog}>`;
}

// --- application shell

const KEYS = [
  ['Alt + 1 … 5', 'Talk, Lens, History, Traffic, Keys'], ['Alt + N', 'New conversation'], ['?', 'Show keyboard shortcuts'],
  ['Enter', 'Send the message'], ['Shift + Enter', 'New line'], ['Escape', 'Stop the response, or close a dialog or menu'],
  ['↑ in an empty message', 'Focus your last message'], ['J K', 'Next or previous message'], ['E', 'Edit the focused message'],
  ['R', 'Retry the focused response'], ['C', 'Copy the focused message'], ['S', 'Show what was sent for the focused response'], ['[ ]', 'Previous or next branch'], ['/', 'Search or filter'],
];

function Help({ onClose }) {
  return html`<${Dialog} title="Keyboard shortcuts" onClose=${onClose}><dl class="keys-list">${KEYS.map(([key, text]) => html`<dt><kbd>${key}</kbd></dt><dd>${text}</dd>`)}</dl></${Dialog}>`;
}

const NEXT = { auto: 'light', light: 'dark', dark: 'auto' };
const LOOK = { auto: ['auto', 'Theme: system'], light: ['sun', 'Theme: light'], dark: ['moon', 'Theme: dark'] };

function Top({ view, onHelp }) {
  const look = useStore(theme);
  return html`<header class="top">
    <a class="brand" href=${address('talk')}>Dragoman</a>
    <nav class="views" aria-label="Views">${VIEWS.map((one) => html`<a key=${one.name} href=${address(one.name, openIn(one.name))} title=${one.title ?? one.text} aria-current=${one.name === view ? 'page' : null}><${Icon} name=${one.name} /><span>${one.text}</span></a>`)}</nav>
    <span class="grow"></span>
    <${Button} kind="plain" icon=${LOOK[look][0]} label=${LOOK[look][1]} onClick=${() => chooseTheme(NEXT[look])} />
    <${Button} kind="plain help" icon="help" label="Keyboard shortcuts" onClick=${onHelp} />
  </header>`;
}

const isTyping = (target) => target.closest?.('input, textarea, select, [contenteditable]');

function useKeys(showHelp) {
  useEffect(() => {
    const press = (event) => {
      const digit = /^Digit([1-5])$/.exec(event.code)?.[1];
      if (event.altKey && !event.ctrlKey && digit) { event.preventDefault(); const { name } = VIEWS[digit - 1]; go(name, openIn(name)); }
      else if (event.altKey && !event.ctrlKey && event.code === 'KeyN') { event.preventDefault(); go('talk'); }
      else if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
      else if (event.key === '?') showHelp();
      else if (event.key === '/') { const box = document.querySelector('[data-search], .composer > textarea'); if (box) { event.preventDefault(); box.focus(); } }
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, []);
}

/** Shows an error in place of a view that failed; the navigation keeps working. */
class Guard extends Component {
  componentDidCatch(error) { console.error(error); this.setState({ hasFailed: true }); }
  render({ children }, { hasFailed }) {
    if (!hasFailed) return children;
    return html`<div class="empty" role="alert"><h2>This view could not be shown</h2><p>The cause is in the browser’s console. Conversations are not affected.</p>
      <${Button} text="Try again" onClick=${() => this.setState({ hasFailed: false })} /></div>`;
  }
}

function View({ name }) {
  const [, draw] = useState(0);
  const entry = VIEWS.find((one) => one.name === name) ?? VIEWS[0];
  useEffect(() => {
    document.title = `${entry.title ?? entry.text} · Dragoman`;
    if (!loaded[entry.name]) entry.load().then((view) => { loaded[entry.name] = view; draw((number) => number + 1); });
  }, [entry.name]);
  const Shown = loaded[entry.name];
  return Shown ? html`<${Shown} />` : html`<${Loading} what=${entry.text} />`;
}

function App() {
  const { view } = useStore(place);
  const { error } = useStore(gateway);
  const wanted = useStore(keyRequest);
  const [help, setHelp] = useState(false);
  useKeys(() => setHelp(true));
  const known = VIEWS.some((one) => one.name === view) ? view : 'talk';
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById('main').focus(); }}>Skip to content</a>
    <${Top} view=${known} onHelp=${() => setHelp(true)} />
    ${error && html`<div class="notice bad banner" role="alert"><span>${error.message}</span><${Button} text="Try again" onClick=${meet} /></div>`}
    <main id="main" tabindex="-1"><${Guard} key=${known}><${View} name=${known} /></${Guard}></main>
    ${help && html`<${Help} onClose=${() => setHelp(false)} />`}
    ${wanted && html`<${KeyDialog} request=${wanted} />`}
    <${Announcements} />`;
}

// A file dropped beside a drop zone must not replace the page.
for (const kind of ['dragover', 'drop']) document.addEventListener(kind, (event) => { if (event.dataTransfer?.types.includes('Files')) event.preventDefault(); });

const root = document.getElementById('app');
root.replaceChildren();
render(html`<${App} />`, root);
meet();
