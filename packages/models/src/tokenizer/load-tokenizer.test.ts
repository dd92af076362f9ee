import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PeriodicEvalError, type Prompt } from "@periodic-eval/core";
import { beforeEach, describe, expect, it } from "vitest";
import { loadTokenizer } from "./load-tokenizer.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

// Two letters, one merge and three special tokens, small enough to encode by hand.
const tokenizer = {
  version: "1.0",
  added_tokens: ["<s>", "</s>", "<end>"].map((content, i) => ({
    id: 3 + i,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  })),
  normalizer: null,
  pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
  post_processor: null,
  decoder: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
  model: { type: "BPE", vocab: { a: 0, b: 1, ab: 2 }, merges: [["a", "b"]] },
};
const template = "{{ bos_token }}{% for m in messages %}{{ m.content }}<end>{% endfor %}";

let folder: string;
beforeEach(() => void (folder = temporaryFolder()));

const write = (name: string, content: object | string) =>
  writeFile(join(folder, name), typeof content === "string" ? content : JSON.stringify(content));

it("reads special tokens, all stop ids, and the template's file before the configuration's", async () => {
  await write("tokenizer.json", tokenizer);
  await write("tokenizer_config.json", {
    bos_token: "replaced",
    chat_template: "from the configuration",
  });
  await write("special_tokens_map.json", { eos_token: "</s>", bos_token: { content: "<s>" } });
  await write("generation_config.json", { eos_token_id: [4, 7] });
  await write("chat_template.jinja", template);
  const opened = await loadTokenizer(folder);
  const { text, ids, assistantMask } = opened.render({ messages: [{ role: "user", content: "aba" }] });
  expect(text).toBe("<s>aba<end>");
  expect(ids).toEqual([3, 2, 0, 5]);
  expect(assistantMask).toEqual([false, false, false, false]);
  // 4 and 7 from generation_config, 4 again from eos_token, 5 from the token after the assistant's text.
  expect(opened.stopIds).toEqual([4, 7, 5]);
  expect(opened.eosId).toBe(4);
  expect(opened.vocabSize).toBe(6);
  expect(opened.decode([])).toBe("");
});

it.each([
  // é in two characters, before the answer and in it, with NFC.
  {
    normalizer: { type: "NFC" },
    ask: "e\u0301a",
    answer: "abe\u0301",
    ids: [3, 4, 0, 8, 6, 2, 3, 4, 8],
    mask: [0, 0, 0, 0, 0, 1, 1, 1, 1],
  },
  // A normalizer that strips what ends a text, at an answer that begins after white space.
  {
    normalizer: { type: "Strip", strip_left: true, strip_right: true },
    strips: { normalized: true },
    before: "<s>a  ",
    ask: "a",
    answer: "b",
    ids: [0, 8, 6, 0, 5, 5, 1, 8],
    mask: [0, 0, 0, 0, 0, 0, 1, 1],
  },
  // Tokens that take the white space beside them.
  {
    strips: { rstrip: true },
    before: "<s>  ",
    ask: "a",
    answer: "ab",
    ids: [0, 8, 6, 2, 8],
    mask: [0, 0, 0, 1, 1],
  },
  {
    strips: { lstrip: true },
    before: " <s>",
    ask: "a",
    answer: "ab ",
    ids: [0, 8, 6, 2, 8],
    mask: [0, 0, 0, 1, 1],
  },
])("marks the answer $answer in the text that the tokens spell", async (each) => {
  const { normalizer = null, strips = {}, before = "<s>", ask, answer, ids, mask } = each;
  const vocab = { a: 0, b: 1, ab: 2, Ã: 3, "©": 4, Ġ: 5 };
  const added = tokenizer.added_tokens.map((token) => ({ ...token, ...strips }));
  const model = { ...tokenizer.model, vocab };
  await write("tokenizer.json", { ...tokenizer, normalizer, added_tokens: added, model });
  const turn = `{% if m.role == "assistant" %}${before}{% generation %}{{ m.content }}<end>{% endgeneration %}`;
  const rest = "{% else %}{{ m.content }}<end>{% endif %}";
  await write("chat_template.jinja", `{% for m in messages %}${turn}${rest}{% endfor %}`);
  const messages = [
    { role: "user", content: ask },
    { role: "assistant", content: answer },
  ];
  const rendered = (await loadTokenizer(folder)).render({ messages }, { ending: "complete" });
  expect(rendered.ids).toEqual(ids);
  expect(rendered.assistantMask?.map(Number)).toEqual(mask);
});

