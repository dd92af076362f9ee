import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import fc from "fast-check";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { deep, modelErrorOf, watchFilesAndMemory } from "../testing/hostile.test-data.ts";
import { loadTokenizer } from "./load-tokenizer.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

vi.mock("node:fs/promises", async (original) => {
  const { recorded } = await import("../testing/opened-files.test-data.ts");
  return recorded(await original());
});

const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true };
const special = {
  id: 3,
  content: "<s>",
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
  special: true,
};
const model = { type: "BPE", vocab: { a: 0, b: 1, ab: 2 }, merges: [["a", "b"]] };
const good = {
  version: "1.0",
  added_tokens: [special],
  normalizer: null as unknown,
  pre_tokenizer: byteLevel as unknown,
  post_processor: null as unknown,
  decoder: byteLevel as unknown,
  model: model as unknown,
};

let folder = "";
beforeEach(async () => {
  folder = temporaryFolder();
  await write("tokenizer.json", good);
});
watchFilesAndMemory(() => folder);

const write = (name: string, content: unknown) =>
  writeFile(join(folder, name), typeof content === "string" ? content : JSON.stringify(content));
/** Loads the tokenizer and uses it, because some defects show only then. */
async function use(): Promise<void> {
  const tokenizer = await loadTokenizer(folder);
  tokenizer.decode(tokenizer.encode("a b ab <s> é"));
}
const useError = () => modelErrorOf(use);
const named = <T>(cases: readonly T[]) =>
  cases.map((value) => [JSON.stringify(value).slice(0, 70), value] as const);

const notObjects = ["", "{", "null", "[]", "7", '"text"', "NaN", deep("[", "]", 500_000)];

describe.each([
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "generation_config.json",
])("loading rejects a %s", (name) => {
  it.each(notObjects.map((text) => [text.slice(0, 20), text] as const))(
    "with the content %j",
    async (_, text) => {
      await write(name, text);
      expect((await useError()).where).toBe(join(folder, name));
    },
  );

  it("with bytes that are not UTF-8", async () => {
    await writeFile(join(folder, name), Buffer.from('{"a":"\xe9"}', "latin1"));
    expect(await useError()).toMatchObject({
      where: join(folder, name),
      got: "bytes that are not UTF-8 (0xe9 at byte 7)",
    });
  });
});

describe("loading rejects a tokenizer.json", () => {
  const cut = JSON.stringify(good);
  it.each(fc.sample(fc.integer({ min: 0, max: cut.length - 1 }), { numRuns: 20, seed: 3 }))(
    "that is cut off at %i",
    async (at) => {
      await write("tokenizer.json", cut.slice(0, at));
      expect((await useError()).where).toBe(join(folder, "tokenizer.json"));
    },
  );

  it.each(
    named<object>([
      { model: undefined },
      { model: null },
      { model: "BPE" },
      { model: [] },
      { model: {} },
      { model: { type: "BPE" } },
      { model: { ...model, type: "Nonsense" } },
      { model: { ...model, vocab: null } },
      { model: { ...model, vocab: "ab" } },
      { model: { ...model, vocab: { a: -1 } } },
      { model: { ...model, vocab: { a: 1.5 } } },
      { model: { ...model, vocab: { a: "0" } } },
      { model: { ...model, vocab: { a: null } } },
      { model: { ...model, vocab: [["a"]] } },
      { model: { ...model, vocab: [[1, 2]] } },
      { model: { ...model, merges: undefined } },
      { model: { ...model, merges: null } },
      { model: { ...model, merges: 7 } },
      { model: { ...model, merges: {} } },
      { model: { ...model, merges: [7] } },
      { model: { ...model, merges: [null] } },
      { model: { ...model, merges: [["a"]] } },
      { model: { ...model, merges: [["a", 7]] } },
      { model: { ...model, merges: ["ab"] } },
      { model: { ...model, merges: ["a b c"] } },
      { model: { type: "Unigram", vocab: [["a", "x"]], unk_id: 0 } },
      { model: { type: "Unigram", vocab: [["a", -1]], unk_id: 1e9 } },
      { model: { type: "Unigram", vocab: [] } },
      { model: { type: "WordPiece", vocab: [] } },
      { added_tokens: null },
      { added_tokens: {} },
      { added_tokens: "<s>" },
      { added_tokens: [null] },
      { added_tokens: ["<s>"] },
      { added_tokens: [{ ...special, id: -1 }] },
      { added_tokens: [{ ...special, id: "3" }] },
      { added_tokens: [{ ...special, content: null }] },
      { added_tokens: [{ ...special, content: ["<s>"] }] },
      { added_tokens: [{ ...special, content: "" }] },
      { normalizer: 7 },
      { normalizer: [] },
      { normalizer: {} },
      { normalizer: { type: "Nonsense" } },
      { normalizer: { type: "__proto__" } },
      { normalizer: { type: "Replace", pattern: { Regex: "(" }, content: "x" } },
      { pre_tokenizer: 7 },
      { pre_tokenizer: { type: "Nonsense" } },
      { pre_tokenizer: { type: "Sequence", pretokenizers: 7 } },
      { pre_tokenizer: { type: "Split", pattern: { Regex: "(" }, behavior: "Isolated" } },
      { pre_tokenizer: { type: "Split", pattern: { Regex: "[z-a]" }, behavior: "Isolated" } },
      { pre_tokenizer: { type: "Split", pattern: { Regex: "\\p{Nonsense}" }, behavior: "Isolated" } },
      { pre_tokenizer: { type: "Split", pattern: { Regex: "a**" }, behavior: "Isolated" } },
      { pre_tokenizer: { type: "Split", pattern: { Regex: 7 }, behavior: "Isolated" } },
      { post_processor: 7 },
      { post_processor: { type: "Nonsense" } },
      { post_processor: { type: "TemplateProcessing" } },
      {
        post_processor: {
          type: "TemplateProcessing",
          single: [{ SpecialToken: {} }],
          pair: [],
          special_tokens: {},
        },
      },
      { decoder: 7 },
      { decoder: { type: "Nonsense" } },
      { decoder: { type: "Sequence", decoders: 7 } },
      { decoder: { type: "Sequence", decoders: [null] } },
      { decoder: { type: "Replace", pattern: { Regex: "(" }, content: "" } },
    ]),
  )("with %s", async (_, change) => {
    await write("tokenizer.json", { ...good, ...change });
    expect((await useError()).where).toContain(join(folder, "tokenizer.json"));
  });
});

