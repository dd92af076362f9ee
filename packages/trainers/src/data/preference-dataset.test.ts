import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { existsSync } from "node:fs";
import { PeriodicEvalError, type TemplateChat, type Tokenizer } from "@periodic-eval/core";
import { fakeTokenizer } from "@periodic-eval/testing";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { describe, expect, it } from "vitest";
import { fixtures, isPublished, publishedOnly } from "../../../testing/src/fixtures.test-data.ts";
import { temporaryFolder } from "../testing/tiny-run.test-data.ts";
import { loadPreferences, type PreferenceOptions } from "./dataset.ts";
import type { PreferenceSource, PreferencePair } from "./preference-rows.ts";

// The fake template writes <|role|>content<|end|>; each mark is one token, each ASCII character one more.
const tokenizer = fakeTokenizer();
const load = (source: PreferenceSource, options: Partial<PreferenceOptions> = {}) =>
  loadPreferences(source, tokenizer, {
    maxLength: 100,
    onBadRow: "drop",
    isPrecomputed: false,
    ...options,
  });
const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });
const good = { prompt: [user("hi")], chosen: [assistant("yes")], rejected: [assistant("no")] };
const text = { prompt: "2 + 2 =", chosen: " 4", rejected: " five" };

describe("loadPreferences", () => {
  it("scores everything after the generation prompt, the end of the turn included", async () => {
    const { rows } = await load([good]);
    // <|user|> h i <|end|> <|assistant|> y e s <|end|>
    const { chosen, rejected } = rows[0]!;
    expect([chosen.ids.length, ...chosen.scored]).toEqual([9, 5, 6, 7, 8]);
    expect([rejected.ids.length, ...rejected.scored]).toEqual([8, 5, 6, 7]);
  });

  it("reads texts, and ends each completion once", async () => {
    const { rows } = await load([text, { ...text, chosen: " 4<|end|>" }]);
    const [one, other] = rows as [PreferencePair, PreferencePair];
    expect(tokenizer.decode([...one.chosen.ids])).toBe("2 + 2 = 4<|end|>");
    expect(tokenizer.decode([...one.rejected.ids])).toBe("2 + 2 = five<|end|>");
    expect([...one.chosen.scored]).toEqual([7, 8, 9]);
    expect(other.chosen).toEqual(one.chosen);
  });

  it("takes the common beginning as the prompt if it is missing or of another type, as TRL does", async () => {
    const chats = [
      [user("hi"), assistant("yes")],
      [user("hi"), assistant("no")],
    ] as const;
    const { rows: given } = await load([good, text]);
    const whole = { chosen: chats[0], rejected: chats[1] };
    const { rows } = await load([
      whole,
      { ...whole, prompt: "hi" },
      // TRL leaves the space before the first difference in the completions.
      { chosen: "2 + 2 = 4", rejected: "2 + 2 = five" },
      { prompt: [user("2 + 2 =")], chosen: "2 + 2 = 4", rejected: "2 + 2 = five" },
    ]);
    const idsOf = ({ chosen, rejected }: PreferencePair) => [chosen, rejected];
    expect(rows.map(idsOf)).toEqual([given[0], given[0], given[1], given[1]].map((pair) => idsOf(pair!)));
    const later = [user("hi"), assistant("yes"), user("more")];
    const { rows: turns, badRows } = await load([
      { chosen: [...later, assistant("a")], rejected: [...later, assistant("b")] },
      { chosen: [assistant("a")], rejected: [assistant("b")] },
      { chosen: "a", rejected: "b" },
      { chosen: chats[0], rejected: chats[0] },
      { chosen: [user("hi"), assistant("a")], rejected: [user("ho"), assistant("a")] },
    ]);
    expect(tokenizer.decode([...turns[0]!.chosen.ids.subarray(turns[0]!.chosen.scored[0])])).toBe("a<|end|>");
    expect(badRows.map(({ reason }) => reason)).toEqual([
      "unknown_form",
      "unknown_form",
      "no_preference",
      "unknown_form",
    ]);
  });

  it("reports every kind of bad row with file and line, and leaves it out", async () => {
    const path = join(await temporaryFolder(), "pairs.jsonl");
    const rows = [
      good,
      "{not json",
      { prompt: [user("hi")], completion: [assistant("yo")] },
      { ...good, prompt: "hi" },
      { ...text, rejected: "" },
      { ...good, prompt: [] },
      { ...good, chosen: [] },
      { ...good, rejected: [assistant("")] },
      { ...good, chosen: [{ role: "alien", content: "yo" }] },
      { ...good, chosen: [{ content: "late" }] },
      { ...good, rejected: [user("again")] },
      { ...good, chosen: [assistant("y".repeat(200))] },
      { ...good, rejected: good.chosen },
      { ...good, prompt: [{ role: "tool", content: "the fake template knows no tools" }] },
      7,
      { ...text, chosen: " \n" },
      { ...good, rejected: [assistant(" ")] },
      { ...good, tools: 3 },
    ];
    await writeFile(
      path,
      rows.map((row) => (typeof row === "string" ? row : JSON.stringify(row))).join("\n"),
    );
    const data = await load(path);
    expect(data.rows).toHaveLength(1);
    expect(data.rowsRead).toBe(18);
    const reasons = data.badRows.map(({ where, reason }) => `${where.slice(path.length + 1)} ${reason}`);
    expect(reasons).toEqual([
      "2 not_json",
      "3 unknown_form",
      "4 unknown_form",
      "5 empty",
      "6 empty",
      "7 empty",
      "8 empty",
      "9 no_assistant_turn",
      "10 broken_roles",
      "11 no_assistant_turn",
      "12 too_long",
      "13 no_preference",
      "14 template_failed",
      "15 unknown_form",
      "16 empty",
      "17 empty",
      "18 broken_tools",
    ]);
    expect(data.badRows[2]!.got).toContain(
      'prompt "hi", chosen an array of 1, rejected an array of 1 instead of',
    );
    await expect(load(path, { onBadRow: "error" })).rejects.toMatchObject({
      where: `${path}:2`,
      got: "not_json: {not json; and 16 more bad rows",
      expected: "a prompt and two completions that fit",
    });
  });

  it("reads turns of a role in a row, from and value, tool calls, and completions that begin with a tool's reply", async () => {
    const asked: unknown[] = [];
    const recording: Tokenizer = {
      ...tokenizer,
      render: (prompt, options) => {
        asked.push(prompt);
        const messages = (prompt as TemplateChat).messages.map(({ role, content }) =>
          role === "tool" ? user("tool") : { role, content: (content ?? "") as string },
        );
        return tokenizer.render({ messages }, options);
      },
    };
    const call = { role: "assistant", tool_calls: [{ function: { name: "add", arguments: {} } }] };
    const tools = [{ type: "function" }];
    const rows = [
      { ...good, prompt: [user("hi"), assistant("yo")] },
      {
        prompt: [{ from: "user", value: "hi" }],
        chosen: [{ from: "assistant", value: "yes" }],
        rejected: good.rejected,
      },
      {
        prompt: [user("hi"), call],
        chosen: [{ role: "tool", content: "4" }, assistant("yes")],
        rejected: [assistant("no")],
      },
      { ...good, chosen: [call], tools: JSON.stringify(tools), chat_template_kwargs: { a: 1 } },
    ];
    const { badRows } = await loadPreferences(rows as never, recording, {
      maxLength: 100,
      onBadRow: "drop",
      isPrecomputed: false,
    });
    expect(badRows).toEqual([]);
    expect(asked.slice(3, 5)).toEqual([
      { messages: [user("hi")], tools: null, templateKwargs: {} },
      { messages: [user("hi"), assistant("yes")], tools: null, templateKwargs: {} },
    ]);
    expect(asked.at(-2)).toEqual({ messages: [user("hi"), call], tools, templateKwargs: { a: 1 } });
  });

  it(`truncates each sequence of a pair that is too long, with onBadRow "truncate"`, async () => {
    const long = { ...good, chosen: [assistant("y".repeat(200))] };
    const data = await load([long], { maxLength: 7, onBadRow: "truncate" });
    expect(data.rows.map(({ chosen, rejected }) => [chosen.ids.length, rejected.ids.length])).toEqual([
      [7, 7],
    ]);
    expect(data.badRows).toEqual([
      { where: "dataset[0]", reason: "too_long", got: "206 tokens, cut to the first 7" },
    ]);
    // A prompt of 5 tokens leaves no token of the completions.
    await expect(load([long], { maxLength: 5, onBadRow: "truncate" })).rejects.toThrow(
      "1 rows, all bad (dataset[0]: too_long (a prompt of 5 tokens, 5 fit))",
    );
  });

  it("never truncates a pair with precomputed log-probs: it throws, or leaves the pair out", async () => {
    const numbers = { ref_chosen_logps: -3.5, ref_rejected_logps: -2 };
    const long = { ...good, chosen: [assistant("y".repeat(20))], ...numbers };
    const options = { maxLength: 9, isPrecomputed: true };
    await expect(load([{ ...good, ...numbers }, long], { ...options, onBadRow: "truncate" })).rejects.toThrow(
      "dataset[1]: got a pair of 26 tokens to be cut to 9, with ref_chosen_logps and ref_rejected_logps of the whole pair, " +
        'expected a pair that fits. Set maxLength to 26 or more, onBadRow: "drop"',
    );
    const { rows, badRows } = await load([{ ...good, ...numbers }, long], options);
    expect(rows).toHaveLength(1);
    expect(badRows).toMatchObject([{ where: "dataset[1]", reason: "too_long" }]);
  });

  it("requires the reference's log-probs with a precomputed reference", async () => {
    const row = { ...good, ref_chosen_logps: -3.5, ref_rejected_logps: -2 };
    const none = { ...row, ref_rejected_logps: null as never };
    const data = await load([row, good, none, { ...row, ref_chosen_logps: Number.NaN }], {
      isPrecomputed: true,
    });
    expect(data.rows.map(({ reference }) => reference)).toEqual([{ chosen: -3.5, rejected: -2 }]);
    expect(data.badRows.map(({ reason, got }) => `${reason}: ${got}`)).toEqual(
      Array<string>(3).fill("unknown_form: no numbers ref_chosen_logps and ref_rejected_logps"),
    );
    expect((await load([row])).rows[0]!.reference).toBeNull();
  });

  it("rejects reference log-probs above 0", async () => {
    const row = { ...good, ref_chosen_logps: -3.5, ref_rejected_logps: -2 };
    const rows = [row, { ...row, ref_chosen_logps: 7 }, { ...row, ref_rejected_logps: 0.01 }];
    // Rounding of a certain completion.
    const certain = { ...row, ref_chosen_logps: 1e-6 };
    const { badRows } = await load([...rows, certain], { isPrecomputed: true });
    expect(badRows).toEqual([
      {
        where: "dataset[1]",
        reason: "broken_reference",
        got: expect.stringContaining("ref_chosen_logps 7, "),
      },
      {
        where: "dataset[2]",
        reason: "broken_reference",
        got: expect.stringContaining("ref_rejected_logps 0.01, "),
      },
    ]);
    await expect(load(rows, { isPrecomputed: true, onBadRow: "error" })).rejects.toMatchObject({
      where: "dataset[1]",
      got: expect.stringMatching(/^broken_reference: ref_chosen_logps 7, above 0/),
    });
    // A reference of another kind does not read these columns.
    expect((await load(rows)).badRows).toEqual([]);
  });

  it("warns of prompts that end differently alone, and scores from the first different token", async () => {
    const thinking = {
      ...tokenizer,
      render: (prompt: Parameters<typeof tokenizer.render>[0], options?: { ending?: "generation" }) => {
        const rendered = tokenizer.render(prompt, options);
        return options?.ending === "generation" ? { ...rendered, ids: [...rendered.ids, 60, 61] } : rendered;
      },
    } as typeof tokenizer;
    const options = { maxLength: 100, onBadRow: "drop", isPrecomputed: false } as const;
    const { rows, warnings } = await loadPreferences([good], thinking, options);
    expect([...rows[0]!.rejected.scored]).toEqual([5, 6, 7]);
    expect(warnings).toEqual([
      "1 of 1 prompts end with other tokens when rendered without a completion (dataset[0]); completions are scored from the first different token",
    ]);
  });

  it("names unused columns, and rows whose prompt is the common beginning of both answers", async () => {
    const warningsOf = async (...rows: readonly object[]) => (await load(rows as never)).warnings;
    const rest = { chosen: "ab", rejected: "ac" };
    const early =
      "the prompt of 1 of 1 rows (first: dataset[0]) is the common beginning of chosen and rejected";
    expect(await warningsOf({ ...good, tools: [], id: 7, none: null })).toEqual(["unused columns: id"]);
    expect(await warningsOf({ ...rest, system: "s", question: "q" })).toEqual([
      "unused columns: system, question",
      early,
    ]);
    expect(await warningsOf({ ...rest, prompt: "a", tools: [], ref_chosen_logps: -1 })).toEqual([
      "unused columns: tools, ref_chosen_logps",
    ]);
    const whole = { chosen: [user("h"), assistant("y")], rejected: [user("h"), assistant("z")] };
    expect(await warningsOf({ ...whole, prompt: "h" })).toEqual(["unused columns: prompt", early]);
  });

  it("hashes ids and scored positions", async () => {
    const { hash } = await load([good]);
    expect((await load([good, { prompt: 3 } as never])).hash).toBe(hash);
    const swapped = { ...good, chosen: good.rejected, rejected: good.chosen };
    expect((await load([swapped])).hash).not.toBe(hash);
  });

  it("throws for a source without a pair", async () => {
    await expect(load([])).rejects.toThrow(PeriodicEvalError);
  });
});

