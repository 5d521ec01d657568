// An agent of the Vercel AI SDK: `node agent.mjs chat|responses|stream|anthropic COUNT`. Where its provider is, and the
// key, stand in the environment variables that the SDK reads. The errand is that of agentmark.testing: its tasks come
// in on standard input, one a line, as {"task", "items", "city", "answer"}.

import { createInterface } from "node:readline";
import { anthropic } from "@ai-sdk/anthropic";
import { openai } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const ITEMS = ["kettle", "lamp", "mirror", "notebook", "pillow", "radio", "teapot", "umbrella"];
const price = (item) => 5 + 3 * ITEMS.indexOf(item);

function errandTools(order) {
  const errand = { calls: 0, basket: new Set(), address: null, shipped: null };
  const does = (description, inputSchema, execute) =>
    tool({
      description,
      inputSchema: z.object(inputSchema),
      execute: (given) => {
        errand.calls += 1;
        return execute(given);
      },
    });
  const tools = {
    search: does("Look an item up in the catalogue.", { query: z.string() }, ({ query }) => {
      const found = ITEMS.filter((item) => query.includes(item));
      return found.length ? `Found: ${found.join(", ")}.` : "Nothing found.";
    }),
    price: does("Say what an item costs.", { item: z.string() }, ({ item }) =>
      ITEMS.includes(item) ? `${item}: ${price(item)} crowns.` : `There is no ${item}.`,
    ),
    add: does("Put an item into the basket.", { item: z.string(), note: z.string().optional() }, ({ item }) => {
      if (!ITEMS.includes(item)) return `There is no ${item}.`;
      errand.basket.add(item);
      return `${item} is in the basket.`;
    }),
    deliver_to: does("Set the city that the parcel goes to.", { city: z.string() }, ({ city }) => {
      errand.address = city;
      return `The parcel goes to ${city}.`;
    }),
    ship: does("Send the parcel off, once the basket is complete and the city is set.", {}, () => {
      const missing = order.items.filter((item) => !errand.basket.has(item));
      if (missing.length || errand.address === null) return `Not yet: ${missing.join(", ") || "the city"} is missing.`;
      const items = [...errand.basket].sort();
      const total = items.reduce((sum, item) => sum + price(item), 0);
      errand.shipped = `Parcel for ${errand.address}: ${items.join(", ")}; ${total} crowns.`;
      return `Shipped. ${errand.shipped}`;
    }),
  };
  return { errand, tools };
}

const MODELS = {
  chat: () => openai.chat("gpt-4o"),
  responses: () => openai("gpt-4o"),
  stream: () => openai.chat("gpt-4o"),
  "responses-stream": () => openai("gpt-4o"),
  anthropic: () => anthropic("claude-sonnet-5"),
};

const way = process.argv[2];
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  const { errand, tools } = errandTools(order);
  const ask = { model: MODELS[way](), tools, prompt: order.task, stopWhen: stepCountIs(60) };
  let said;
  if (way.endsWith("stream")) {
    const result = streamText(ask);
    for await (const _ of result.fullStream);
    said = await result.text;
  } else {
    said = (await generateText(ask)).text;
  }
  const finished = errand.shipped === order.answer && said.includes(order.answer);
  console.log(JSON.stringify({ finished, calls: errand.calls, said }));
}