it("says that tokens spell another text, if one stands for unknown characters", async () => {
  const model = { ...tokenizer.model, vocab: { ...tokenizer.model.vocab, "?": 3 }, unk_token: "?" };
  await write("tokenizer.json", { ...tokenizer, model });
  await write("chat_template.jinja", "{% generation %}{{ messages[0].content }}{% endgeneration %}");
  const opened = await loadTokenizer(folder);
  expect(opened.render({ messages: [{ role: "assistant", content: "ax" }] })).toEqual({
    text: "ax",
    ids: [0, 3],
    assistantMask: null,
    isUnaligned: true,
  });
});

it("stops at the ids that only config.json has", async () => {
  await write("tokenizer.json", tokenizer);
  await write("config.json", { model_type: "llama", eos_token_id: [1023, 1019] });
  expect((await loadTokenizer(folder)).stopIds).toEqual([1023, 1019]);
  await write("config.json", { text_config: { eos_token_id: 4 } });
  expect((await loadTokenizer(folder)).stopIds).toEqual([4]);
  await write("generation_config.json", { eos_token_id: 3 });
  expect((await loadTokenizer(folder)).stopIds).toEqual([3]);
});

/** A byte-level tokenizer in which "a b" has one id for each character. */
const letters = {
  ...tokenizer,
  added_tokens: [],
  model: { type: "BPE", vocab: { a: 0, b: 1, Ġ: 2, "▁": 3, "▁a": 4 }, merges: [["▁", "a"]] },
};

it.each([
  // The text has no Metaspace: LlamaTokenizer would write ▁.
  ["LlamaTokenizerFast", { model_type: "deepseek_v3" }],
  ["LlamaTokenizer", {}],
])("takes a byte-level file with the class %s as it is", async (tokenizer_class, config) => {
  await write("tokenizer.json", letters);
  await write("tokenizer_config.json", { tokenizer_class });
  await write("config.json", config);
  expect((await loadTokenizer(folder)).encode("a b")).toEqual([0, 2, 1]);
});

// The file splits the space from the letter. transformers 5.24 takes it as it is for these types, and rebuilds it for others.
it.each([
  ["mistral", [3, 0]],
  ["phi3", [3, 0]],
  ["llama", [3, 4]],
])("opens LlamaTokenizer in a folder of the type %s as transformers does", async (model_type, ids) => {
  const split = { type: "Split", pattern: { String: "▁" }, behavior: "Isolated", invert: false };
  const normalizer = { type: "Replace", pattern: { String: " " }, content: "▁" };
  await write("tokenizer.json", { ...letters, normalizer, pre_tokenizer: split, decoder: null });
  await write("tokenizer_config.json", {
    tokenizer_class: "LlamaTokenizer",
    unk_token: null,
    bos_token: null,
  });
  await write("config.json", { model_type });
  expect((await loadTokenizer(folder)).encode(model_type === "llama" ? "  a" : " a")).toEqual(ids);
});

it("cleans up spaces after decoding only without byte pair encoding", async () => {
  const words = ["x", "!=", "y"];
  const vocab = Object.fromEntries(words.map((word, id) => [word, id]));
  await write("tokenizer_config.json", { clean_up_tokenization_spaces: true });
  for (const [model, text] of [
    [{ type: "BPE", vocab, merges: [] }, "x != y"],
    [{ type: "WordLevel", vocab, unk_token: "x" }, "x!= y"],
  ] as const) {
    await write("tokenizer.json", { ...tokenizer, added_tokens: [], decoder: null, model });
    expect((await loadTokenizer(folder)).decode([0, 1, 2])).toBe(text);
  }
});

