// The Traffic view: a live table of requests, filters, charts, and each request's path.
import { ask, events } from './api.js';
import { compact, cost, seconds, tick, clock, count, exact } from './format.js';
import { Plain } from './plain.js';
import { theme, gateway, place, restate } from './state.js';
import { visible } from './text.js';
import { html, useEffect, useRef, useStore, memo, useState, useCallback, Button, Select, Dialog, Empty, Loading, CopyButton, failed } from './ui.js';
import { VirtualRows, reveal } from './virtual.js';

// Time series charts. The charting library is loaded with this view only.

const DAY = 86_400; // seconds

const COLOURS = { light: ['#0c6155', '#1e56a0', '#a8541d', '#7a3d8f', '#8a6d00', '#5b6470', '#b0306a'], dark: ['#6ccbb5', '#8fbcf5', '#f0ad7a', '#cf9fe0', '#e0c45c', '#b3bac4', '#f291bd'] };
let plotter = null;
function loaded() {
  if (!plotter) {
    const sheet = document.createElement('link');
    sheet.rel = 'stylesheet';
    sheet.href = new URL('vendor/uplot.css', import.meta.url).href;
    document.head.append(sheet);
    plotter = import('./vendor/uplot.js').then((module) => module.default);
  }
  return plotter;
}

export const isDark = () => getComputedStyle(document.documentElement).colorScheme.includes('dark');
export const colours = () => COLOURS[isDark() ? 'dark' : 'light'];

/** One chart: a solid line per series, and a dashed one for an optional second measure. */
function Plot({ title, note, data, solid, dashed, format }) {
  const box = useRef(null);
  const look = useStore(theme);
  useEffect(() => {
    let plot = null;
    let gone = false;
    const ink = getComputedStyle(document.documentElement);
    const colour = (name) => ink.getPropertyValue(name).trim();
    const axis = { stroke: colour('--muted'), font: '11px system-ui, sans-serif', grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } };
    const lines = data.series.flatMap((one, index) => [[solid], dashed ? [dashed] : []].flat().map((name) => ({
      values: numbers(one[name]), look: { stroke: colours()[index % colours().length], width: 1.75, dash: name === dashed ? [4, 3] : undefined, points: { show: isLone(one[name]), size: 4 }, spanGaps: true },
    })));
    const size = () => ({ width: box.current?.clientWidth ?? 0, height: 130 });
    const options = {
      ...size(), legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } }, padding: [8, 4, 0, 0],
      scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
      axes: [{ ...axis, space: 64, size: 24, values: (_, ticks, __, ___, between) => ticks.map((one) => tick(one, between >= DAY)) },
        { ...axis, size: 48, space: 28, values: (_, ticks) => ticks.map(format) }],
      series: [{}, ...lines.map((line) => line.look)],
    };
    loaded().then((Plotter) => { if (!gone && box.current) plot = new Plotter(options, [data.steps, ...lines.map((line) => line.values)], box.current); });
    const watch = new ResizeObserver(() => plot?.setSize(size()));
    watch.observe(box.current);
    return () => { gone = true; watch.disconnect(); plot?.destroy(); };
  }, [data, look]);
  return html`<figure class="chart" role="group" aria-label=${title}><h2>${title}<span class="muted">${note}</span></h2><div class="plot" ref=${box} aria-hidden="true"></div></figure>`;
}

/** Whether a series has one value only, which no line would show. */
const isLone = (values) => numbers(values).filter((value) => value !== null).length === 1;
const numbers = (values = []) => values.map((value) => (value === null || value === undefined ? null : Number(value)));
const sum = (values = []) => numbers(values).reduce((total, value) => total + (value ?? 0), 0);

export function Charts({ data }) {
  return html`<div class="charts">
      <${Plot} title="Requests" note="dashed: errors" data=${data} solid="requests" dashed="errors" format=${compact} />
      <${Plot} title="Latency" note="p50, dashed: p95" data=${data} solid="p50" dashed="p95" format=${seconds} />
      <${Plot} title="Tokens" note="in, dashed: out" data=${data} solid="tokens_in" dashed="tokens_out" format=${compact} />
      <${Plot} title="Cost" data=${data} solid="cost" format=${cost} />
    </div><${Legend} data=${data} />`;
}

