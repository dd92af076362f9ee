import { byteLetters } from "@periodic-eval/tokenizers";
import {
  addedToken,
  byId,
  byteLevel,
  byteTokens,
  file,
  metaspace,
  precompiled,
  regex,
  replace,
  sequence,
  split,
  string,
  template,
  text,
  token,
  type Case,
} from "./component-parts.test-data.ts";
import { published } from "./expressions.test-data.ts";

const special = { special: true };
const letters = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'.,!?-()éß你好ΣσАнт"];

/** Learns merges of the most frequent neighbours in a text, as byte pair encoding does. */
function learn(words: readonly string[], alphabet: readonly string[], count: number) {
  const parts = words.map((word) => [...word]);
  const merges: [string, string][] = [];
  while (merges.length < count) {
    const frequencies = new Map<string, number>();
    for (const word of parts)
      for (let i = 1; i < word.length; i++) {
        const key = `${word[i - 1]!}\u0000${word[i]!}`;
        frequencies.set(key, (frequencies.get(key) ?? 0) + 1);
      }
    const [best] = [...frequencies].toSorted(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
    if (best === undefined) break;
    const [left, right] = best[0].split("\u0000") as [string, string];
    merges.push([left, right]);
    for (const word of parts)
      for (let i = 1; i < word.length; i++)
        if (word[i - 1] === left && word[i] === right) word.splice(i - 1, 2, left + right);
  }
  const tokens = [...new Set([...alphabet, ...merges.map(([left, right]) => left + right)])];
  return { vocab: byId(tokens), merges: merges.filter(([a, b]) => tokens.includes(a) && tokens.includes(b)) };
}

const corpus =
  "Hello world the The of I'm we've GPT x != y HelloWorld aab aab abc aa bb ba the of the world do not can't 12345 12 123 007 é é naïve русский ΣΑΣ 你好 你好 … ( ) [ ] tok tokens".split(
    " ",
  );
const bytesOf = (word: string) =>
  [...new TextEncoder().encode(word)].map((byte) => byteLetters[byte]!).join("");
const byteBpe = (words: readonly string[]) => learn(words.map(bytesOf), byteLetters, 120);
const spaced = corpus.flatMap((word) => [word, ` ${word}`]);
const gpt2 = byteBpe(spaced);
const metaspaced = learn(
  corpus.map((word) => `▁${word}`),
  ["<unk>", "<s>", "</s>", ...byteTokens, "▁", ...letters],
  120,
);

const size = (model: { readonly vocab: object }) => Object.keys(model.vocab).length;
const markers = (from: number) => [
  addedToken(from, "<s>", special),
  addedToken(from + 1, "<|im_start|>", special),
  addedToken(from + 2, "[INST]", {}),
];
const bpe = (name: string, options: object, model: object = metaspaced, parts: object = {}): Case => ({
  name: `BPE ${name}`,
  json: file({
    model: { type: "BPE", ...model, ...options },
    pre_tokenizer: { type: "WhitespaceSplit" },
    ...parts,
  }),
});
const withoutBytes = {
  ...metaspaced,
  vocab: byId(Object.keys(metaspaced.vocab).filter((each) => !each.startsWith("<0x"))),
};
const prefixed = {
  vocab: byId([
    "<unk>",
    ..."abcde",
    ..."abcde".split("").map((each) => `##${each}`),
    "ab",
    "##cd",
    "abcd",
    "##ab",
  ]),
  merges: [
    ["a", "##b"],
    ["##c", "##d"],
    ["ab", "##cd"],
    ["##a", "##b"],
  ],
};
const suffixed = {
  vocab: byId([
    "<unk>",
    ..."abo",
    ..."abo".split("").map((each) => `${each}</w>`),
    "ab",
    "ab</w>",
    "aab</w>",
  ]),
  merges: ["a b", "a b</w>", "a ab</w>"],
};
const everyWord = byId([
  ...new Set(["<unk>", "Hello", "world", "the", "a", "ab", "é", "x", "!=", "I'm", "你好"]),
]);

const unigramTokens: [string, number][] = [
  ["<s>", 0],
  ["<pad>", 0],
  ["</s>", 0],
  ["<unk>", 0],
  ["▁", -2],
  ...[..."abcdefghijklmnopqrstuvwxyz"].map((letter, i): [string, number] => [letter, -3 - i / 10]),
  ["▁the", -2.5],
  ["▁a", -2.2],
  ["ab", -3.5],
  ["abc", -4],
  ["aab", -5],
  ["ba", -4.25],
  ["▁hello", -3],
  ["wor", -3.5],
  ["ld", -3.25],
  ["é", -6],
  ["👍", -7],
  ["你好", -6],
  ["½½", -1],
];
const unigram = (name: string, options: object, parts: object = {}, vocab = unigramTokens): Case => ({
  name: `Unigram ${name}`,
  json: file({
    model: { type: "Unigram", unk_id: 3, vocab, ...options },
    pre_tokenizer: metaspace("always"),
    decoder: metaspace("always"),
    ...parts,
  }),
});
/** Every option of every model, alone. */
export const modelCases: readonly Case[] = [
  bpe("plain", {}),
  bpe("without unknown", { unk_token: null }, withoutBytes),
  bpe("unknown", { unk_token: "<unk>" }, withoutBytes),
  bpe("unknown, fused", { unk_token: "<unk>", fuse_unk: true }, withoutBytes),
  bpe("unknown that the vocabulary lacks", { unk_token: "missing" }, withoutBytes),
  bpe("bytes", { byte_fallback: true }),
  bpe("bytes and unknown", { byte_fallback: true, unk_token: "<unk>", fuse_unk: true }),
  bpe("bytes, incomplete, and unknown", {
    byte_fallback: true,
    unk_token: "<unk>",
    fuse_unk: true,
    vocab: byId(Object.keys(metaspaced.vocab).filter((each) => !/^<0x[EF]/.test(each))),
  }),
  bpe("ignoring merges", { ignore_merges: true, unk_token: "<unk>" }),
  bpe("ignoring merges, without any", { ignore_merges: true, unk_token: "<unk>", merges: [] }),
  bpe("merges as strings", { merges: metaspaced.merges.map((merge) => merge.join(" ")) }),
  bpe("merges with a version", {
    merges: ["#version: 0.2", ...metaspaced.merges.map((merge) => merge.join(" "))],
  }),
  bpe("prefix", { continuing_subword_prefix: "##", unk_token: "<unk>" }, prefixed),
  bpe("suffix", { end_of_word_suffix: "</w>", unk_token: "<unk>" }, suffixed),
  bpe("empty prefix and suffix", { continuing_subword_prefix: "", end_of_word_suffix: "", dropout: 0 }),
  bpe("long words", {}, metaspaced, { pre_tokenizer: metaspace("first", false) }),
  bpe("without a type", { type: undefined }),
  unigram("plain", {}),
  unigram("bytes", { byte_fallback: true }),
  unigram("bytes that the vocabulary has", { byte_fallback: true }, {}, [
    ...unigramTokens,
    ...byteTokens.map((each): [string, number] => [each, -20]),
  ]),
  unigram("without unknown", { unk_id: null }),
  unigram("tokens that occur twice", {}, {}, [...unigramTokens, ["ab", -1], ["<unk>", -3], ["the", -2]]),
  unigram("unknown with a score", { unk_id: 6 }),
  {
    name: "WordLevel",
    json: file({
      model: { type: "WordLevel", unk_token: "<unk>", vocab: everyWord },
      pre_tokenizer: { type: "Whitespace" },
    }),
  },
  {
    name: "WordLevel without its unknown token",
    json: file({
      model: { type: "WordLevel", unk_token: "?", vocab: everyWord },
      pre_tokenizer: { type: "Whitespace" },
    }),
  },
];

const llama2Decoder = sequence(
  "decoders",
  replace(string("▁"), " "),
  { type: "ByteFallback" },
  { type: "Fuse" },
  { type: "Strip", content: " ", start: 1, stop: 0 },
);
const llamaTokens = ["<unk>", "<s>", "</s>"].map((content, id) => addedToken(id, content, special));
const bos = (id: number) => ({
  ...template([token("<s>"), text]),
  special_tokens: { "<s>": { id: "<s>", ids: [id], tokens: ["<s>"] } },
});

/** Pipelines of published families, with small vocabularies. */
export const familyCases: readonly Case[] = [
  {
    name: "GPT-2",
    json: file({
      model: { type: "BPE", ...gpt2 },
      pre_tokenizer: byteLevel(),
      decoder: byteLevel(),
      added_tokens: markers(size(gpt2)),
      post_processor: byteLevel(),
    }),
  },
  {
    name: "Llama 2",
    json: file({
      model: { type: "BPE", ...metaspaced, unk_token: "<unk>", fuse_unk: true, byte_fallback: true },
      normalizer: sequence("normalizers", { type: "Prepend", prepend: "▁" }, replace(string(" "), "▁")),
      decoder: llama2Decoder,
      added_tokens: llamaTokens.map((each) => ({ ...each, normalized: true })),
      post_processor: bos(1),
    }),
  },
  {
    name: "Llama 2, Metaspace",
    json: file({
      model: { type: "BPE", ...metaspaced, unk_token: "<unk>", fuse_unk: true, byte_fallback: true },
      pre_tokenizer: metaspace("first", false),
      decoder: llama2Decoder,
      added_tokens: llamaTokens,
      post_processor: bos(1),
    }),
  },
  {
    name: "Llama 3",
    json: file({
      model: { type: "BPE", ...gpt2, ignore_merges: true },
      pre_tokenizer: sequence("pretokenizers", split(regex(published[1]!)), byteLevel(false, false)),
      decoder: byteLevel(),
      added_tokens: markers(size(gpt2)),
      post_processor: sequence("processors", byteLevel(), bos(size(gpt2))),
    }),
  },
  {
    name: "Qwen",
    json: file({
      model: { type: "BPE", ...gpt2, continuing_subword_prefix: "", end_of_word_suffix: "" },
      normalizer: { type: "NFC" },
      pre_tokenizer: sequence("pretokenizers", split(regex(published[2]!)), byteLevel(false, false)),
      decoder: byteLevel(),
      added_tokens: markers(size(gpt2)),
      post_processor: byteLevel(),
    }),
  },
  {
    name: "Gemma",
    json: file({
      model: { type: "BPE", ...metaspaced, unk_token: "<unk>", fuse_unk: true, byte_fallback: true },
      normalizer: replace(string(" "), "▁"),
      pre_tokenizer: split(string(" "), "MergedWithPrevious"),
      decoder: sequence("decoders", replace(string("▁"), " "), { type: "ByteFallback" }, { type: "Fuse" }),
      added_tokens: [...llamaTokens, addedToken(size(metaspaced), "\n\n"), addedToken(0, "▁▁")],
      post_processor: bos(1),
    }),
  },
  {
    name: "T5 and XGLM",
    json: unigram(
      "",
      {},
      {
        normalizer: sequence("normalizers", precompiled, replace(regex(" {2,}"), " ")),
        pre_tokenizer: sequence("pretokenizers", { type: "WhitespaceSplit" }, metaspace("always")),
        added_tokens: [addedToken(0, "<s>", special), addedToken(50, "[MASK]", { ...special, lstrip: true })],
        post_processor: template([text, token("<s>")]),
      },
    ).json,
  },
  {
    name: "WordLevel",
    json: file({
      model: { type: "WordLevel", vocab: everyWord, unk_token: "<unk>" },
      normalizer: { type: "Lowercase" },
      pre_tokenizer: { type: "WhitespaceSplit" },
      added_tokens: [addedToken(0, "<unk>", special), addedToken(20, "Tok", { normalized: true })],
    }),
  },
];

/** Returns the file of a family by its name. */
export const fileOf = (name: string): Case["json"] => familyCases.find((each) => each.name === name)!.json;