it("gives ids to special tokens that only tokenizer_config.json names", async () => {
  await write("tokenizer.json", tokenizer);
  await write("tokenizer_config.json", { eos_token: "<eos>", additional_special_tokens: ["<more>"] });
  const opened = await loadTokenizer(folder);
  expect(opened.eosId).toBe(6);
  expect(opened.encode("a<eos><more>")).toEqual([0, 6, 7]);
  expect(opened.decode([0, 6, 7], { specialTokens: false })).toBe("a");
  await write("tokenizer_config.json", { eos_token: "<eos>", split_special_tokens: true });
  expect((await loadTokenizer(folder)).encode("a<s>")).toEqual([0]);
});

it("refuses a class whose pipeline it does not know, and takes tokenizer.json on request", async () => {
  await write("tokenizer.json", tokenizer);
  await write("tokenizer_config.json", { tokenizer_class: "T5Tokenizer" });
  await expect(loadTokenizer(folder)).rejects.toMatchObject({
    code: "model",
    path: ["tokenizer_class"],
    got: "the class T5Tokenizer, whose pipeline transformers builds itself",
  });
  expect((await loadTokenizer(folder, { pipeline: "tokenizer_json" })).encode("ab")).toEqual([2]);

  await write("tokenizer_config.json", {});
  await write("config.json", { model_type: "t5" });
  await expect(loadTokenizer(folder)).rejects.toThrow("the class of the type t5, whose pipeline");
});

it("refuses to replace the expression of a Mistral tokenizer", async () => {
  await write("tokenizer.json", tokenizer);
  await write("tokenizer_config.json", { fix_mistral_regex: true });
  await expect(loadTokenizer(folder)).rejects.toThrow("got fix_mistral_regex");
  expect((await loadTokenizer(folder, { pipeline: "tokenizer_json" })).encode("ab")).toEqual([2]);
});

it("refuses a text with half of a surrogate pair", async () => {
  await write("tokenizer.json", tokenizer);
  const opened = await loadTokenizer(folder);
  expect(() => opened.encode("a\ud83d")).toThrow("got a text with half of a surrogate pair");
});

it("needs a template for chats only, not for plain text and ids", async () => {
  await write("tokenizer.json", tokenizer);
  const opened = await loadTokenizer(folder);
  expect(opened.render({ text: "ab" })).toEqual({ text: "ab", ids: [2], assistantMask: null });
  expect(opened.eosId).toBeNull();
  expect(opened.render({ ids: [1, 1] })).toEqual({ text: null, ids: [1, 1], assistantMask: null });
  expect(() => opened.render({ messages: [] })).toThrow(/without a chat template/);
});

const named = (name: string) => ({
  name,
  template: `${name}{% for m in messages %}{{ m.content }}{% endfor %}`,
});

describe.each(["tokenizer_config.json", "additional_chat_templates"])("named templates of %s", (place) => {
  beforeEach(() => write("tokenizer.json", tokenizer));
  async function add(...names: readonly string[]): Promise<void> {
    const templates = names.map(named);
    if (place === "tokenizer_config.json") return write(place, { chat_template: templates });
    await mkdir(join(folder, place), { recursive: true });
    for (const { name, template: source } of templates)
      await write(name === "default" ? "chat_template.jinja" : join(place, `${name}.jinja`), source);
  }
  const textOf = async (tools: readonly object[] | null) =>
    (await loadTokenizer(folder)).render({ messages: [{ role: "user", content: "" }], tools } as Prompt).text;

  it.each([
    [["default", "tool_use"], "default", "tool_use"],
    [["default", "rag"], "default", "default"],
    [["rag", "tool_use"], null, "tool_use"],
    [["rag", "plan"], null, null],
  ] as const)(
    "renders chats without and with tools, given %s, with %s and %s",
    async (names, plain, tools) => {
      await add(...names);
      const error = `only the chat templates ${[...names].sort().join(", ")}`;
      for (const [list, expected] of [
        [null, plain],
        [[], tools],
        [[{ type: "function" }], tools],
      ] as const)
        if (expected === null) await expect(textOf(list)).rejects.toThrow(error);
        else expect(await textOf(list)).toBe(expected);
    },
  );

  it("changes the fingerprint", async () => {
    await add("default");
    const { fingerprint } = await loadTokenizer(folder);
    await add("default", "tool_use");
    expect((await loadTokenizer(folder)).fingerprint).not.toBe(fingerprint);
  });
});

