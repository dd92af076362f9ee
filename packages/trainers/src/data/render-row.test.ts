import { fakeTokenizer } from "@periodic-eval/testing";
import type { TemplateChat, Tokenizer } from "@periodic-eval/core";
import { describe, expect, it } from "vitest";
import { parseRow, type ParsedRow, type SFTRow } from "./forms.ts";
import { renderRow, type LossOn, type TrainingRow } from "./render-row.ts";

// The fake template writes <|role|>content<|end|>; each mark is one token, each ASCII character one more.
const tokenizer = fakeTokenizer();
const end = tokenizer.eosId!;
const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });

const render = (row: SFTRow, loss: LossOn | null = null, by: Tokenizer = tokenizer, maxLength = 100) =>
  renderRow(by, parseRow(row, "row") as ParsedRow, { maxLength, truncate: true, loss });
const scoredOf = (row: SFTRow, loss: LossOn | null = null, by?: Tokenizer) => [
  ...(render(row, loss, by) as TrainingRow).scored,
];

describe("renderRow", () => {
  it("ends text with the end-of-sequence token, once, and scores it", () => {
    expect(render({ text: "abc" })).toMatchObject({ ids: Int32Array.of(97, 98, 99, end) });
    expect(render({ text: "abc<|end|>" })).toMatchObject({ ids: Int32Array.of(97, 98, 99, end) });
    expect(scoredOf({ text: "abc" })).toEqual([1, 2, 3]);
    expect(scoredOf({ prompt: "ab", completion: "c" })).toEqual([2, 3]);
    expect(scoredOf({ prompt: "ab", completion: "c<|end|>" })).toEqual([2, 3]);
    // Conversations end as their template ends them.
    expect((render({ messages: [user("a"), assistant("b")] }) as TrainingRow).ids).toHaveLength(6);
  });

  it("puts the tokenizer's beginning-of-sequence token once, before the prompt", () => {
    const beginning = fakeTokenizer({ beginOfText: true });
    const row = render({ prompt: "ab", completion: "c" }, null, beginning) as TrainingRow;
    expect([...row.ids]).toEqual([256, 97, 98, 99, end]);
    expect([...row.scored]).toEqual([3, 4]);
    expect(scoredOf({ prompt: "", completion: "c" }, null, beginning)).toEqual([1, 2]);
  });

  it("adds no second end-of-sequence token if the tokenizer writes one, even after the prompt", () => {
    const ending: Tokenizer = { ...tokenizer, encode: (text) => [...tokenizer.encode(text), end] };
    const row = render({ prompt: "ab", completion: "c" }, null, ending) as TrainingRow;
    expect([...row.ids]).toEqual([97, 98, 99, end]);
    expect([...row.scored]).toEqual([2, 3]);
  });

  it("counts a token that spans prompt and completion as completion", () => {
    // 300 is "b" and "c" together: the prompt alone has two tokens, of which the row has one.
    const merging: Tokenizer = {
      ...tokenizer,
      encode: (text) => tokenizer.encode(text.replace("bc", "\u0001")).map((id) => (id === 1 ? 300 : id)),
    };
    const row = render({ prompt: "ab", completion: "cd" }, null, merging) as TrainingRow;
    expect([...row.ids]).toEqual([97, 300, 100, end]);
    expect([...row.scored]).toEqual([1, 2, 3]);
  });

  it("scores the tokens that `loss` selects", () => {
    // 0 <|user|> 1 h 2 <|end|> 3 <|assistant|> 4 y 5 <|end|> 6 <|user|> 7 x 8 <|end|> 9 <|assistant|> 10 z 11 <|end|>
    const messages = [user("h"), assistant("y"), user("x"), assistant("z")];
    expect(scoredOf({ messages })).toEqual([4, 5, 10, 11]);
    expect(scoredOf({ messages }, "assistant")).toEqual([4, 5, 10, 11]);
    expect(scoredOf({ messages }, "full")).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    const pair = { prompt: messages.slice(0, 1), completion: messages.slice(1) };
    expect(scoredOf(pair)).toEqual([4, 5, 10, 11]);
    // The assistant's mark belongs to the generation prompt, which is not scored.
    expect(scoredOf(pair, "completion")).toEqual([4, 5, 6, 7, 8, 9, 10, 11]);
    expect(scoredOf(pair, "full")).toHaveLength(11);
    expect(scoredOf({ prompt: messages.slice(0, 3), completion: messages.slice(3) }, "completion")).toEqual([
      10, 11,
    ]);
    expect(scoredOf({ prompt: "ab", completion: "c" }, "full")).toEqual([1, 2, 3]);
  });

  it("scores all tokens, or the completion, if the template does not reveal the answers, unless loss asks for them", () => {
    const opaque: Tokenizer = {
      ...tokenizer,
      render: (prompt, options) => ({ ...tokenizer.render(prompt, options), assistantMask: null }),
    };
    const messages = [user("h"), assistant("y")];
    expect(render({ messages }, null, opaque)).toMatchObject({
      form: "whole",
      scored: Int32Array.of(1, 2, 3, 4, 5),
    });
    const pair = { prompt: [user("h")], completion: [assistant("y")] };
    expect(render(pair, null, opaque)).toMatchObject({ form: "whole", scored: Int32Array.of(4, 5) });
    expect(render({ messages }, "assistant", opaque)).toMatchObject({
      reason: "template_failed",
      got: expect.stringContaining('mark them with {% generation %}, or set loss to "full"'),
    });
    expect(scoredOf({ messages }, "full", opaque)).toEqual([1, 2, 3, 4, 5]);
    expect(scoredOf(pair, "completion", opaque)).toEqual([4, 5]);
  });

  it("scores nothing of a chat whose tokens spell another text, unless loss needs no answers", () => {
    const unaligned: Tokenizer = {
      ...tokenizer,
      render: (prompt, options) => ({
        ...tokenizer.render(prompt, options),
        assistantMask: null,
        isUnaligned: true,
      }),
    };
    const messages = [user("h"), assistant("y")];
    for (const loss of [null, "assistant"] as const)
      expect(render({ messages }, loss, unaligned)).toMatchObject({ reason: "unaligned_tokens" });
    expect(scoredOf({ messages }, "full", unaligned)).toEqual([1, 2, 3, 4, 5]);
  });

  it("passes tools and variables to the template, and training's text only for the assistant's answers", () => {
    const asked: unknown[] = [];
    const recording: Tokenizer = {
      ...tokenizer,
      render: (prompt, options) => {
        asked.push([prompt, options]);
        return tokenizer.render(prompt, options);
      },
    };
    const tools = [{ type: "function" }];
    const pair = { prompt: [user("h")], completion: [assistant("y")], tools, chat_template_kwargs: { a: 1 } };
    const input = (messages: unknown) => ({ messages, tools, templateKwargs: { a: 1 } });
    const whole = [...pair.prompt, ...pair.completion];
    render(pair, null, recording);
    expect(asked).toEqual([
      [input(whole), { ending: "complete", training: true }],
      [input(pair.prompt), { ending: "generation", training: true }],
    ]);
    asked.length = 0;
    render(pair, "completion", recording);
    expect(asked).toEqual([
      [input(whole), { ending: "complete", training: false }],
      [input(pair.prompt), { ending: "generation", training: false }],
    ]);
  });

  it("reads answers that are only a tool call or thinking", () => {
    const silent: Tokenizer = {
      ...tokenizer,
      render: (prompt, options) => {
        const { messages } = prompt as TemplateChat;
        return tokenizer.render({ messages: messages.map(({ role }) => ({ role, content: "x" })) }, options);
      },
    };
    const call = { role: "assistant", tool_calls: [{ function: { name: "add", arguments: {} } }] };
    expect(scoredOf({ messages: [user("h"), call] }, null, silent)).toEqual([4, 5]);
    expect(scoredOf({ messages: [user("h"), { ...call, content: null }] }, null, silent)).toEqual([4, 5]);
    expect(
      scoredOf({ messages: [user("h"), { role: "assistant", thinking: "Hm" } as never] }, null, silent),
    ).toEqual([4, 5]);
    const nothing = { role: "assistant", content: null, tool_calls: [] } as never;
    expect(render({ messages: [user("h"), nothing] }, null, silent)).toMatchObject({ reason: "empty" });
  });

  it("reports a number or key of which a tokenizer writes the mark", () => {
    const writing: Tokenizer = {
      ...tokenizer,
      render: (prompt, options) => {
        const messages = (prompt as TemplateChat).messages as readonly {
          role: string;
          content: string;
          x?: unknown;
        }[];
        const written = messages.map(({ role, content, x = "" }) => ({
          role,
          content: `${content}${String(x)}`,
        }));
        return tokenizer.render({ messages: written }, options);
      },
    };
    const of = (fields: object) => {
      const row = parseRow({ messages: [user("h"), { ...assistant("y"), ...fields }] }, "row") as ParsedRow;
      return renderRow(writing, row, { maxLength: 100, truncate: false, loss: null });
    };
    expect(of({ x: "\uFDD92.0" })).toMatchObject({
      reason: "lost_number",
      got: "the number or key 2.0, which this tokenizer cannot write as Python does; write it as a string or as an integer up to 2⁵³ − 1",
    });
    expect(of({ x: String.raw`\ufdd99007199254740993` })).toMatchObject({ reason: "lost_number" });
    expect(of({ weight: "\uFDD91.0" })).toMatchObject({ form: null });
    expect(of({ x: 2.5 })).toMatchObject({ form: null });
  });

  it("reports rows without an assistant turn, unless all is scored, and rows without text", () => {
    const monologue = { messages: [user("h")] };
    expect(render(monologue)).toMatchObject({
      reason: "no_assistant_turn",
      got: 'only user; name the role of the answers "assistant", or set loss to "full"',
    });
    expect(scoredOf(monologue, "full")).toEqual([1, 2]);
    const pair = { prompt: [user("h"), assistant("y")], completion: [user("x")] };
    for (const loss of ["completion", "assistant"] as const)
      expect(render(pair, loss)).toMatchObject({
        reason: "no_assistant_turn",
        got: expect.stringMatching(/^only user in the completion; name the role/),
      });
    expect(render({ messages: [user("")] }, "full")).toMatchObject({ reason: "empty" });
    expect(render({ text: "" })).toMatchObject({ reason: "empty", got: "an empty text" });
    expect(render({ prompt: "ab", completion: "" })).toMatchObject({ reason: "empty" });
  });

  it("truncates text on the right, its end-of-sequence token included", () => {
    expect(render({ prompt: "ab", completion: "cd" }, null, tokenizer, 3)).toMatchObject({
      ids: Int32Array.of(97, 98, 99),
      scored: Int32Array.of(2),
      cutFrom: 5,
    });
    expect(render({ prompt: "ab", completion: "cd" }, null, tokenizer, 2)).toMatchObject({
      reason: "too_long",
    });
  });
});
