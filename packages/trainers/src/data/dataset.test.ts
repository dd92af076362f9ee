import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { fakeTokenizer } from "@periodic-eval/core/testing";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../testing/tiny-run.ts";
import type { BadRow } from "./bad-row.ts";
import type { ConversationSource } from "./conversations.ts";
import { loadDataset, type DatasetOptions } from "./dataset.ts";

// The fake template writes <|role|>content<|end|>; each mark is one token, each ASCII character one more.
const tokenizer = fakeTokenizer();
const load = (source: ConversationSource, options: Partial<DatasetOptions> = {}) =>
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

  it("scores only the completion of a pair, also where the prompt holds assistant turns", async () => {
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
      { messages: [user("hi"), assistant("yo"), { role: "system", content: "late" }] },
      { prompt: [user("hi"), assistant("yo")], completion: [user("again")] },
      { messages: [user("hi"), assistant("y".repeat(200))] },
      { messages: [{ role: "tool", content: "the fake template knows no tools" }, assistant("yo")] },
      7,
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
      `${path}:7 broken_roles`,
      `${path}:8 broken_roles`,
      `${path}:9 broken_roles`,
      `${path}:10 no_assistant_turn`,
      `${path}:11 too_long`,
      `${path}:12 template_failed`,
      `${path}:13 unknown_form`,
    ]);
    expect(badRows[9]!.got).toBe("206 tokens, 100 fit");
  });

  it("cuts a row that is too long on the right where asked, unless nothing to learn is left", async () => {
    const long = { messages: [user("hi"), assistant("y".repeat(200))] };
    const late = { messages: [user("h".repeat(200)), assistant("yo")] };
    const { rows, badRows, rowsRead } = await load([long, late], { onBadRow: "truncate", maxLength: 10 });
    // <|user|> h i <|end|> <|assistant|> are five tokens; the other five are the assistant's.
    expect(rowsRead).toBe(2);
    expect([...rows[0]!.scored]).toEqual([5, 6, 7, 8, 9]);
    expect(rows[0]!.ids).toHaveLength(10);
    expect(badRows).toEqual([
      // One user mark, two letters, an end, an assistant mark, 200 letters, an end.
      { where: "dataset[0]", reason: "too_long", got: "206 tokens, cut to the first 10" },
      {
        where: "dataset[1]",
        reason: "too_long",
        got: "206 tokens, and none to learn among the first 10",
      },
    ]);
  });

  it("throws at the first bad row where asked", async () => {
    const path = await fileOf([JSON.stringify({ messages: [user("hi")] })]);
    await expect(load(path, { onBadRow: "error" })).rejects.toThrow(`${path}:1: got no_assistant_turn`);
  });

  it("throws where nothing is left, or the file is missing", async () => {
    await expect(load([])).rejects.toThrow("got no rows");
    await expect(load([{ messages: [user("hi")] }])).rejects.toThrow("got 1 rows, all bad");
    const missing = await load("no/such/file.jsonl").catch((error: unknown) => error);
    expect(PeriodicEvalError.is(missing, "data")).toBe(true);
    expect(String(missing)).toContain("no/such/file.jsonl: got ENOENT");
  });

  it("has a hash that tells other data and another order", async () => {
    const [a, b] = [{ messages: [user("hi"), assistant("yo")] }, { messages: [user("hi"), assistant("ho")] }];
    const hashes = await Promise.all(
      [[a, b], [a, b], [b, a], [a]].map(async (rows) => (await load(rows)).hash),
    );
    expect(hashes[1]).toBe(hashes[0]);
    expect(new Set(hashes).size).toBe(3);
  });
});