function Legend({ data }) {
  useStore(theme);
  return html`<div class="legend">${data.series.map((one, index) => html`<span key=${one.name}><span class="swatch" style=${{ background: colours()[index % colours().length] }}></span>${one.name || '–'}</span>`)}
    <details><summary>Show as table</summary><div class="table"><table class="plain-table"><thead><tr><th scope="col">Name</th><th scope="col" class="number">Requests</th><th scope="col" class="number">Errors</th><th scope="col" class="number">Tokens in</th><th scope="col" class="number">Tokens out</th><th scope="col" class="number">Cost</th></tr></thead>
    <tbody>${data.series.map((one) => html`<tr key=${one.name}><th scope="row">${one.name || '–'}</th><td class="number">${compact(sum(one.requests))}</td><td class="number">${compact(sum(one.errors))}</td><td class="number">${compact(sum(one.tokens_in))}</td><td class="number">${compact(sum(one.tokens_out))}</td><td class="number">${cost(sum(one.cost))}</td></tr>`)}</tbody></table></div></details></div>`;
}

const HEIGHT = 40;
const PAGE = 200;
const MAX_ROWS = 20_000; // kept in the browser
const RANGES = [['900', '15 minutes', 15], ['3600', '1 hour', 60], ['21600', '6 hours', 300], ['86400', '24 hours', 1200], ['604800', '7 days', 7200]];
const FILTERS = ['front', 'route', 'model', 'key', 'status'];
const RECONNECT_DELAYS = [1, 2, 5, 10, 30]; // seconds before each reconnect to the live stream

/** As in the filters of the API: a stream that failed has the status 200. */
const isError = (one) => (one.status >= 400 || Boolean(one.error)) && !one.left;
const isOk = (one) => !isError(one) && !one.left;
const matches = (one, choice) => FILTERS.every((name) => !choice[name] || (name === 'status' ? matchesStatus(one, choice.status) : one[name] === choice[name]));
function matchesStatus(one, wanted) { return wanted === 'ok' ? isOk(one) : wanted === 'error' ? isError(one) : wanted === 'left' ? Boolean(one.left) : String(one.status) === wanted; }

function useTraffic(choice, isPaused) {
  const [list, setList] = useState({ items: [], cursor: null, isReady: false, facets: {} });
  const [isLive, setLive] = useState(false);
  const filter = Object.fromEntries(FILTERS.map((name) => [name, choice[name]]));
  const key = JSON.stringify(filter);
  const loading = useRef(false);
  useEffect(() => {
    setList((old) => ({ ...old, isReady: false }));
    const control = new AbortController();
    ask('traffic', { query: { ...filter, limit: PAGE }, signal: control.signal }).then((found) => setList((old) => ({ items: found.items, cursor: found.cursor, isReady: true, facets: found.facets ?? old.facets }))).catch((error) => { failed(error); if (error.name !== 'AbortError') setList({ items: [], cursor: null, isReady: true, facets: {} }); });
    return () => control.abort();
  }, [key]);
  useEffect(() => {
    if (isPaused) return undefined;
    const control = new AbortController();
    let fresh = [];
    const flush = setInterval(() => { // four renders a second at most, at any request rate
      if (!fresh.length) return;
      const own = fresh.reverse();
      fresh = [];
      const ids = new Set(own.map((one) => one.id));
      setList((old) => ({ ...old, items: [...own, ...old.items.filter((one) => !ids.has(one.id))].slice(0, MAX_ROWS) }));
    }, 250);
    listen(control.signal, setLive, (one) => { if (matches(one, filter)) fresh.push(one); });
    return () => { control.abort(); clearInterval(flush); };
  }, [key, isPaused]);
  const more = () => {
    if (!list.cursor || loading.current) return;
    loading.current = true;
    ask('traffic', { query: { ...filter, cursor: list.cursor, limit: PAGE } }).then((found) => setList((old) => ({ ...old, items: [...old.items, ...found.items], cursor: old.items.length > MAX_ROWS ? null : found.cursor }))).catch(failed).finally(() => { loading.current = false; });
  };
  return [list, more, isLive];
}

async function listen(signal, setLive, take) {
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    try {
      const stream = events('traffic/live', { signal });
      setLive(true);
      for await (const one of stream) { attempt = 0; if (one.id && !signal.aborted) take(one); }
    } catch (error) { if (error.status >= 400 && error.status < 500) { setLive(false); return; } }
    if (signal.aborted) return; // a newer stream may be live already
    setLive(false);
    await new Promise((resolve) => { setTimeout(resolve, RECONNECT_DELAYS[Math.min(attempt, RECONNECT_DELAYS.length - 1)] * 1000); signal.addEventListener('abort', resolve, { once: true }); });
  }
}

function useSeries(range, by, isPaused, hasRequests) { // with the first request there is something to draw
  const [data, setData] = useState(null);
  useEffect(() => {
    const [, , step] = RANGES.find(([value]) => value === range);
    const load = () => { if (!document.hidden) ask('traffic/series', { query: { since: Math.floor(Date.now() / 1000 - Number(range)), step, by } }).then(setData).catch(() => {}); };
    load();
    const timer = isPaused ? null : setInterval(load, Math.max(5, Math.min(step, 60)) * 1000); // more often than once per step would show nothing new
    return () => clearInterval(timer);
  }, [range, by, isPaused, hasRequests]);
  return data;
}

