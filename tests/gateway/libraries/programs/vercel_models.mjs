// Vercel's AI SDK, with the provider of each API that it speaks.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { CITY, KEY, QUESTION, serve, weather } from "./jobs.mjs";

const tools = {
  weather: tool({
    description: "Tell the temperature in a city.",
    inputSchema: jsonSchema(CITY),
    execute: async (given) => weather(given),
  }),
};
const FRONTS = {
  "openai-chat": (job) => createOpenAICompatible({ name: "gateway", baseURL: `${job.url}/v1`, apiKey: KEY })(job.model),
  "openai-responses": (job) => createOpenAI({ baseURL: `${job.url}/v1`, apiKey: KEY }).responses(job.model),
  anthropic: (job) => createAnthropic({ baseURL: `${job.url}/v1`, apiKey: KEY })(job.model),
};
const THINKS = {
  gateway: { reasoningEffort: "low" },
  // The model's name doesn't tell the SDK that it can think.
  openai: { reasoningEffort: "low", reasoningSummary: "auto", forceReasoning: true },
  anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } },
};

async function asked(job, messages) {
  const given = {
    model: FRONTS[job.front](job), messages, maxRetries: 0, stopWhen: stepCountIs(3),
    ...(job.scenario === "tools" ? { tools } : {}),
    ...(job.scenario === "thinking" ? { providerOptions: THINKS } : {}),
  };
  if (!job.stream) return generateText(given);
  let failure;
  const result = streamText({ ...given, onError: ({ error }) => { failure = error; } });
  await result.consumeStream();
  if (failure) throw failure;
  return result;
}

await serve(async (job) => {
  const messages = [{ role: "user", content: QUESTION }];
  let result = await asked(job, messages);
  if (job.scenario === "turns") {
    // Over the Responses API it refers to earlier items by their ids.
    messages.push(...(await result.response).messages, { role: "user", content: "Sure?" });
    result = await asked(job, messages);
  }
  const steps = await result.steps;
  return { text: await result.text, thinking: steps.map((step) => step.reasoningText ?? "").join("") };
});
