import { describe, expect, it } from "vitest";
import { parseRow, type Conversation } from "./forms.ts";

const user = { role: "user", content: "hi" };
const assistant = { role: "assistant", content: "yo" };

/** Returns the problem of a row; undefined for a valid row. */
const fault = (value: unknown): string | undefined => {
  const row = parseRow(value, "row");
  return "reason" in row ? `${row.reason}: ${row.got}` : undefined;
};
const nested = (depth: number): unknown => JSON.parse("[".repeat(depth) + "]".repeat(depth));

describe("parseRow", () => {
  it("uses the first of several forms, in TRL's order, and lists the unused columns", () => {
    const row = { text: "t", messages: [user, assistant], prompt: "p", completion: "c", id: 3, note: null };
    expect(parseRow(row, "row")).toEqual({
      where: "row",
      unused: ["text", "messages", "id"],
      kind: "text",
      prompt: "p",
      text: "c",
    });
    expect(parseRow({ text: "t", messages: [user, assistant] }, "row")).toMatchObject({
      kind: "conversation",
      promptCount: null,
      unused: ["text"],
    });
  });

  it("treats a null column as absent", () => {
    expect(parseRow({ messages: null, prompt: null, completion: null, text: "t" }, "row")).toMatchObject({
      kind: "text",
      unused: [],
    });
    expect(fault({ prompt: null, completion: "c" })).toMatch(
      /^unknown_form: prompt null, completion instead of/,
    );
    expect(fault({ text: null, id: 1, other: undefined })).toMatch(/^unknown_form: text null, id instead of/);
  });

  it("suggests the nearest column for a misspelt one", () => {
    const expected = "instead of prompt and completion, messages, conversations, or text";
    expect(fault({ promt: "p", completion: "c" })).toBe(
      `unknown_form: promt, completion ${expected}; did you mean "prompt" by "promt"?`,
    );
    expect(fault({ Message: [user] })).toBe(
      `unknown_form: Message ${expected}; did you mean "messages" by "Message"?`,
    );
    expect(fault({ input_ids: [1], labels: [2] })).toBe(`unknown_form: input_ids, labels ${expected}`);
    expect(fault({ prompt: "p" })).toBe(`unknown_form: prompt ${expected}`);
  });

  it("passes messages to the template as they are: roles, their order, parts, fields", () => {
    const call = { type: "function", function: { name: "add", arguments: { x: 2 } } };
    const messages = [
      { role: "developer", content: "Be brief." },
      { role: "user", content: [{ type: "text", text: "h" }], name: null },
      user,
      { role: "assistant", tool_calls: [call] },
      { role: "ipython", content: "2", tool_call_id: "a" },
      { role: "environment", content: null },
      { role: "system", content: "Now longer." },
      assistant,
      { ...assistant, reasoning_content: "Hm." },
    ];
    expect(parseRow({ messages }, "row")).toEqual({
      where: "row",
      unused: [],
      kind: "conversation",
      messages,
      promptCount: null,
      tools: null,
      templateKwargs: {},
    });
  });

  // TRL 1.16.0: maybe_convert_to_chatml({"conversations": [{"from": "user", "value": "hi"}, …]}) renames keys, not roles.
  it("reads ShareGPT's conversations, from and value, before messages, and in every column", () => {
    const conversations = [
      { from: "user", value: "hi" },
      { from: "gpt", value: "yo", weight: 1 },
    ];
    const expected = [user, { role: "gpt", content: "yo", weight: 1 }];
    expect(parseRow({ conversations, messages: [user] }, "row")).toMatchObject({
      messages: expected,
      unused: ["messages"],
    });
    expect(parseRow({ conversations: [user, assistant] }, "row")).toMatchObject({
      messages: [user, assistant],
    });
    const [prompt, completion] = [conversations.slice(0, 1), conversations.slice(1)];
    expect(parseRow({ prompt, completion }, "row")).toMatchObject({ messages: expected, promptCount: 1 });
  });

  it("reads tools as an array or its JSON, and template variables", () => {
    const tools = [{ type: "function", function: { name: "add", parameters: {} } }];
    const messages = [user, assistant];
    const row = { messages, tools, chat_template_kwargs: { enable_thinking: false }, id: 1 };
    expect(parseRow(row, "row")).toMatchObject({
      tools,
      templateKwargs: { enable_thinking: false },
      unused: ["id"],
    });
    expect(parseRow({ messages, tools: JSON.stringify(tools) }, "row")).toMatchObject({ tools });
    expect(parseRow({ messages, tools: "null", chat_template_kwargs: null }, "row")).toMatchObject({
      tools: null,
      templateKwargs: {},
    });
    expect(parseRow({ messages, tools: "[]" }, "row")).toMatchObject({ tools: [] });
  });

  it("marks what JavaScript reads otherwise than Python in the JSON of tools", () => {
    const row = { messages: [user, assistant], tools: '[{"minimum": 0.0, "b": 1, "1": 2}]' };
    const { tools } = parseRow(row, "row") as Conversation;
    expect(tools).toEqual([{ minimum: "\uFDD90.0", b: 1, "\uFDD91": 2 }]);
    expect(Object.keys(tools![0] as object)).toEqual(["minimum", "b", "\uFDD91"]);
  });

  it.each([
    [null, "unknown_form: null instead of prompt and completion, messages, conversations, or text"],
    [7n, "unknown_form: 7 instead of"],
    [[user], "unknown_form: an array of 1 instead of"],
    [{}, "unknown_form: no columns instead of"],
    [{ messages: "hi" }, 'unknown_form: the messages "hi" instead of an array of messages'],
    [
      { prompt: "hi", completion: [assistant] },
      'unknown_form: the prompt "hi" and the completion an array of 1',
    ],
    [{ messages: [] }, "empty: no messages"],
    [{ messages: [null] }, "broken_roles: message 0: null instead of an object with role and content"],
    [{ messages: [[user]] }, "broken_roles: message 0: an array of 1 instead of an object"],
    [{ messages: [{ content: "hi" }] }, "broken_roles: message 0: the role nothing instead of a string"],
    [{ messages: [user, { role: 3 }] }, "broken_roles: message 1: the role 3"],
    [{ messages: [user, { role: { a: 1 } }] }, "broken_roles: message 1: the role an object of a"],
    [{ messages: [{ from: "user", content: 3 }] }, "broken_content: message 0: 3 instead of a string"],
    [{ conversations: "hi" }, 'unknown_form: the conversations "hi" instead of an array of messages'],
    [{ messages: [user], tools: { a: 1 } }, "broken_tools: tools an object of a instead of an array of JSON"],
    [{ messages: [user], tools: "[1" }, 'broken_tools: tools "[1" instead of an array of JSON schemas'],
    [{ messages: [user], tools: ["add"] }, "broken_tools: tools an array of 1 instead of"],
    [{ messages: [user], chat_template_kwargs: [] }, "broken_tools: chat_template_kwargs an empty array"],
    [
      { messages: [{ ...user, content: [{ type: "image_url", image_url: {} }] }] },
      'broken_content: message 0: the part an object of type, image_url instead of {"type": "text"',
    ],
    [
      { messages: [{ ...user, content: ["hi"] }] },
      'broken_content: message 0: the part "hi" instead of {"type": "text"',
    ],
    [
      { messages: [{ ...user, content: [null] }] },
      'broken_content: message 0: the part null instead of {"type": "text"',
    ],
    [{ messages: [{ ...user, content: "\uD800" }] }, "invalid_text: message 0: half of a surrogate pair"],
    [{ text: "a \uDC00 b" }, "invalid_text: half of a surrogate pair"],
    [{ prompt: "\uD83D", completion: "c" }, "invalid_text: half of a surrogate pair"],
    [{ messages: [{ ...user, content: "\uFDD91.0" }] }, "broken_content: message 0: 1.0 instead of a string"],
    [{ messages: [{ role: "\uFDD91e3" }] }, "broken_roles: message 0: the role 1e3 instead of a string"],
    [{ text: 3 }, "broken_content: 3 instead of a string"],
  ])("reports %o", (row, expected) => {
    expect(fault(row)).toContain(expected);
  });

  it("accepts complete surrogate pairs", () => {
    expect(fault({ text: "\u{1F600}" })).toBeUndefined();
  });

  it("describes deeply nested and circular values briefly", () => {
    // Deep enough to overflow the stack of a recursive walk.
    const deep = nested(20_000);
    expect(fault(deep)).toMatch(/^unknown_form: an array of 1 /);
    expect(fault({ messages: [deep] })).toMatch(/^broken_roles: message 0: an array of 1 /);
    expect(fault({ messages: [{ role: deep }] })).toMatch(/the role an array of 1/);
    expect(fault({ messages: [{ ...user, content: deep }] })).toMatch(/^broken_content: .* an array of/);
    expect(fault({ text: "x".repeat(1e6), prompt: "y".repeat(1e6) })).toBeUndefined();
    expect(fault({ messages: "x".repeat(1e6) })!.length).toBeLessThan(150);
    const wide = Object.fromEntries(Array.from({ length: 1e4 }, (_, i) => [`k${i}`.padEnd(500, "-"), i]));
    expect(fault(wide)!.length).toBeLessThan(700);
  });
});
