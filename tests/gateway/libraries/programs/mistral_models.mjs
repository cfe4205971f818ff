// Mistral's SDK for TypeScript.

import { Mistral } from "@mistralai/mistralai";
import { CITY, KEY, QUESTION, serve, weather } from "./jobs.mjs";

const TOOLS = [
  { type: "function", function: { name: "weather", description: "Tell the temperature in a city.", parameters: CITY } },
];

// The content is a text, or a list of chunks of which some hold thinking.
function heard(content, into) {
  for (const chunk of typeof content === "string" ? [{ type: "text", text: content }] : content ?? []) {
    if (chunk.type === "thinking") into.thinking += chunk.thinking.map((part) => part.text).join("");
    else into.text += chunk.text;
  }
}

async function asked(client, request, stream) {
  const got = { text: "", thinking: "", calls: [], usage: null };
  if (!stream) {
    const answer = await client.chat.complete(request);
    const message = answer.choices[0].message;
    heard(message.content, got);
    return { ...got, calls: message.toolCalls ?? [], usage: answer.usage };
  }
  for await (const { data } of await client.chat.stream(request)) {
    for (const { delta } of data.choices) {
      heard(delta.content, got);
      got.calls.push(...(delta.toolCalls ?? []));
    }
    got.usage = data.usage ?? got.usage;
  }
  return got;
}

await serve(async (job) => {
  const client = new Mistral({ serverURL: job.url, apiKey: KEY, retryConfig: { strategy: "none" } });
  const messages = [{ role: "user", content: QUESTION }];
  const request = {
    model: job.model, messages,
    ...(job.scenario === "tools" ? { tools: TOOLS } : {}),
    ...(job.scenario === "thinking" ? { reasoningEffort: "high" } : {}),
  };
  let got = await asked(client, request, job.stream);
  if (job.scenario === "tools") {
    messages.push({ role: "assistant", content: got.text, toolCalls: got.calls });
    for (const call of got.calls) {
      const given = call.function.arguments;
      const content = weather(typeof given === "string" ? JSON.parse(given) : given);
      messages.push({ role: "tool", toolCallId: call.id, name: call.function.name, content });
    }
    got = await asked(client, request, job.stream);
  }
  if (!got.usage?.promptTokens) throw new Error("there is no usage");
  return { text: got.text, thinking: got.thinking };
});
