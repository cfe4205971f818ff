// Time series charts. The charting library is loaded with this view only.
import { html, useEffect, useRef, useStore } from './ui.js';
import { theme } from './state.js';
import { compact, cost, seconds, tick } from './format.js';

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
