// What the programs in JavaScript share: jobs come as lines of JSON, and so do their results.

import { createInterface } from "node:readline";

export const QUESTION = "How warm is it in Mostar?";
export const KEY = "none";
export const CITY = {
  type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false,
};

export function weather({ city }) {
  return `31 °C in ${city}`;
}

export async function serve(play) {
  for await (const line of createInterface({ input: process.stdin })) {
    let result;
    try {
      result = await play(JSON.parse(line));
    } catch (error) {
      const cause = [error, error.cause, error.lastError].find((each) => status(each)) ?? error;
      result = { error: error.constructor.name, status: status(cause), message: String(error.message).slice(0, 500) };
    }
    console.log(JSON.stringify(result));
  }
}

function status(error) {
  return error?.status ?? error?.statusCode ?? null;
}