it("renders a text without the token that the tokenizer appends to each text", async () => {
  const [A, B, eos] = [{ Sequence: { id: "A", type_id: 0 } }, { Sequence: { id: "B", type_id: 1 } }, "</s>"];
  const end = { SpecialToken: { id: eos, type_id: 0 } };
  const special_tokens = { [eos]: { id: eos, ids: [4], tokens: [eos] } };
  const appending = { type: "TemplateProcessing", single: [A, end], pair: [A, end, B, end], special_tokens };
  await write("tokenizer.json", { ...tokenizer, post_processor: appending });
  const opened = await loadTokenizer(folder);
  expect(opened.encode("ab")).toEqual([2, 4]);
  for (const text of ["ab", "ab</s>", "a"])
    expect(opened.render({ text }).ids).toEqual(opened.encode(text, { specialTokens: false }));
});

it("changes its fingerprint with encodings, renderings and ends of replies", async () => {
  await write("tokenizer.json", tokenizer);
  const first = (await loadTokenizer(folder)).fingerprint;
  expect((await loadTokenizer(folder)).fingerprint).toBe(first);
  await write("generation_config.json", { temperature: 0.7 });
  expect((await loadTokenizer(folder)).fingerprint).toBe(first);
  await write("generation_config.json", { eos_token_id: 4 });
  const second = (await loadTokenizer(folder)).fingerprint;
  expect(second).not.toBe(first);
  await write("chat_template.jinja", template);
  const third = (await loadTokenizer(folder)).fingerprint;
  expect(third).not.toBe(second);
  expect((await loadTokenizer(folder, { date: "2026-03-05" })).fingerprint).not.toBe(third);
});

it("names a missing or broken tokenizer.json", async () => {
  const missing = await loadTokenizer(folder).catch((error: unknown) => error);
  expect(PeriodicEvalError.is(missing, "model")).toBe(true);
  expect((missing as Error).message).toContain(join(folder, "tokenizer.json"));
  await write("tokenizer.json", "{");
  expect(PeriodicEvalError.is(await loadTokenizer(folder).catch((error: unknown) => error), "model")).toBe(
    true,
  );
});

it("names a file that cannot be read", async () => {
  // A folder in its place causes an error other than ENOENT, like a missing permission.
  await mkdir(join(folder, "tokenizer.json"));
  const error = await loadTokenizer(folder).catch((thrown: unknown) => thrown);
  expect(PeriodicEvalError.is(error, "model")).toBe(true);
  expect((error as Error).message).toContain(`${join(folder, "tokenizer.json")}: got EISDIR`);
});

it("rejects wrong options with the path of the option", async () => {
  await write("tokenizer.json", tokenizer);
  await expect(loadTokenizer(folder, { pipline: "tokenizer_json" } as object)).rejects.toThrow(
    'Did you mean "pipeline"?',
  );
  await expect(loadTokenizer(folder, { pipeline: "fast" as "transformers" })).rejects.toMatchObject({
    code: "config",
    path: ["pipeline"],
    got: '"fast"',
    expected: '"transformers" or "tokenizer_json"',
  });
});

// Numerals of Unicode's classes No, Nl and Nd, and merges across them. The ids come from tokenizers 0.23.3 for this file.
it.each([
  [true, [0, 1, 2, 3, 4, 0]],
  [false, [0, 8, 0]],
])("splits at every numeral, with individual_digits %s", async (isEach, ids) => {
  const digits = { type: "Digits", individual_digits: isEach };
  const tokens = ["a", "²", "Ⅷ", "３", "4", "a²", "²Ⅷ", "３4", "²Ⅷ３4"];
  const vocab = Object.fromEntries(tokens.map((token, id) => [token, id]));
  const merges = [
    ["a", "²"],
    ["²", "Ⅷ"],
    ["３", "4"],
    ["²Ⅷ", "３4"],
  ];
  for (const part of [digits, { type: "Sequence", pretokenizers: [digits] }]) {
    const model = { type: "BPE", vocab, merges };
    await write("tokenizer.json", {
      ...tokenizer,
      added_tokens: [],
      pre_tokenizer: part,
      decoder: null,
      model,
    });
    expect((await loadTokenizer(folder)).encode("a²Ⅷ３4a")).toEqual(ids);
  }
});
