import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Tokenizer } from "@periodic-eval/core";
import { fakeTokenizer } from "@periodic-eval/testing";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { describe, expect, it } from "vitest";
import { findFixtures, fixtures, reportMissing } from "../../../testing/src/fixtures.test-data.ts";
import { temporaryFolder } from "../testing/tiny-run.test-data.ts";
import { loadDataset, loadPreferences } from "./dataset.ts";
import { parquetOfNumbers } from "./marked-rows.test-data.ts";
import { readRows } from "./read-rows.ts";

const options = { maxLength: 1000, onBadRow: "error", loss: "full" } as const;

async function withTemplate(template: string): Promise<Tokenizer> {
  const folder = await temporaryFolder();
  for (const name of ["tokenizer.json", "tokenizer_config.json"])
    await copyFile(join(fixtures, "tok-llama3", name), join(folder, name));
  await writeFile(join(folder, "chat_template.jinja"), template);
  return loadTokenizer(folder);
}

async function fileOf(content: string | Uint8Array, name = "rows.jsonl"): Promise<string> {
  const path = join(await temporaryFolder(), name);
  await writeFile(path, content);
  return path;
}

/** Returns the text of a file's row. */
async function trainedOn(path: string, template: string): Promise<string> {
  const tokenizer = await withTemplate(template);
  const { rows, badRows } = await loadDataset(path, tokenizer, options);
  expect(badRows).toEqual([]);
  return tokenizer.decode([...rows[0]!.ids]);
}

const template = "{{ messages[1].x|tojson }}{{ messages[1].x is string }}{{ tools|tojson }}{{ k }}";
const numbers = '{"b": 1.0, "1": 9007199254740993, "0": [1e3, 2]}';
const messages = `[{"role": "user", "content": "h"}, {"role": "assistant", "content": "y", "x": ${numbers}}]`;
/** Python: render_jinja_template([messages], chat_template=template, tools=tools, k=k) of transformers 5.24.0. */
const expected =
  '{"b": 1.0, "1": 9007199254740993, "0": [1000.0, 2]}False[{"b": 1.0, "1": 9007199254740993, "0": [1000.0, 2]}]' +
  "{'b': 1.0, '1': 9007199254740993, '0': [1000.0, 2]}";

const hasTokenizer = findFixtures(/^tok-llama3\/tokenizer\.json$/).length > 0;
if (!hasTokenizer) reportMissing("tok-llama3");

describe("a row whose numbers or keys JavaScript reads otherwise than Python", () => {
  it.runIf(hasTokenizer).each([
    ["an array", `[${numbers}]`],
    ["a string", JSON.stringify(`[${numbers}]`)],
  ])("is trained on as in Python, with tools as %s", async (_, tools) => {
    const row = `{"messages": ${messages}, "tools": ${tools}, "chat_template_kwargs": {"k": ${numbers}}}`;
    expect(await trainedOn(await fileOf(row), template)).toBe(expected);
    expect(await trainedOn(await fileOf(`[\n${row}\n]`, "rows.json"), template)).toBe(expected);
  });

  it.runIf(hasTokenizer)("is a preference as in Python", async () => {
    const [ask, answer] = JSON.parse(JSON.stringify(messages.split(', {"role": "assistant"'))) as string[];
    const chosen = `[{"role": "assistant"${answer!}`;
    const rejected = chosen.replace("1.0", "1");
    const tokenizer = await withTemplate("{% for m in messages %}{{ m.x|default('')|tojson }}{% endfor %}");
    const path = await fileOf(`{"prompt": ${ask!}], "chosen": ${chosen}, "rejected": ${rejected}}`);
    const { rows } = await loadPreferences(path, tokenizer, { ...options, isPrecomputed: false });
    const texts = [rows[0]!.chosen, rows[0]!.rejected].map(({ ids }) => tokenizer.decode([...ids]));
    expect(texts).toEqual(
      [`""${numbers}`, `""${numbers}`].map((text, i) =>
        text.replace("1e3", "1000.0").replace("1.0", i === 0 ? "1.0" : "1"),
      ),
    );
  });

  // Python: the same of datasets.load_dataset("parquet", …)[0].
  it.runIf(hasTokenizer)(
    "is read from Parquet as in Python: doubles, integers of 64 bits, the order of fields, JSON",
    async () => {
      const path = await fileOf(parquetOfNumbers, "rows.parquet");
      expect(await trainedOn(path, "{{ tools|tojson }} {{ b|tojson }}")).toBe(
        '[{"b": 1, "1": 2.0, "f": -0.0, "l": [1.0, 0.5, 1e+22, null], "big": 1152921504606846976}] {"c": 1.0, "1": 2}',
      );
    },
  );

  it("has no marks in other columns, nor in the ids of plain text", async () => {
    const values: unknown[] = [];
    const read = async (path: string) => {
      for await (const row of readRows(path)) values.push("value" in row ? row.value : row);
    };
    await read(
      await fileOf('{"text": "1.0", "prompt": 1.0, "1": 2.0, "meta": {"b": 1.0, "1": 2}, "tools": [1.0]}'),
    );
    await read(await fileOf(parquetOfNumbers, "rows.parquet"));
    expect(values).toMatchObject([
      { text: "1.0", prompt: 1, 1: 2, meta: { b: 1, 1: 2 }, tools: ["\uFDD91.0"] },
      { text: 1, tools: [{ b: 1, "\uFDD91": "\uFDD92.0" }] },
    ]);
    const tokenizer = fakeTokenizer();
    const path = await fileOf(`{"text": "1.0 {\\"1\\": 2.0}", "x": 1.0, "meta": [{"1": 1.0}]}`);
    const { rows } = await loadDataset(path, tokenizer, { ...options, loss: null });
    expect(tokenizer.decode([...rows[0]!.ids])).toMatch(/^1\.0 \{"1": 2\.0\}/);
  });

  it("is bad if its text has what looks like a mark", async () => {
    for (const text of ["\uFDD91.0", "\\uFDD9-2"]) {
      const path = await fileOf(`{"messages": [{"role": "user", "content": "a", "x": "${text}"}]}`);
      await expect(loadDataset(path, fakeTokenizer(), options)).rejects.toMatchObject({
        got: "invalid_text: the noncharacter U+FDD9 before a digit, which marks numbers here; remove it",
      });
    }
  });

  it("is bad with a tokenizer that writes the mark", async () => {
    const fake = fakeTokenizer();
    const writing: Tokenizer = {
      ...fake,
      render: (chat, how) => ({ ...fake.render(chat, how), text: JSON.stringify(chat) }),
    };
    const path = await fileOf(`{"messages": ${messages}}`);
    await expect(loadDataset(path, writing, options)).rejects.toMatchObject({
      got: expect.stringMatching(/^lost_number: the number or key 1\.0, which this tokenizer/),
    });
    const pair = await fileOf(`{"prompt": ${messages}, "chosen": ${messages}, "rejected": ${messages}}`);
    const preferences = loadPreferences(pair, writing, { ...options, isPrecomputed: false });
    await expect(preferences).rejects.toMatchObject({ got: expect.stringMatching(/^lost_number: /) });
  });
});
