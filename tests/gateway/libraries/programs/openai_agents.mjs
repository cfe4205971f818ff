// OpenAI's Agents SDK for JavaScript.

import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { CITY, KEY, QUESTION, serve, weather as answer } from "./jobs.mjs";

setTracingDisabled(true); // it would send traces to OpenAI
const MODELS = { "openai-chat": OpenAIChatCompletionsModel, "openai-responses": OpenAIResponsesModel };
const weather = tool({
  name: "weather",
  description: "Tell the temperature in a city.",
  parameters: CITY,
  execute: async (given) => answer(given),
});

async function play(job) {
  const client = new OpenAI({ baseURL: `${job.url}/v1`, apiKey: KEY, maxRetries: 0 });
  const agent = new Agent({
    name: "guide",
    model: new MODELS[job.front](client, job.model),
    tools: job.scenario === "tools" ? [weather] : [],
    modelSettings: job.scenario === "thinking" ? { reasoning: { effort: "low", summary: "auto" } } : {},
  });
  const runner = new Runner({ tracingDisabled: true });
  const result = await runner.run(agent, QUESTION, { stream: job.stream });
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

await serve(play);
