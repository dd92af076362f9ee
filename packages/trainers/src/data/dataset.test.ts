import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PeriodicEvalError, type Tokenizer } from "@periodic-eval/core";
import { fakeTokenizer } from "@periodic-eval/testing";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../testing/tiny-run.test-data.ts";
import type { BadRow } from "./bad-row.ts";
import { loadDataset, type DatasetOptions } from "./dataset.ts";
import type { SFTRow } from "./forms.ts";
import type { RowSource } from "./read-rows.ts";
import type { LossOn } from "./render-row.ts";

// The fake template writes <|role|>content<|end|>; each mark is one token, each ASCII character one more.
const tokenizer = fakeTokenizer();
const load = (source: RowSource<SFTRow>, options: Partial<DatasetOptions> = {}) =>
  loadDataset(source, tokenizer, { maxLength: 100, onBadRow: "drop", ...options });
const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });
const reasons = (badRows: readonly BadRow[]) => badRows.map(({ where, reason }) => `${where} ${reason}`);

async function fileOf(lines: readonly string[]): Promise<string> {
  const path = join(await temporaryFolder(), "rows.jsonl");
  await writeFile(path, lines.join("\n"));
  return path;
}

describe("loadDataset", () => {
  it("scores the tokens of assistant turns", async () => {
    const { rows } = await load([{ messages: [user("hi"), assistant("yo"), user("x"), assistant("z")] }]);
    // <|user|> h i <|end|> <|assistant|> y o <|end|> <|user|> x <|end|> <|assistant|> z <|end|>: 14 tokens.
    expect(rows[0]!.ids).toHaveLength(14);
    expect([...rows[0]!.scored]).toEqual([5, 6, 7, 12, 13]);
  });

  it("scores only the completion of a pair, even if the prompt has assistant turns", async () => {
    const prompt = [user("hi"), assistant("yo"), user("x")];
    const { rows } = await load([{ prompt, completion: [assistant("z")] }]);
    expect([...rows[0]!.scored]).toEqual([12, 13]);
  });

  it("reads JSON Lines with a byte-order mark, Windows line ends and blank lines", async () => {
    const row = JSON.stringify({ messages: [user("hi"), assistant("yo")] });
    const path = await fileOf([`\uFEFF${row}\r`, "", `${row}\r`]);
    const { rows } = await load(path);
    expect(rows.map(({ where }) => where)).toEqual([`${path}:1`, `${path}:3`]);
  });

  it("reports every kind of bad row with file and line, and leaves it out", async () => {
    const rows = [
      { messages: [user("good"), assistant("row")] },
      "{not json",
      { question: "hi", answer: "yo" },
      { messages: [] },
      { messages: [user("hi")] },
      { messages: [user("hi"), assistant("")] },
      { messages: [{ role: "alien", content: "hi" }, assistant("yo")] },
      { messages: [user("hi"), { role: "assistant", content: 3 }] },
      { messages: [{ content: "hi" }, assistant("yo")] },
      { prompt: [user("hi"), assistant("yo")], completion: [user("again")] },
      { messages: [user("hi"), assistant("y".repeat(200))] },
      { messages: [{ role: "tool", content: "the fake template knows no tools" }, assistant("yo")] },
      7,
      { text: " \n\t" },
      { prompt: "p", completion: "\u3000" },
      { messages: [user("hi"), assistant("  ")] },
      {
        conversations: [
          { from: "human", value: "hi" },
          { from: "gpt", value: "yo" },
        ],
      },
      { messages: [user("hi"), assistant("yo")], tools: 3 },
    ];
    const path = await fileOf(rows.map((row) => (typeof row === "string" ? row : JSON.stringify(row))));
    const { rows: kept, badRows } = await load(path);
    expect(kept).toHaveLength(1);
    expect(reasons(badRows)).toEqual([
      `${path}:2 not_json`,
      `${path}:3 unknown_form`,
      `${path}:4 empty`,
      `${path}:5 no_assistant_turn`,
      `${path}:6 empty`,
      `${path}:7 template_failed`,
      `${path}:8 broken_content`,
      `${path}:9 broken_roles`,
      `${path}:10 no_assistant_turn`,
      `${path}:11 too_long`,
      `${path}:12 template_failed`,
      `${path}:13 unknown_form`,
      `${path}:14 empty`,
      `${path}:15 empty`,
      `${path}:16 empty`,
      `${path}:17 no_assistant_turn`,
      `${path}:18 broken_tools`,
    ]);
    expect(badRows[9]!.got).toBe("206 tokens, 100 fit");
    expect(badRows.slice(12).map(({ got }) => got)).toEqual([
      "only white space",
      "only white space",
      "assistant turns without text",
      'only human, gpt; name the role of the answers "assistant", or set loss to "full"',
      "tools 3 instead of an array of JSON schemas, or its JSON as a string",
    ]);
  });

  it("reads turns of a role in a row, a later system turn, and a conversation that begins with an answer", async () => {
    const { rows, badRows } = await load([
      { messages: [user("hi"), assistant("yo"), assistant("z")] },
      { messages: [user("hi"), user("x"), assistant("yo")] },
      { messages: [user("hi"), assistant("yo"), { role: "system", content: "late" }] },
      { messages: [assistant("yo"), user("hi")] },
      { prompt: [user("hi"), assistant("yo")], completion: [assistant("z")] },
    ]);
    expect(badRows).toEqual([]);
    // <|user|> h i <|end|> <|assistant|> y o <|end|> <|assistant|> z <|end|>
    expect([...rows[0]!.scored]).toEqual([5, 6, 7, 9, 10]);
    expect([...rows[1]!.scored]).toEqual([8, 9, 10]);
    expect([...rows[2]!.scored]).toEqual([5, 6, 7]);
    expect([...rows[3]!.scored]).toEqual([1, 2, 3]);
    expect([...rows[4]!.scored]).toEqual([9, 10]);
  });

  it("says in one line which rows training rewrites, and in one which rows it scores whole", async () => {
    const row = { messages: [user("hi"), assistant("yo")] };
    const other = (changes: object): Tokenizer => ({
      ...tokenizer,
      render: (prompt, options) => ({ ...tokenizer.render(prompt, options), ...changes }),
    });
    const warnings = async (changes: object) =>
      (await loadDataset([row, {} as never, row], other(changes), { maxLength: 100, onBadRow: "drop" }))
        .warnings;
    expect(await warnings({})).toEqual([]);
    expect(await warnings({ isRewritten: true })).toEqual([
      "earlier answers of 2 of 3 rows (first: dataset[0]) are written with their thinking, as the chat template writes the last " +
        "answer: the template leaves it out, TRL's training templates do not",
    ]);
    expect(await warnings({ assistantMask: null })).toEqual([
      "all tokens of 2 of 3 rows (first: dataset[0]) are scored, or all of their completion: the chat template does not " +
        "reveal which the assistant writes; mark them in it with {% generation %}",
    ]);
  });

  it(`truncates a row that is too long with onBadRow "truncate", unless no scored token remains`, async () => {
    const long = { messages: [user("hi"), assistant("y".repeat(200))] };
    const late = { messages: [user("h".repeat(200)), assistant("yo")] };
    const { rows, badRows, rowsRead } = await load([long, late], { onBadRow: "truncate", maxLength: 10 });
    // <|user|> h i <|end|> <|assistant|> are five tokens; the other five belong to the assistant.
    expect(rowsRead).toBe(2);
    expect([...rows[0]!.scored]).toEqual([5, 6, 7, 8, 9]);
    expect(rows[0]!.ids).toHaveLength(10);
    expect(badRows).toEqual([
      // One user mark, two letters, an end, an assistant mark, 200 letters, an end.
      { where: "dataset[0]", reason: "too_long", got: "206 tokens, cut to the first 10" },
      {
        where: "dataset[1]",
        reason: "too_long",
        got: "206 tokens, with no scored token among the first 10",
      },
    ]);
  });

  it(`throws for the first bad row with onBadRow "error", counts the others and lists all`, async () => {
    const good = { messages: [user("hi"), assistant("yo")] };
    const path = await fileOf(
      [good, { messages: [user("hi")] }, {}, 7, good].map((row) => JSON.stringify(row)),
    );
    const kept: BadRow[][] = [];
    const keepBadRows = async (badRows: readonly BadRow[]) => {
      kept.push([...badRows]);
      return "They are kept.";
    };
    await expect(load(path, { onBadRow: "error", keepBadRows })).rejects.toThrow(
      `${path}:2: got no_assistant_turn: only user; name the role of the answers "assistant", or set loss to "full"; and 2 more bad rows, ` +
        "expected a row that can be trained on unchanged. " +
        'Correct the rows, or set onBadRow to "drop" or "truncate". They are kept.',
    );
    expect(reasons(kept[0]!)).toEqual([
      `${path}:2 no_assistant_turn`,
      `${path}:3 unknown_form`,
      `${path}:4 unknown_form`,
    ]);
    await expect(load([good, 7 as never], { onBadRow: "error" })).rejects.toThrow(
      /dataset\[1\]: got unknown_form: 7 [^;]*\. Correct the row, or set onBadRow to "drop" or "truncate"\.$/,
    );
    await expect(load([7 as never], { keepBadRows })).rejects.toThrow(/or with text\. They are kept\.$/);
  });

  it("throws if no row is left, or the file is missing", async () => {
    await expect(load([])).rejects.toMatchObject({ got: "no rows" });
    await expect(load([{ messages: [user("hi")] }])).rejects.toMatchObject({
      got: expect.stringContaining("1 rows, all bad (dataset[0]: no_assistant_turn (only user; "),
    });
    const missing = await load("no/such/file.jsonl").catch((error: unknown) => error);
    expect(PeriodicEvalError.is(missing, "data")).toBe(true);
    expect(String(missing)).toContain("no/such/file.jsonl: got a path which does not exist, expected");
  });

  it("suggests the cause when no row of a file can be read", async () => {
    const path = join(await temporaryFolder(), "rows.jsonl");
    await writeFile(path, Buffer.from('{"text":"abc"}\n', "utf16le"));
    // In UTF-16 without a byte-order mark every second byte is 0, which JSON does not allow.
    await expect(load(path)).rejects.toThrow("Write JSON Lines: one JSON object per line");
    await writeFile(path, Buffer.from('\uFEFF{"text":"abc"}\n', "utf16le"));
    await expect(load(path)).rejects.toThrow(
      "Write the file as UTF-8, and decompress it unless it is a gzip file.",
    );
    await writeFile(path, "text\nabc\n");
    await expect(load(path)).rejects.toThrow("datasets.load_dataset(…).to_json(path) converts CSV");
  });

  it("reads a row whose unused columns have NaN or a long integer, and reports NaN in a message", async () => {
    const path = join(await temporaryFolder(), "rows.jsonl");
    const chat = (extra: string) =>
      `{"messages":[{"role":"user","content":"hi"${extra}},{"role":"assistant","content":"yes"}]}`;
    const lines = [
      `{"text":"abc","score":NaN,"id":12345678901234567890,"loss":-Infinity}`,
      chat(`,"score":NaN`),
      chat(`,"turn":12345678901234567890`),
      `{"text":NaN}`,
    ];
    await writeFile(path, lines.join("\n"));
    const { rows, badRows } = await load(path, { onBadRow: "drop" });
    // The template does not write the integer.
    expect(rows.map(({ where }) => where)).toEqual([`${path}:1`, `${path}:3`]);
    expect(badRows.map(({ got }) => got)).toEqual([
      "messages[0].score NaN instead of a finite number",
      "NaN instead of a string",
    ]);
  });

  it("throws for tokens of another model's tokenizer, with every onBadRow", async () => {
    // "c" is 99; the end token of the fake tokenizer is 257.
    await expect(load([{ text: "abc" }], { vocabSize: 257 })).rejects.toMatchObject({
      where: "dataset[0]",
      got: "the token 257",
      expected: "ids from 0 to 256, the model's vocabulary",
      fix: "Use the tokenizer of this model.",
    });
    expect((await load([{ text: "abc" }], { vocabSize: 258 })).rows).toHaveLength(1);
  });

  it("reads rows of different forms from one file, and warns once of unused columns", async () => {
    const conversation = [user("hi"), assistant("yo")];
    const path = await fileOf(
      [
        { text: "abc", id: 1 },
        { prompt: "ab", completion: "c", id: 2, messages: null },
        { prompt: [user("hi")], completion: [assistant("yo")], score: 0.5 },
        { messages: conversation, prompt: "of which there is no completion" },
      ].map((row) => JSON.stringify(row)),
    );
    const { rows, badRows, warnings } = await load(path);
    expect(badRows).toEqual([]);
    // a b c <|end|>, twice; <|user|> h i <|end|> <|assistant|> y o <|end|>, twice.
    expect(rows.map(({ ids }) => ids.length)).toEqual([4, 4, 8, 8]);
    expect(rows.map(({ scored }) => [...scored])).toEqual([
      [1, 2, 3],
      [2, 3],
      [5, 6, 7],
      [5, 6, 7],
    ]);
    expect(warnings).toEqual(["unused columns: id, score, prompt"]);
  });

  it("names at most twenty unused columns", async () => {
    const { warnings } = await load(
      Array.from({ length: 50 }, (_, i) => ({ text: "abc", [`column${i}`]: i })),
    );
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/^unused columns: column0, .*, column19, …$/);
  });

  it("warns that texts do not end if the tokenizer has no end-of-sequence token", async () => {
    const { eosId: _, ...endless } = tokenizer;
    const options = { maxLength: 100, onBadRow: "drop" } as const;
    const { rows, warnings } = await loadDataset([{ text: "abc" }], endless, options);
    expect([...rows[0]!.ids]).toEqual([97, 98, 99]);
    expect(warnings).toEqual([
      "texts end without an end-of-sequence token, because the tokenizer has none (eosId)",
    ]);
    const chat = [{ messages: [user("hi"), assistant("yo")] }];
    expect((await loadDataset(chat, endless, options)).warnings).toEqual([]);
  });

  it("throws if `loss` does not fit a row's form, with every onBadRow", async () => {
    const errorOf = async (row: SFTRow, loss: LossOn) => {
      const error: unknown = await load([row], { loss }).catch((thrown: unknown) => thrown);
      expect(PeriodicEvalError.is(error, "config")).toBe(true);
      return (error as Error).message;
    };
    expect(await errorOf({ text: "abc" }, "assistant")).toContain(
      'SFT config.loss: got "assistant" for the row dataset[0], which has text, expected "full".',
    );
    expect(await errorOf({ text: "abc" }, "completion")).toContain('which has text, expected "full".');
    expect(await errorOf({ prompt: "a", completion: "b" }, "assistant")).toContain(
      'which has prompt and completion as text, expected "completion" or "full".',
    );
    expect(await errorOf({ messages: [user("hi"), assistant("yo")] }, "completion")).toContain(
      'which has messages, expected "assistant" or "full".',
    );
  });

  it("changes its hash with the data and their order", async () => {
    const [a, b] = [{ messages: [user("hi"), assistant("yo")] }, { messages: [user("hi"), assistant("ho")] }];
    const hashes = await Promise.all(
      [[a, b], [a, b], [b, a], [a]].map(async (rows) => (await load(rows)).hash),
    );
    expect(hashes[1]).toBe(hashes[0]);
    expect(new Set(hashes).size).toBe(3);
  });
});
