// Line icons on a 24-pixel grid, as inline SVG paths, so that no icon files have to be loaded.
import { html } from './ui.js';

const PATHS = {
  talk: 'M4 5h16v11H9l-5 4z',
  lens: 'M12 4v16M4 6h5M4 12h5M4 18h5M15 6h5M15 12h5M15 18h5',
  history: 'M3 12a9 9 0 1 0 3-6.7M3 4v4h4M12 7v5l3 2',
  traffic: 'M3 12h4l3-8 4 16 3-8h4',
  keys: 'M15 9a4 4 0 1 0-3.5 4L20 4m-3 3 2 2m-5 1 2 2',
  send: 'M12 19V5m-6 6 6-6 6 6',
  stop: 'M7 7h10v10H7z',
  plus: 'M12 5v14M5 12h14',
  clip: 'm20 11-8.5 8.5a5 5 0 0 1-7-7L13 4a3.4 3.4 0 0 1 4.8 4.8l-8.5 8.5a1.7 1.7 0 0 1-2.4-2.4L14.5 7',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'm5 13 4 4L19 7',
  close: 'M6 6l12 12M18 6 6 18',
  retry: 'M20 12a8 8 0 1 1-2.3-5.7M20 3v4h-4',
  edit: 'M4 20h4L19 9l-4-4L4 16zM13 7l4 4',
  left: 'm14 6-6 6 6 6',
  right: 'm10 6 6 6-6 6',
  down: 'm6 10 6 6 6-6',
  pin: 'M9 4h6l-1 6 3 3H7l3-3zM12 13v7',
  fork: 'M6 4v6a4 4 0 0 0 4 4h4a4 4 0 0 1 4 4v2M6 10v10M6 4 3 7m3-3 3 3',
  export: 'M12 15V4m-4 4 4-4 4 4M5 15v5h14v-5',
  import: 'M12 4v11m-4-4 4 4 4-4M5 15v5h14v-5',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  swap: 'M4 8h15m-4-4 4 4-4 4M20 16H5m4-4-4 4 4 4',
  link: 'M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5 19 19M19 5l-1.5 1.5M6.5 17.5 5 19',
  moon: 'M20 14A8 8 0 1 1 10 4a6.5 6.5 0 0 0 10 10z',
  auto: 'M4 5h16v11H4zM9 20h6',
  help: 'M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M12 18h.01',
  sent: 'M4 12h12m-4-4 4 4-4 4M20 5v14',
  tool: 'M14 6a4 4 0 0 0-5 5l-5 5 3 3 5-5a4 4 0 0 0 5-5l-2.5 2.5L12 9z',
  think: 'M9 18h6M10 21h4M8 15a6 6 0 1 1 8 0c-.7.6-1 1.2-1 2H9c0-.8-.3-1.4-1-2z',
  warn: 'M12 4 2.5 20h19zM12 10v4M12 17h.01',
  list: 'M4 6h16M4 12h16M4 18h10',
  tag: 'M4 4h8l8 8-8 8-8-8zM8 8h.01',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
  options: 'M4 7h10M18 7h2M4 17h2M10 17h10M14 5v4M6 15v4',
  search: 'M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM20 20l-4.5-4.5',
  pause: 'M9 6v12M15 6v12',
  play: 'M8 5l11 7-11 7z',
  more: 'M5 11a1 1 0 1 0 0 2 1 1 0 0 0 0-2M12 11a1 1 0 1 0 0 2 1 1 0 0 0 0-2M19 11a1 1 0 1 0 0 2 1 1 0 0 0 0-2',
};

export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d=${PATHS[name] ?? ''} /></svg>`;
}
