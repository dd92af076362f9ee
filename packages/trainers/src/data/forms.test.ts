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
    expect(fault({ prompt: null, completion: "c" })).toMatch(/^unknown_form: prompt, completion instead of/);
  });

  it("suggests the nearest column for a misspelt one", () => {
    const expected = "instead of prompt and completion, messages, or text";
    expect(fault({ promt: "p", completion: "c" })).toBe(
      `unknown_form: promt, completion ${expected}; did you mean "prompt" by "promt"?`,
    );
    expect(fault({ Message: [user] })).toBe(
      `unknown_form: Message ${expected}; did you mean "messages" by "Message"?`,
    );
    expect(fault({ input_ids: [1], labels: [2] })).toBe(`unknown_form: input_ids, labels ${expected}`);
    expect(fault({ prompt: "p" })).toBe(`unknown_form: prompt ${expected}`);
  });

  it("joins text parts, and treats null fields of a message as absent", () => {
    const parts = [
      { type: "text", text: "h" },
      { type: "text", text: "i" },
    ];
    const messages = [
      { role: "user", content: parts, name: null },
      { ...assistant, name: "bot" },
    ];
    expect(parseRow({ messages }, "row")).toMatchObject({ messages: [user, { ...assistant, name: "bot" }] });
    expect((parseRow({ messages }, "row") as Conversation).messages[0]).toEqual(user);
  });

  it.each([
    [null, "unknown_form: null instead of prompt and completion, messages, or text"],
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
    [
      { messages: [{ content: "hi" }] },
      "broken_roles: message 0: the role nothing instead of one of system,",
    ],
    [{ messages: [user, { role: 3 }] }, "broken_roles: message 1: the role 3"],
    [{ messages: [user, { role: { a: 1 } }] }, "broken_roles: message 1: the role an object of a"],
    [{ messages: [user, { role: "system", content: "" }] }, "broken_roles: message 1: a system message"],
    [{ messages: [user, { role: "assistant" }] }, "broken_content: message 1: nothing instead of a string"],
    [{ messages: [{ ...user, content: null }] }, "broken_content: message 0: null instead of a string"],
    [
      { messages: [{ ...user, content: [{ type: "image_url", image_url: {} }] }] },
      "broken_content: message 0: the part an object of type, image_url instead of a text part",
    ],
    [
      { messages: [{ ...user, content: ["hi"] }] },
      'broken_content: message 0: the part "hi" instead of a text part',
    ],
    [
      { messages: [{ ...user, content: [null] }] },
      "broken_content: message 0: the part null instead of a text part",
    ],
    [{ messages: [{ ...user, content: "\uD800" }] }, "invalid_text: message 0: half of a surrogate pair"],
    [{ text: "a \uDC00 b" }, "invalid_text: half of a surrogate pair"],
    [{ prompt: "\uD83D", completion: "c" }, "invalid_text: half of a surrogate pair"],
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
