// What the search of a built site finds: node docs/site/search.mjs build/site 'base_url' 'attach image'
// It runs the worker that readers' browsers run. One line of JSON per query: pages, best first,
// each with the section that was found.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";

const [site, ...queries] = process.argv.slice(2);
const folder = join(site, "assets/javascripts/workers");
const [worker] = readdirSync(folder).filter((name) => /^search.*\.js$/.test(name));
let listener;
let answered;
const scope = {
  console,
  addEventListener: (_kind, listens) => (listener = listens),
  postMessage: (message) => answered(message.data),
};
scope.self = scope;
vm.runInNewContext(readFileSync(join(folder, worker), "utf8"), scope);

const asked = (type, data) =>
  new Promise((resolve) => {
    answered = resolve;
    listener({ data: { type, data } });
  });

const [SETUP, QUERY] = [0, 2];
const index = JSON.parse(readFileSync(join(site, "search/search_index.json"), "utf8"));
await asked(SETUP, { ...index, options: { suggest: false } });
for (const query of queries) {
  const { items } = await asked(QUERY, query);
  console.log(JSON.stringify(items.map(([best]) => best.location)));
}
