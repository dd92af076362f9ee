import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { evaluationConformance, fakeModel } from "@periodic-eval/testing";
import { afterAll, describe, expect, it } from "vitest";
import { PeriodicForgettingCallback } from "../../config/callbacks.ts";
import { measure } from "../../session/window/measure.ts";
import { forgettingEvaluation, type ForgettingRow } from "./evaluation.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);
async function fileOf(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}
const article = Array.from({ length: 3000 }, (_, at) => `word${at}`).join(" ");

describe("conformance", async () => {
  const text = await fileOf("conformance.txt", article);
  const make = () => ({ evaluation: forgettingEvaluation({ text, chunks: 4 }), model: fakeModel() });
  for (const check of evaluationConformance(make)) it(check.name, check.run);
});

async function rowsOf(text: string, model = fakeModel(), chunks = 50) {
  const { rows, snapshot } = await measure(forgettingEvaluation({ text, chunks }), model);
  return { rows: rows as readonly ForgettingRow[], snapshot };
}

it("is the mean negative log-likelihood per byte and per token of the first 256 tokens of each window", async () => {
  // A token of this tokenizer is a byte.
  const model = fakeModel({ logLikelihood: (_, text) => (text.startsWith("word0 ") ? -128 : -512) });
  const { rows, snapshot } = await rowsOf(await fileOf("article.txt", article), model);
  expect(rows.length).toBe(Math.ceil(article.length / 2048) + (article.length % 2048 > 0 ? 0 : 1));
  const first = rows.find(({ id }) => id === "0")!;
  expect(first).toEqual({ id: "0", text: article.slice(0, 256), nats: -128, tokens: 256, bytes: 256 });
  const { length: n } = rows;
  const bytes = rows.reduce((sum, row) => sum + row.bytes, 0);
  expect(snapshot.metrics["nats_per_byte"]).toMatchObject({ n, higher_is_better: false, range: [0, null] });
  expect(snapshot.metrics["nats_per_byte"]!.value).toBeCloseTo((128 + 512 * (n - 1)) / bytes, 12);
  expect(snapshot.primary_metric).toBe("nats_per_byte");
});

it("keeps a character of several tokens whole, and counts its bytes", async () => {
  // 3 bytes each: 85 characters are 255 tokens.
  const { rows } = await rowsOf(await fileOf("birds.txt", "鳥".repeat(4096)));
  const chunk = { text: "鳥".repeat(85), tokens: 255, bytes: 255 };
  expect(rows).toMatchObject([chunk, chunk]);
});

it.each([
  ["removes white space", (text: string) => text.replaceAll(" ,", ",").trimStart()],
  ["adds white space", (text: string) => text.replaceAll(",", " ,")],
])("counts the bytes of the text, also if the tokenizer %s when it decodes", async (_, change) => {
  const { tokenizer, ...others } = fakeModel();
  const decode: typeof tokenizer.decode = async (...given) => (await tokenizer.decode(...given)).map(change);
  const model = { ...others, tokenizer: { ...tokenizer, decode } };
  const text = ` ${"bird , tree , 鳥 , ".repeat(200)}`;
  const { rows } = await rowsOf(await fileOf("commas.txt", text), model);
  const [row] = rows;
  expect(text.startsWith(row!.text)).toBe(true);
  // A token of this tokenizer is a byte; only white space at the end is not known.
  expect(row!.bytes).toBe(Buffer.byteLength(row!.text));
  expect(row!.tokens - row!.bytes).toBeLessThanOrEqual(1);
  expect(row!.tokens - row!.bytes).toBeGreaterThanOrEqual(0);
});

it("takes shorter chunks for a model of a short context", async () => {
  const { rows } = await rowsOf(await fileOf("short.txt", article), fakeModel({ contextLength: 100 }), 2);
  expect(rows.map(({ tokens }) => tokens)).toEqual([99, 99]);
});

it("joins the texts of rows, and names a row without one", async () => {
  const lines = [{ text: " = Title = \n" }, { text: article.slice(0, 2100).trimEnd() }, { text: "another" }];
  const { rows } = await rowsOf(
    await fileOf("rows.jsonl", lines.map((line) => JSON.stringify(line)).join("\n")),
  );
  expect(rows[0]!.text).toMatch(/^ = Title = \n/);
  expect(rows.at(-1)!.text).toMatch(/\nanother\n$/);
  const wrong = await fileOf("wrong.jsonl", '{"text":"a"}\n{"content":"b"}');
  await expect(rowsOf(wrong)).rejects.toThrow(
    "wrong.jsonl:2.text: got undefined, expected a string. Name a text file, or rows { text: string }.",
  );
  await expect(rowsOf(await fileOf("empty.txt", " \n \n"))).rejects.toThrow("got no text, expected text");
  await expect(rowsOf(await fileOf("one.txt", article.slice(0, 500)))).rejects.toThrow(
    "got a text of 500 characters, one chunk, expected text for two chunks or more: more than 2,048 characters. Name a longer text.",
  );
});

it("rejects scores that are not finite", async () => {
  const model = fakeModel({ logLikelihood: () => Number.NaN });
  await expect(rowsOf(await fileOf("nan.txt", article), model)).rejects.toThrow("Σ log p of NaN");
});

it("is measured by a callback that takes its options or a block", () => {
  expect(new PeriodicForgettingCallback({ text: "a.txt" }).id).toBe("forgetting");
  expect(new PeriodicForgettingCallback({ forgetting: { text: "a.txt" } }).asks).toHaveLength(1);
  expect(new PeriodicForgettingCallback({ forgetting: false, kl: true }).asks).toEqual([]);
  expect(() => new PeriodicForgettingCallback({ chunks: 0 })).toThrow(
    "PeriodicForgettingCallback options.chunks: got 0",
  );
});
