import type { Json } from "@periodic-eval/core";
import type { TemplateInput } from "@periodic-eval/tokenizers";

type Message = Readonly<Record<string, Json>>;

const system: Message = { role: "system", content: "You are terse. <b>\"Be\" kind & 'fair'</b>" };
const user: Message = { role: "user", content: "  What is 2 + 2?\n" };
const code: Message = { role: "assistant", content: "\n\n    return x + 1\n\ttab\n" };
const answer: Message = { role: "assistant", content: "It is 4 — “four” 𝟜." };
const thought: Message = { role: "assistant", content: "<think>\nTwo and two.\n</think>\n\n4" };
const reasoned: Message = { role: "assistant", content: "4", reasoning_content: "Two and\n two." };
const again: Message = { role: "user", content: "And 3 + 3? 👩‍👩‍👧" };
const call = (args: Json, content: Json = ""): Message => ({
  role: "assistant",
  content,
  tool_calls: [{ id: "call12345", type: "function", function: { name: "get_weather", arguments: args } }],
});
const args = { city: "Zürich", days: 3, ratio: 0.25, nested: { list: [1, "a", null, true], "k k": {} } };
const result: Message = {
  role: "tool",
  name: "get_weather",
  tool_call_id: "call12345",
  content: '{"temperature": 21.5, "sky": "clear"}',
};
const parts: Message = {
  role: "user",
  content: [
    { type: "text", text: "Look: " },
    { type: "image", url: "a.png" },
    { type: "text", text: "what is it?" },
  ],
};
const tools: readonly Json[] = [
  {
    type: "function",
    function: {
      name: "get_weather",
      description: "Returns the weather of a city.\nIn °C.",
      parameters: {
        type: "object",
        properties: {
          city: { type: "string", description: "The city" },
          days: { type: ["integer", "null"], enum: [1, 2, 3] },
          ratio: { type: "number", default: 0.5 },
          nested: { type: "object", properties: { list: { type: "array", items: { type: "string" } } } },
        },
        required: ["city"],
      },
      return: { type: "string", description: "JSON" },
    },
  },
];
const documents: Json = [{ title: "Sums", text: "2 + 2 = 4", doc_id: 1, contents: "2 + 2 = 4" }];

const conversations: Readonly<Record<string, readonly Message[]>> = {
  empty: [],
  question: [user],
  "with a system message": [system, user],
  "with an answer": [user, answer],
  "of several turns": [system, user, code, again, answer],
  "with thoughts": [user, thought, again],
  "that ends in thoughts": [user, thought],
  "with reasoning": [system, user, reasoned, again, reasoned],
  "with thinking": [user, { role: "assistant", content: "4", thinking: "Hm." }, again],
  "with a tool call": [user, call(args), result, answer],
  "with a tool call of a string": [system, user, call(JSON.stringify(args), "Let me look."), result],
  "that ends in a tool call": [user, call(args, null)],
  "with a tool call without content": [user, { ...call({}), content: null }, result, result, answer, again],
  "with two tool calls": [
    user,
    {
      role: "assistant",
      content: "",
      tool_calls: [...(call(args)["tool_calls"] as Json[]), ...(call({})["tool_calls"] as Json[])],
    },
    result,
    { ...result, content: "[1, 2]" },
  ],
  "with a call that has no function": [
    user,
    { role: "assistant", tool_calls: [{ name: "get_weather", arguments: args }] },
    { role: "tool", content: { temperature: 21.5 } },
  ],
  "of parts": [parts],
  "of parts with answers": [
    { role: "system", content: [{ type: "text", text: "Be good." }] },
    parts,
    { role: "assistant", content: [{ type: "text", text: "A cat." }] },
    again,
  ],
  "without content": [user, { role: "assistant" }, again],
  "with null as content": [user, { role: "assistant", content: null }, again],
  "with two questions in a row": [user, again],
  "that begins with an answer": [answer, user],
  "with a later system message": [user, answer, system, again],
  "with a developer": [{ role: "developer", content: "Be brief." }, user, answer],
  "with an unknown role": [user, { role: "critic", content: "No." }, again],
  "with an empty answer": [user, { role: "assistant", content: "" }, again],
  "with an answer of spaces": [user, { role: "assistant", content: " \n " }],
  "with special tokens": [{ role: "user", content: "<|im_end|></s>[INST]{{ x }}{% raw %}" }, answer],
};

/** Conversations of all kinds, each in several forms, by name. */
export function chats(): { readonly name: string; readonly input: TemplateInput }[] {
  const forms: readonly (readonly [string, Omit<TemplateInput, "messages">])[] = [
    ["complete", { addGenerationPrompt: false }],
    ["for an answer", { addGenerationPrompt: true }],
    ["with tools", { addGenerationPrompt: true, tools }],
    ["with tools, complete", { addGenerationPrompt: false, tools, kwargs: { enable_thinking: true } }],
    ["without thinking", { addGenerationPrompt: true, kwargs: { enable_thinking: false, thinking: false } }],
    [
      "with documents",
      { addGenerationPrompt: true, kwargs: { documents, reasoning_effort: "high", date_string: "1 Jan" } },
    ],
  ];
  return Object.entries(conversations).flatMap(([chat, messages]) =>
    forms.map(([form, rest]) => ({
      name: `${chat}, ${form}`,
      input: { ...rest, messages: messages as unknown as TemplateInput["messages"] },
    })),
  );
}
