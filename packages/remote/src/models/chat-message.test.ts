import { expect, it } from "vitest";
import { completionOf } from "./openai.ts";

const choice = (message: unknown, more: object = { finish_reason: "stop" }) => ({
  choices: [{ index: 0, message, ...more }],
});
const read = (message: unknown, more?: object) => completionOf(choice(message, more), "test");

it.each([
  ["a string", { content: "Yes." }, "Yes."],
  ["null, with only thinking (vLLM, SGLang)", { content: null, reasoning_content: "Hm." }, ""],
  ["null, with only thinking (Ollama, OpenRouter)", { content: null, reasoning: "Hm." }, ""],
  ["null, with a tool call", { content: null, tool_calls: [{ id: "1" }] }, ""],
  ["null and nothing else", { content: null }, ""],
  ["omitted, because it is null", { role: "assistant", reasoning_content: "Hm." }, ""],
  ["null, with a refusal", { content: null, refusal: "No." }, "No."],
  ["a string beside thinking", { content: "Yes.", reasoning_content: "Hm." }, "Yes."],
  [
    "parts",
    {
      content: [
        { type: "text", text: "Y" },
        { type: "text", text: "es." },
      ],
    },
    "Yes.",
  ],
  [
    "parts with thinking (Mistral)",
    {
      content: [
        { type: "thinking", thinking: [{ type: "text", text: "No." }] },
        { type: "text", text: "Yes." },
      ],
    },
    "Yes.",
  ],
  [
    "parts with thinking as text",
    {
      content: [
        { type: "reasoning", text: "No." },
        { type: "output_text", text: "Yes." },
      ],
    },
    "Yes.",
  ],
  ["parts without a type", { content: [{ text: "Yes." }] }, "Yes."],
  ["parts that are strings", { content: ["Y", "es."] }, "Yes."],
  ["a part with a refusal", { content: [{ type: "refusal", refusal: "No." }] }, "No."],
  ["no parts", { content: [] }, ""],
])("reads a content that is %s", (_, message, text) => {
  expect(read(message)).toMatchObject({ text, finish: "stop" });
});

it.each([
  ["an image", { content: [{ type: "image_url", image_url: {} }] }, 'a part of the type "image_url"'],
  ["a text that is a number", { content: [{ type: "text", text: 3 }] }, 'a part of the type "text"'],
  ["a number in place of a part", { content: [3] }, "a part 3"],
  ["a number as the content", { content: 3 }, "without choices[0].message.content"],
  ["an empty message", {}, "without choices[0].message.content"],
])("rejects %s", (_, message, got) => {
  expect(() => read(message)).toThrow(got);
});

it.each([
  ["length", "length"],
  ["max_tokens", "length"],
  ["MAX_TOKENS", "length"],
  ["model_length", "length"],
  ["model_context_window_exceeded", "length"],
  ["context_length_exceeded", "length"],
  ["limit", "length"],
  ["stopped_limit", "length"],
  ["num_predict", "length"],
  ["FINISH_REASON_MAX_TOKENS", "length"],
  ["max-new-tokens", "length"],
  ["pause_turn", "length"],
  ["a reason of tomorrow", "length"],
  [7, "length"],
  [{ type: "length", length: 8 }, "length"],
  [{ type: "stop", matched: 2 }, "stop"],
  ["stop", "stop"],
  ["eos", "stop"],
  ["eos_token", "stop"],
  ["stop_sequence", "stop"],
  ["stopped_eos", "stop"],
  ["stop_token", "stop"],
  ["end_turn", "stop"],
  ["end_of_text", "stop"],
  ["FINISH_REASON_STOP", "stop"],
  ["COMPLETE", "stop"],
  ["function_call", "stop"],
  ["tool_calls", "stop"],
  ["content_filter", "stop"],
])("reads the finish reason %j as %s", (finish_reason, finish) => {
  expect(read({ content: "Yes." }, { finish_reason }).finish).toBe(finish);
});

it.each([
  [{ finish_reason: null }, 8, "length"],
  [{ finish_reason: null }, 7, "stop"],
  [{ finish_reason: "" }, 8, "length"],
  [{}, 8, "length"],
  [{}, undefined, "stop"],
  [{ finish_reason: "stop" }, 8, "stop"],
])(
  "knows without a reason from the tokens whether a reply was cut off: %j, %s of 8",
  (more, tokens, finish) => {
    const usage = tokens === undefined ? null : { completion_tokens: tokens };
    const reply = { ...choice({ content: "Yes." }, more), usage };
    expect(completionOf(reply, "test", { maxNewTokens: 8 }).finish).toBe(finish);
  },
);

it.each([
  "error",
  "abort",
  "network_error",
  "timeout",
  "timed_out",
  "cancelled",
  "CANCELED",
  "insufficient_system_resource",
])("returns an error for the finish reason %s", (finish_reason) => {
  expect(() => read({ content: "Ye" }, { finish_reason })).toThrow(`the finish reason "${finish_reason}"`);
});

it.each([
  ["vLLM, SGLang", { object: "error", message: "too long", type: "BadRequestError", code: 400 }],
  ["FastAPI", { detail: "too long" }],
  ["a gateway", { success: false, errors: [{ code: 7, message: "too long" }] }],
  ["null choices", { choices: null, message: "too long" }],
  ["LM Studio", { error: "too long" }],
])("returns the error that a server sends with status 200: %s", (_, reply) => {
  expect(() => completionOf(reply, "test")).toThrow("an error with status 200: too long");
});

it.each([
  ["absent", {}],
  ["null", { logprobs: null }],
  ["without tokens", { logprobs: { content: null } }],
])("reads a reply whose log-probabilities are %s", (_, more) => {
  const reply = choice({ content: "85" }, { finish_reason: "stop", ...more });
  expect(completionOf(reply, "test", { wantsTop: true })).toMatchObject({ tokenNats: null, topNats: null });
});
