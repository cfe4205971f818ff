// Reads what takes unbounded time, off the page's thread: Markdown, formulas, diagrams and highlighted code.
// The page ends this worker when it takes too long (work.js).
import { blocks, Growing } from './lexer.js';

const MOST_NODES = 3000; // of a formula or a highlighted text

function limited(convert) {
  let left = MOST_NODES;
  return (tree) => convert(tree, () => { if ((left -= 1) < 0) throw new RangeError('too many nodes'); });
}

function formula(tree, count) {
  count();
  if (typeof tree.text === 'string') return tree.text;
  return { type: tree.type, attributes: { ...tree.attributes }, children: (tree.children ?? []).map((child) => formula(child, count)) };
}

function scopes(tree, count) {
  return tree.children.map((child) => {
    count();
    return typeof child === 'string' ? child : { scope: String(child.scope ?? ''), children: scopes(child, count) };
  });
}

let growing = null;

/** By task: what it needs to have loaded, and what it then does with a text and an option. */
const TASKS = {
  markdown: { do: (_, text) => blocks(text) },
  growing: {
    do(_, text, stream) {
      if (growing?.stream !== stream) growing = { stream, reader: new Growing() };
      return growing.reader.read(text);
    },
  },
  maths: {
    load: () => import('./vendor/temml.js'),
    do: ({ default: engine }, source, display) => limited(formula)(
      engine.__renderToMathMLTree(source, { displayMode: Boolean(display), throwOnError: true, trust: false, maxExpand: 200, maxSize: [20, 2000] })),
  },
  diagram: { load: () => import('./diagrams.js'), do: ({ diagram }, source) => diagram(source) },
  code: {
    load: () => import('./vendor/highlight.js'),
    do: ({ default: engine }, code, language) => (engine.getLanguage(language) ? limited(scopes)(engine.highlight(code, { language, ignoreIllegals: true })._emitter.root) : null),
  },
};

addEventListener('message', async ({ data: { number, task, text, option } }) => {
  let result = null;
  try {
    const loaded = await TASKS[task].load?.();
    postMessage({ begun: number });
    result = TASKS[task].do(loaded, text, option);
  } catch { /* malformed, or nested too deeply: shown as its source */ }
  try { postMessage({ done: number, result }); } catch { postMessage({ done: number, result: null }); } // too deep to be copied
});
