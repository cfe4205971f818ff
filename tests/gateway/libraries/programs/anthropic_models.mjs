// Anthropic's SDK for TypeScript.

import Anthropic from "@anthropic-ai/sdk";
import { CITY, KEY, QUESTION, serve, weather } from "./jobs.mjs";

const TOOLS = [{ name: "weather", description: "Tell the temperature in a city.", input_schema: CITY }];

function textOf(message) {
  return message.content.filter((block) => block.type === "text").map((block) => block.text).join("");
}

async function asked(client, request, stream) {
  if (!stream) return client.messages.create(request);
  const streamed = client.messages.stream(request);
  const message = await streamed.finalMessage();
  const text = textOf(message);
  if (text && (await streamed.finalText()).trim() !== text.trim()) throw new Error("finalText differs");
  return message;
}

await serve(async (job) => {
  const client = new Anthropic({ baseURL: job.url, apiKey: KEY, maxRetries: 0 });
  const messages = [{ role: "user", content: QUESTION }];
  const request = {
    model: job.model, messages, max_tokens: 4096,
    ...(job.scenario === "tools" ? { tools: TOOLS } : {}),
    ...(job.scenario === "thinking" ? { thinking: { type: "enabled", budget_tokens: 1024 } } : {}),
  };
  let message = await asked(client, request, job.stream);
  if (job.scenario === "tools") {
    const results = message.content
      .filter((block) => block.type === "tool_use")
      .map((block) => ({ type: "tool_result", tool_use_id: block.id, content: weather(block.input) }));
    messages.push({ role: "assistant", content: message.content }, { role: "user", content: results });
    message = await asked(client, request, job.stream);
  }
  const thought = message.content.filter((block) => block.type === "thinking").map((block) => block.thinking);
  const last = message.content.at(-1).text ?? "";
  // Without thinking, most programs take the last block for the answer.
  return { text: job.scenario === "thinking" ? textOf(message) : last, thinking: thought.join("") };
});