const folder = join(fixtures, "tok-llama3");

/** TRL 1.16.0's `DPOTrainer(train_dataset=…, processing_class=AutoTokenizer.from_pretrained(folder)).train_dataset`. */
describe.skipIf(!isPublished || !existsSync(folder))(`rendered preferences (${publishedOnly})`, () => {
  it("have the same tokens as in TRL, for chats and texts: prompt, chosen, rejected", async () => {
    const llama = await loadTokenizer(folder);
    const source: PreferenceSource = [
      {
        prompt: [
          { role: "system", content: "Be brief." },
          user("Hi"),
          assistant("Hello!"),
          user("Add 2 and 2."),
        ],
        chosen: [assistant("4")],
        rejected: [assistant("Five"), user("Sure?"), assistant("Yes")],
      },
      { prompt: "The sky is", chosen: " blue.", rejected: " green, as ever" },
      { prompt: "2 + 2 =", chosen: "4", rejected: " 5" },
    ];
    // prettier-ignore
    const expected = [
      [
        [1000, 1001, 82, 745, 560, 1003, 198, 198, 34, 315, 926, 220, 42, 77, 692, 587, 70, 68, 690, 324, 25, 690, 68, 291, 76, 65, 276, 220, 655, 17, 18, 198, 198, 33, 68, 286, 317, 68, 69, 13, 1002, 1001, 84, 780, 1003, 198, 198, 39, 72, 1002, 1001, 295, 310, 527, 83, 1003, 198, 198, 39, 980, 327, 0, 1002, 1001, 84, 780, 1003, 198, 198, 32, 67, 67, 220, 17, 296, 220, 17, 13, 1002, 1001, 295, 310, 527, 83, 1003, 198, 198],
        [19, 1002],
        [37, 72, 357, 1002, 1001, 84, 780, 1003, 198, 198, 50, 84, 263, 30, 1002, 1001, 295, 310, 527, 83, 1003, 198, 198, 56, 329, 1002],
      ],
      [[1000, 309, 269, 74, 88, 284], [286, 75, 84, 68, 13, 1002], [412, 263, 273, 11, 340, 299, 540, 1002]],
      [[1000, 17, 220, 10, 220, 17, 689], [19, 1002], [220, 20, 1002]],
    ];
    const options = { maxLength: 1000, onBadRow: "error", isPrecomputed: false } as const;
    const { rows } = await loadPreferences(source, llama, options);
    const found = rows.map(({ chosen, rejected }) => {
      const start = chosen.scored[0]!;
      expect(rejected.scored[0]).toBe(start);
      return [chosen.ids.slice(0, start), chosen.ids.slice(start), rejected.ids.slice(start)].map((ids) => [
        ...ids,
      ]);
    });
    expect(found).toEqual(expected);
  });
});
