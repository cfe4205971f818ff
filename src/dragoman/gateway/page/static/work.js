// Asks the worker to read Markdown, formulas and code. Whatever takes too long is given up, and then
// shown as plain text; the page itself never waits.
import { useEffect, useState } from './ui.js';

const DEADLINE = 2000; // milliseconds for one text
const INNER = new Set(['maths', 'code', 'diagram']); // what is within a text
const MOST_KEPT = 8_000_000; // characters of the texts whose results are kept

// The only script that this page may start; the policy of its content forbids any other.
const place = new URL('./worker.js', import.meta.url).href;
const policy = globalThis.trustedTypes?.createPolicy('dragoman-worker', { createScriptURL: () => place });

let worker = null;
let current = null; // the job that the worker has
let numbers = 0;
const waiting = [];
const results = new Map(); // by task and option, then by text: the result, or a promise of it
let kept = 0;

function start() {
  worker = new Worker(policy ? policy.createScriptURL('') : place, { type: 'module' });
  worker.onmessage = ({ data }) => {
    if (!current || (data.begun ?? data.done) !== current.number) return;
    if (data.begun) current.timer = setTimeout(() => { stop(); settle(null); }, DEADLINE); // what it had to load has no deadline
    else settle(data.result);
  };
  worker.onerror = () => { stop(); settle(null); };
}
function stop() { worker?.terminate(); worker = null; }

function settle(result) {
  const job = current;
  current = null;
  clearTimeout(job?.timer);
  job?.done(result);
  advance();
}

function advance() {
  if (current || !waiting.length) return;
  current = waiting.shift();
  if (!worker) start();
  const { number, task, text, option } = current;
  worker.postMessage({ number, task, text, option });
}

/** The result of a task; null if the text is malformed, or took too long. Markdown goes first: all else is in it. */
export function work(task, text, option) {
  return new Promise((done) => {
    const job = { number: (numbers += 1), task, text, option, done };
    const before = waiting.findIndex((one) => INNER.has(one.task));
    if (before < 0 || INNER.has(task)) waiting.push(job);
    else waiting.splice(before, 0, job);
    advance();
  });
}

/** Resolves once everything that was asked for is done, and drawn. */
export async function idle() { while (current || waiting.length || drawing.length) await new Promise((done) => { setTimeout(done, 20); }); }

// --- results that are kept

const group = (task, option) => {
  const key = `${task} ${option ?? ''}`;
  if (!results.has(key)) results.set(key, new Map());
  return results.get(key);
};

function forget() {
  for (const found of results.values()) for (const [text, result] of found) {
    if (kept <= MOST_KEPT) return;
    if (result instanceof Promise) continue;
    found.delete(text);
    kept -= text.length;
  }
}

/** The result, if it is there already. */
export function known(task, text, option) {
  const found = group(task, option).get(text);
  return found instanceof Promise ? undefined : found;
}

/** The result; each text is read once. */
export function read(task, text, option) {
  const all = group(task, option);
  if (!all.has(text)) {
    kept += text.length;
    all.set(text, work(task, text, option).then((result) => { all.set(text, result); forget(); return result; }));
  }
  return Promise.resolve(all.get(text));
}

// --- what waits for the same result is drawn in turns: a text may have thousands of the same diagram

const BRIEF = 30, LONG = 60; // milliseconds between two turns
const drawing = [];
let turn = 16; // how many are drawn in one

function later(draw) {
  drawing.push(draw);
  if (drawing.length === 1) setTimeout(drawSome);
}

function drawSome() {
  const began = performance.now();
  const some = drawing.slice(0, turn);
  for (const draw of some) draw();
  requestAnimationFrame(() => setTimeout(() => {
    drawing.splice(0, some.length);
    const took = performance.now() - began;
    if (took < BRIEF) turn = Math.min(2 * turn, 1024);
    if (took > LONG) turn = Math.max(turn >> 1, 4);
    if (drawing.length) drawSome();
  }));
}

/** The result once it is there; until then undefined. */
export function useRead(task, text, option, skip = false) {
  const [, draw] = useState({});
  const found = skip ? null : known(task, text, option);
  useEffect(() => {
    if (skip || known(task, text, option) !== undefined) return undefined;
    let gone = false;
    read(task, text, option).then(() => { if (!gone) later(() => { if (!gone) draw({}); }); });
    return () => { gone = true; };
  }, [task, text, option, skip]);
  return found;
}