describe("loading a tokenizer.json", () => {
  // The library ignores some values that it does not know. Any error must be a `model` error.
  it.each(
    named<object>([
      { normalizer: { type: "Sequence" } },
      { normalizer: { type: "Sequence", normalizers: [null] } },
      { normalizer: { type: "Replace", pattern: null, content: "x" } },
      { normalizer: { type: "Precompiled", precompiled_charsmap: 7 } },
      { pre_tokenizer: { type: "Split" } },
    ]),
  )("with %s succeeds or throws a model error", async (_, change) => {
    await write("tokenizer.json", { ...good, ...change });
    await use().catch((error: unknown) => expect(PeriodicEvalError.is(error, "model")).toBe(true));
  });

  it("changes no prototype for a token named __proto__", async () => {
    await write(
      "tokenizer.json",
      JSON.stringify(good).replace('"a":0', '"__proto__":0,"constructor":4,"a":5'),
    );
    await use().catch((error: unknown) => expect(PeriodicEvalError.is(error, "model")).toBe(true));
    expect({}).not.toHaveProperty("a");
  });

  it("accepts 130,000 tokens, more than a function call can have arguments", async () => {
    const vocab = Object.fromEntries(Array.from({ length: 130_000 }, (_, id) => [`t${id}`, id]));
    await write("tokenizer.json", { ...good, added_tokens: [], model: { ...model, vocab, merges: [] } });
    expect((await loadTokenizer(folder)).vocabSize).toBe(130_000);
  });
});

it.each(
  named<object>([
    { chat_template: 7 },
    { chat_template: {} },
    { chat_template: [null] },
    { chat_template: ["text"] },
    { chat_template: [{ name: "default" }] },
    { chat_template: [{ name: 7, template: "x" }] },
    { chat_template: "{% for %}" },
    { chat_template: "{{ unclosed" },
    { chat_template: "{% if x %}" },
    { chat_template: `{{ ${"(".repeat(50_000)} }}` },
    { chat_template: `{{ ${"not ".repeat(200_000)} a }}` },
    { chat_template: "{% if a %}".repeat(50_000) },
    { tokenizer_class: 7 },
    { tokenizer_class: ["LlamaTokenizer"] },
  ]),
)("rejects a tokenizer_config.json with %s", async (_, change) => {
  await write("tokenizer_config.json", change);
  await useError();
});

it("rejects messages for a chat template of 200,000 sums", async () => {
  await write("tokenizer_config.json", { chat_template: `{{ ${"a + ".repeat(200_000)} a }}` });
  const tokenizer = await loadTokenizer(folder);
  await modelErrorOf(async () => tokenizer.render({ messages: [{ role: "user", content: "a" }] }));
});

it.each(named<unknown>(["2", -1, 1.5, [1, "2"], {}, [[1]], true]))(
  "rejects the eos_token_id %s",
  async (_, id) => {
    await write("generation_config.json", { eos_token_id: id });
    expect((await useError()).where).toContain("generation_config.json, eos_token_id");
  },
);

it.each(["tokenizer.json", "tokenizer_config.json", "generation_config.json"])(
  "rejects a key of %s that occurs twice in one object",
  async (name) => {
    const text = name === "tokenizer.json" ? JSON.stringify(good) : "{}";
    await write(name, text.replace(/^\{/, '{"x":{"a":1,"\\u0061":2}').replace(/(?<=\})(?=")/, ","));
    const error = await useError();
    expect(error).toMatchObject({ where: join(folder, name), got: 'the key "a" twice in one object' });
  },
);
