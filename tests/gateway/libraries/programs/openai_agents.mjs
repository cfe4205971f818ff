// OpenAI's Agents SDK for JavaScript.

import { createInterface } from "node:readline";
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";

setTracingDisabled(true); // it would send traces to OpenAI
const MODELS = { "openai-chat": OpenAIChatCompletionsModel, "openai-responses": OpenAIResponsesModel };
const weather = tool({
  name: "weather",
  description: "Tell the temperature in a city.",
  parameters: {
    type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false,
  },
  execute: async ({ city }) => `31 °C in ${city}`,
});

async function play(job) {
  const client = new OpenAI({ baseURL: `${job.url}/v1`, apiKey: "none", maxRetries: 0 });
  const agent = new Agent({
    name: "guide",
    model: new MODELS[job.front](client, job.model),
    tools: job.scenario === "tools" ? [weather] : [],
    modelSettings: job.scenario === "thinking" ? { reasoning: { effort: "low", summary: "auto" } } : {},
  });
  const runner = new Runner({ tracingDisabled: true });
  const result = await runner.run(agent, "How warm is it in Mostar?", { stream: job.stream });
  if (job.stream) {
    for await (const _ of result) { /* every event */ }
    await result.completed;
  }
  const thought = result.newItems
    .filter((item) => item.type === "reasoning_item")
    .flatMap((item) => [...(item.rawItem.content ?? []), ...(item.rawItem.rawContent ?? [])])
    .map((part) => part.text);
  return { text: result.finalOutput ?? "", thinking: thought.join("") };
}

for await (const line of createInterface({ input: process.stdin })) {
  let result;
  try {
    result = await play(JSON.parse(line));
  } catch (error) {
    const cause = error.status === undefined ? error.cause ?? error : error;
    result = { error: error.constructor.name, status: cause.status ?? null, message: String(error.message).slice(0, 500) };
  }
  console.log(JSON.stringify(result));
}