export function Traffic() {
  const { info } = useStore(gateway);
  if (!info) return html`<${Loading} what="the traffic" />`;
  if (info.has_traffic === false) return html`<${Empty} title="Request recording is off">Set “traffic” in the [server] table of the gateway’s configuration to see requests, charts and costs here.</${Empty}>`;
  return html`<${RecordedTraffic} />`;
}

function RecordedTraffic() {
  const { id, query } = useStore(place);
  const [isPaused, setPaused] = useState(false);
  const choice = { range: RANGES.some(([value]) => value === query.range) ? query.range : '3600', by: query.by ?? 'model', ...Object.fromEntries(FILTERS.map((name) => [name, query[name] ?? ''])) };
  const choose = (change) => restate('traffic', id, { ...choice, ...change });
  const [list, more, isLive] = useTraffic(choice, isPaused);
  const data = useSeries(choice.range, choice.by, isPaused, list.items.length > 0);
  const facet = (name, label, values = []) => html`<${Select} label=${label} hideLabel aria-label=${label} value=${choice[name]} onChange=${(value) => choose({ [name]: value })} options=${[{ value: '', text: `${label}: all` }, ...[...new Set([...values, choice[name]])].filter(Boolean).map((one) => ({ value: one, text: name === 'status' && one === 'left' ? 'aborted' : one }))]} />`;
  return html`<div class="view traffic">
    <div class="toolbar"><h1>Traffic</h1>
      ${facet('front', 'Front', list.facets.fronts)}${facet('route', 'Route', list.facets.routes)}${facet('model', 'Model', list.facets.models)}${facet('key', 'Key', list.facets.keys)}${facet('status', 'Status', ['ok', 'error', 'left'])}
      <span class="grow"></span>
      <${Select} label="Charts by" value=${choice.by} onChange=${(by) => choose({ by })} options=${['model', 'key', 'route', 'front'].map((one) => ({ value: one, text: one }))} />
      <${Select} label="Range" hideLabel aria-label="Range" value=${choice.range} onChange=${(range) => choose({ range })} options=${RANGES.map(([value, text]) => ({ value, text }))} />
      <${Button} icon=${isPaused ? 'play' : 'pause'} text=${isPaused ? 'Paused' : isLive ? 'Live' : 'Connecting'} label=${isPaused ? 'Resume' : 'Pause'} aria-pressed=${isPaused} onClick=${() => setPaused(!isPaused)} />
    </div>
    ${data && data.series.length > 0 && html`<${Charts} data=${data} />`}
    ${list.isReady && !list.items.length ? html`<${Empty} title="No requests">${FILTERS.some((name) => choice[name]) ? 'No requests match the filters.' : 'Requests appear here as clients make them.'}</${Empty}>` : html`<${Table} list=${list} more=${more} onOpen=${(one) => restate('traffic', one.id, choice)} />`}
    ${id && html`<${Detail} id=${id} onClose=${() => restate('traffic', '', choice)} />`}
  </div>`;
}

/** `words` may be longer than their column; clipping each cell would make scrolling slow. */
const COLUMNS = [['Time', 'on-phone'], ['Front', 'words'], ['Route', 'words'], ['Model', 'words on-phone'], ['Status', 'on-phone'], ['First byte', 'number'], ['Tokens', 'number'], ['Cost', 'number'], ['Changes', 'words'], ['Duration', 'number on-phone']];

function Table({ list, more, onOpen }) {
  const box = useRef(null);
  const latest = useRef(null);
  latest.current = onOpen;
  const open = useCallback((one) => latest.current(one), []); // a stable function, so that rows don't re-render
  const [current, setCurrent] = useState(0);
  const keys = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (step) {
      event.preventDefault();
      const next = Math.max(0, Math.min(list.items.length - 1, current + step));
      setCurrent(next);
      reveal(box.current, next, HEIGHT);
      requestAnimationFrame(() => requestAnimationFrame(() => box.current?.querySelector(`[aria-rowindex="${next + 2}"]`)?.focus()));
    }
    if (event.key === 'Enter' && list.items[current]) onOpen(list.items[current]);
  };
  const head = html`<div class="traffic-head" role="rowgroup"><div role="row" aria-rowindex="1" class="traffic-grid">${COLUMNS.map(([name, kind]) => html`<span role="columnheader" class=${kind}>${name}</span>`)}</div></div>`;
  const row = (index) => html`<${Row} key=${list.items[index].id} one=${list.items[index]} index=${index} isCurrent=${index === current} onOpen=${open} />`;
  return html`<${VirtualRows} scroller=${box} role="table" label="Requests" rowCount=${list.cursor ? -1 : list.items.length + 1} count=${list.items.length} height=${HEIGHT} row=${row} onEnd=${more} onKeyDown=${keys} before=${head} />`;
}

