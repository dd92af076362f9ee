import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { reportMissing } from "../../../../testing/src/fixtures.test-data.ts";
import { askPython, needsPython, pythonHas } from "../../testing/python.test-data.ts";
import { fuzzIds, fuzzTexts } from "../fuzz-texts.test-data.ts";
import { loadTokenizer } from "../load-tokenizer.ts";
import { classCases, tokenCases } from "./folders.test-data.ts";

interface Verdict {
  readonly refused?: string;
  readonly different?: readonly { readonly input: unknown; readonly expected: unknown }[];
}

const digest = (...values: unknown[]) =>
  createHash("sha1").update(JSON.stringify(values)).digest("hex").slice(0, 10);
const has = pythonHas("transformers");
const needs = needsPython("transformers 5.24");

type Tokenizer = Awaited<ReturnType<typeof loadTokenizer>>;
const resultOfIds = (tokenizer: Tokenizer, ids: readonly number[]) => [
  tokenizer.decode(ids),
  tokenizer.decode(ids, { specialTokens: false }),
];
const resultOfText = (tokenizer: Tokenizer, text: string) => {
  const ids = tokenizer.encode(text);
  return [ids, tokenizer.encode(text, { specialTokens: false }), ...resultOfIds(tokenizer, ids)];
};

/** Compares folders with AutoTokenizer, in one program. Returns what differs, by folder. */
async function compare(folders: readonly string[], inputs: readonly string[]) {
  const tokenizers = await Promise.all(folders.map((folder) => loadTokenizer(folder)));
  const lists = fuzzIds(200, Math.max(...tokenizers.map(({ vocabSize }) => vocabSize)), 3);
  const cases = tokenizers.map((tokenizer, i) => ({
    folder: folders[i],
    addsTokens: true,
    decodes: true,
    texts: inputs.map((text) => digest(...resultOfText(tokenizer, text))),
    lists: lists.map((ids) => digest(...resultOfIds(tokenizer, ids))),
  }));
  const verdicts = JSON.parse(
    askPython("tokenizers-reference.test-data.py", { cases, inputs, lists }),
  ) as Verdict[];
  return verdicts.map(({ refused, different = [] }, i) => ({
    refused,
    expected: different.map(({ input, expected }) => ({ input, results: expected })),
    got: different.map(({ input }) => ({
      input,
      results:
        typeof input === "string"
          ? resultOfText(tokenizers[i]!, input)
          : resultOfIds(tokenizers[i]!, input as number[]),
    })),
  }));
}

describe.skipIf(!has)(`folders, as AutoTokenizer loads them (${needs})`, () => {
  const cases = [...classCases, ...tokenCases];
  let parent = "";
  afterAll(() => rm(parent, { recursive: true, force: true }));
  let results: Awaited<ReturnType<typeof compare>> = [];
  beforeAll(async () => {
    parent = await mkdtemp(join(tmpdir(), "periodic-eval-"));
    const folders = cases.map((_, i) => join(parent, String(i)));
    for (const [i, { files }] of cases.entries()) {
      await mkdir(folders[i]!);
      for (const [name, content] of Object.entries(files))
        await writeFile(join(folders[i]!, name), JSON.stringify(content));
    }
    results = await compare(folders, fuzzTexts(250, 11));
  }, 1_800_000);

  it.each(cases.map(({ name }, i) => [name, i] as const))("equals transformers: %s", (_, i) => {
    const { refused, expected, got } = results[i]!;
    expect(refused).toBeUndefined();
    expect(got).toEqual(expected);
  });
});

const published = ".cache/tokenizers";
const names = existsSync(published) ? readdirSync(published).toSorted() : [];
if (names.length === 0)
  reportMissing("tokenizers of published models in .cache/tokenizers: npm run tokenizers");

describe.skipIf(!has).each(names)(`the tokenizer of %s (${needs})`, (name) => {
  it("equals transformers", async () => {
    const document = readFileSync("README.md", "utf8");
    const [result] = await compare([join(published, name)], [...fuzzTexts(2500, 5), document]);
    expect(result!.refused).toBeUndefined();
    expect(result!.got).toEqual(result!.expected);
  }, 1_800_000);
});