const Row = memo(({ one, index, isCurrent, onOpen }) => {
  const notes = [one.losses ? `${one.losses} lost` : '', one.repairs ? `${one.repairs} repaired` : '', one.attempts > 1 ? `${one.attempts} tries` : ''].filter(Boolean).join(', ');
  const cells = [clock(one.time), one.front, one.route ?? '–', one.model ?? '–', html`<span class=${`dot ${one.left ? 'off' : isError(one) ? 'bad' : ''}`}></span>${one.left ? 'aborted' : one.status}`, seconds(one.first_byte), `${compact(one.tokens_in)} → ${compact(one.tokens_out)}`, cost(one.cost), notes, seconds(one.seconds)];
  return html`<div class="traffic-grid traffic-row" role="row" aria-rowindex=${index + 2} tabindex=${isCurrent ? 0 : -1} style=${{ top: `${index * HEIGHT}px` }} onClick=${() => onOpen(one)}>
    ${cells.map((cell, column) => html`<span role="cell" class=${COLUMNS[column][1]} title=${COLUMNS[column][1].startsWith('words') ? cell : null}>${typeof cell === 'string' ? visible(cell) : cell}</span>`)}</div>`;
});

/** `2: messages[0].parts[1], sampling.top_k`; the names may be fewer than the number. */
const listed = (number, names = []) => (number ? `${count(number)}${names.length ? `: ${names.join(', ')}` : ''}` : 'none');

// --- one request

function Detail({ id, onClose }) {
  const [one, setOne] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => { ask(`traffic/${encodeURIComponent(id)}`).then(setOne).catch((problem) => setError(problem.message)); }, [id]);
  return html`<${Dialog} drawer title="Request" onClose=${onClose}>
    ${error && html`<p class="notice bad">${error}</p>`}${!one && !error && html`<${Loading} what="the request" />`}${one && html`<${Facts} one=${one} />`}</${Dialog}>`;
}

function Facts({ one }) {
  const facts = [['Time', exact(one.time)], ['Front', `${one.front}${one.kind ? ` · ${one.kind}` : ''}${one.stream ? ' · streamed' : ''}`], ['Route', one.route], ['Served by', [one.provider, one.model].filter(Boolean).join(' · ')], ['Key', one.key], ['Status', one.left ? `${one.status} (aborted by the client)` : one.status], ['Error', one.error],
    ['Duration', `${seconds(one.seconds)} total, first byte after ${seconds(one.first_byte)}`], ['Tokens', `${count(one.tokens_in)} in, ${count(one.tokens_out)} out`], ['Cost', cost(one.cost)], ['Attempts', one.attempts], ['Body', one.passes ? 'passed through unchanged' : 'translated'], ['Losses', listed(one.losses, one.lost)], ['Repairs', listed(one.repairs, one.repaired)]];
  return html`<dl class="facts-list">${facts.filter(([, value]) => value !== null && value !== undefined && value !== '').map(([name, value]) => html`<dt>${name}</dt><dd>${visible(String(value))}</dd>`)}</dl>
    ${one.path?.length > 0 && html`<h3>Path through the gateway</h3><${Waterfall} steps=${one.path} total=${one.seconds} />`}
    ${['request_body', 'answer_body'].map((name) => one[name] && html`<div class="labelled"><span>${name === 'request_body' ? 'Request' : 'Response'}</span><${CopyButton} text=${one[name]} label="Copy" /></div><pre class="json" tabindex="0"><${Plain} text=${one[name]} /></pre>`)}
    ${!one.request_body && html`<p class="muted">Bodies are not stored. Set “keep_bodies” in the [server] table of the gateway’s configuration to store them, up to a size limit.</p>`}`;
}

/** Each step ends `at` a time, and took the `seconds` before it. */
function Waterfall({ steps, total }) {
  const whole = Math.max(total ?? 0, ...steps.map((step) => step.at), 1e-9);
  const share = (time) => `${(100 * Math.max(0, time)) / whole}%`;
  return html`<ol class="waterfall">${steps.map((step) => html`<li><strong>${step.layer}</strong>
    <span class="lane" role="img" aria-label=${`${seconds(step.seconds)}, until ${seconds(step.at)}`}><span class="bar" style=${{ left: share(step.at - step.seconds), width: share(step.seconds) }}></span></span>
    <span class="number">${seconds(step.seconds)}</span><span class="what">${step.what}${step.detail ? ` · ${step.detail}` : ''}</span></li>`)}</ol>`;
}
