import { addedToken, sequence } from "../pipeline/component-parts.test-data.ts";
import { fileOf } from "../pipeline/models.test-data.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The files of a folder by their names, compared with `AutoTokenizer.from_pretrained`. */
export interface FolderCase {
  readonly name: string;
  readonly files: Readonly<Record<string, Fields>>;
}

const folder = (
  name: string,
  tokenizer: Fields,
  config: Fields,
  model: Fields | null,
  more: Fields = {},
): FolderCase => ({
  name,
  files: {
    "tokenizer.json": tokenizer,
    "tokenizer_config.json": config,
    ...(model && { "config.json": model }),
    ...(more as Record<string, Fields>),
  },
});

const gpt2 = fileOf("GPT-2");
const digits: Fields = {
  ...gpt2,
  pre_tokenizer: sequence(
    "pretokenizers",
    { type: "Digits", individual_digits: true },
    gpt2["pre_tokenizer"],
  ),
};
const llama2 = fileOf("Llama 2");
const llama3 = fileOf("Llama 3");
const unigram = fileOf("T5 and XGLM");
const wordLevel = fileOf("WordLevel");
const llama = { model_type: "llama" };
const plain = { tokenizer_class: "PreTrainedTokenizerFast" };
const typed = (content: string, properties: Fields = {}) => ({
  __type: "AddedToken",
  content,
  lstrip: false,
  normalized: true,
  rstrip: false,
  single_word: false,
  ...properties,
});
const twice = typed("tok", { rstrip: true });
const decoderToken = (content: string, properties: Fields = {}) => {
  const { id: _, ...token } = addedToken(0, content, properties);
  return token;
};

export const classCases: readonly FolderCase[] = [
  ...["llama", "mistral", "phi3", "deepseek_v3", "gemma", "qwen2", "unknown", null].flatMap((type) =>
    [
      ["LlamaTokenizer", llama2],
      ["LlamaTokenizerFast", llama3],
    ].map(([name, file]) =>
      folder(
        `${name as string}, ${type ?? "no config.json"}`,
        file as Fields,
        { tokenizer_class: name },
        type === null ? null : { model_type: type },
      ),
    ),
  ),
  ...[
    { legacy: true },
    { legacy: false, add_prefix_space: false },
    { legacy: null, add_prefix_space: null },
    { legacy: true, add_prefix_space: true, add_bos_token: false, add_eos_token: true },
    { unk_token: null, bos_token: "[INST]", pad_token: "<pad>" },
  ].map((options) =>
    folder(
      `LlamaTokenizer ${JSON.stringify(options)}`,
      llama2,
      { tokenizer_class: "LlamaTokenizer", ...options },
      llama,
    ),
  ),
  folder("LlamaTokenizer over Unigram", unigram, { tokenizer_class: "LlamaTokenizer" }, llama),
  folder("the class of config.json", llama2, {}, { model_type: "llama", tokenizer_class: "LlamaTokenizer" }),
  folder("the class of the type gpt2", digits, {}, { model_type: "gpt2" }),
  folder("a class that transformers does not know", digits, { tokenizer_class: "OwnTokenizer" }, llama),
  folder("no class for the type", digits, {}, llama),
  folder("a wrong class for the type", digits, { tokenizer_class: "GPT2Tokenizer" }, { model_type: "qwen2" }),
  folder(
    "remote code beside a known class",
    digits,
    { tokenizer_class: "GPT2Tokenizer", auto_map: { AutoTokenizer: ["a.B", null] } },
    { model_type: "own" },
  ),
  folder("GPT2Tokenizer over a file with Digits", digits, { tokenizer_class: "GPT2Tokenizer" }, llama),
  folder(
    "GPT2Tokenizer, prefix",
    gpt2,
    { tokenizer_class: "GPT2TokenizerFast", add_prefix_space: true },
    llama,
  ),
  ...[
    "CodeGenTokenizer",
    "GPTNeoXTokenizer",
    "Qwen2Tokenizer",
    "Qwen2TokenizerFast",
    "Qwen3_5Tokenizer",
    "CohereTokenizer",
    "BloomTokenizer",
  ].flatMap((name) => [
    folder(name, llama3, { tokenizer_class: name, add_bos_token: true }, llama),
    folder(
      `${name}, tokens`,
      llama3,
      {
        tokenizer_class: name,
        eos_token: "<|im_start|>",
        pad_token: typed("[INST]", { lstrip: true }),
        additional_special_tokens: ["tok", "[MASK]"],
      },
      llama,
    ),
  ]),
  ...["GemmaTokenizer", "CodeLlamaTokenizer"].flatMap((name) => [
    folder(name, llama2, { tokenizer_class: name }, llama),
    folder(
      `${name}, tokens`,
      llama2,
      { tokenizer_class: name, unk_token: "a", bos_token: "<s>", eos_token: "</s>", add_prefix_space: false },
      llama,
    ),
  ]),
];

export const tokenCases: readonly FolderCase[] = [
  folder(
    "tokens that only the configuration names",
    gpt2,
    { ...plain, eos_token: "[MASK]", pad_token: "<x>", image_token: "tok", mask_token: null },
    llama,
  ),
  folder(
    "additional_special_tokens",
    gpt2,
    { ...plain, additional_special_tokens: ["<x>", typed("tok", { rstrip: true }), "[INST]"] },
    llama,
  ),
  folder(
    "extra_special_tokens",
    gpt2,
    { ...plain, extra_special_tokens: ["tok"], additional_special_tokens: ["<x>"] },
    llama,
  ),
  folder(
    "empty extra_special_tokens",
    gpt2,
    { ...plain, extra_special_tokens: {}, additional_special_tokens: ["<x>"] },
    llama,
  ),
  folder(
    "named extra_special_tokens",
    gpt2,
    { ...plain, extra_special_tokens: { image: "tok", other_token: "<x>" } },
    llama,
  ),
  folder("split_special_tokens", gpt2, { ...plain, split_special_tokens: true, eos_token: "<s>" }, llama),
  folder(
    "added_tokens_decoder with other properties",
    gpt2,
    {
      ...plain,
      eos_token: "[INST]",
      added_tokens_decoder: {
        378: decoderToken("[INST]", { lstrip: true, rstrip: true }),
        376: decoderToken("<s>", { special: false, normalized: true }),
        390: decoderToken("tok", { special: true }),
        9: decoderToken("*", { single_word: true }),
      },
    },
    llama,
    { "special_tokens_map.json": { pad_token: "<x>" } },
  ),
  folder("special_tokens_map.json", gpt2, { ...plain, eos_token: "<x>", bos_token: "[MASK]" }, llama, {
    "special_tokens_map.json": {
      eos_token: { content: "tok", lstrip: true, normalized: false, rstrip: false, single_word: false },
      additional_special_tokens: ["x"],
    },
  }),
  folder("added_tokens.json", gpt2, { ...plain, eos_token: "tok" }, llama, {
    "added_tokens.json": { tok: 400, "<x>": 401, "[MASK]": 402 },
  }),
  folder(
    "clean_up_tokenization_spaces with BPE",
    llama2,
    { ...plain, clean_up_tokenization_spaces: true },
    llama,
  ),
  folder(
    "clean_up_tokenization_spaces with BPE, forced",
    llama2,
    {
      ...plain,
      clean_up_tokenization_spaces: true,
      clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output: true,
    },
    llama,
  ),
  folder(
    "clean_up_tokenization_spaces with WordLevel",
    wordLevel,
    { ...plain, clean_up_tokenization_spaces: true },
    llama,
  ),
  folder(
    "clean_up_tokenization_spaces with Unigram",
    unigram,
    { ...plain, clean_up_tokenization_spaces: true },
    llama,
  ),
  folder("WordLevel, unknown token as an object", wordLevel, { ...plain, unk_token: typed("<unk>") }, llama),
  folder("WordLevel, no unknown token", wordLevel, plain, llama),
  folder(
    "truncation and padding",
    {
      ...gpt2,
      truncation: { direction: "Right", max_length: 2, strategy: "LongestFirst", stride: 0 },
      padding: {
        strategy: { Fixed: 9 },
        direction: "Right",
        pad_to_multiple_of: null,
        pad_id: 0,
        pad_type_id: 0,
        pad_token: "<s>",
      },
    },
    plain,
    llama,
  ),
  ...(
    [
      ["unk_token and extra_special_tokens", { unk_token: twice, extra_special_tokens: ["tok"] }],
      ["mask_token and additional", { mask_token: "tok", additional_special_tokens: [twice] }],
      ["eos_token and pad_token", { eos_token: twice, pad_token: "tok" }],
      ["one list", { additional_special_tokens: [twice, "tok", twice, typed("tok", { lstrip: true })] }],
      ["one list, alike again", { additional_special_tokens: ["tok", twice, "tok"] }],
    ] as const
  ).flatMap(([name, config]) =>
    [gpt2, llama2].map((file, i) =>
      folder(`a token twice: ${name}, ${i}`, file, { ...plain, ...(config as Fields) }, llama),
    ),
  ),
  ...[{ extra_special_tokens: [] }, { extra_special_tokens: null }, { extra_special_tokens: {} }, {}].flatMap(
    (extra) =>
      [{}, { additional_special_tokens: ["[MASK]"] }].map((additional) =>
        folder(
          `additional_special_tokens of the map beside ${JSON.stringify({ ...extra, ...additional })}`,
          gpt2,
          { ...plain, ...extra, ...additional },
          llama,
          { "special_tokens_map.json": { additional_special_tokens: ["tok"] } },
        ),
      ),
  ),
  folder(
    "extra_special_tokens of the map beside those of the configuration",
    gpt2,
    { ...plain, extra_special_tokens: ["<x>"] },
    llama,
    { "special_tokens_map.json": { extra_special_tokens: ["tok"] } },
  ),
  folder(
    "named extra_special_tokens beside additional_special_tokens",
    gpt2,
    { ...plain, extra_special_tokens: { image_token: "tok" }, additional_special_tokens: ["<x>"] },
    llama,
  ),
  ...[{ additional_special_tokens: [typed("[MASK]")] }, { mask_token: typed("[MASK]") }].map((config) =>
    folder(`added_tokens.json beside ${Object.keys(config)[0]}`, gpt2, { ...plain, ...config }, llama, {
      "added_tokens.json": { "[MASK]": 400 },
    }),
  ),
  ...["llama", "gpt2", "qwen2", "deepseek_v3"].flatMap((model_type) =>
    [{}, { tokenizer_class: "" }, { tokenizer_class: "GPT2Tokenizer" }].map((more) =>
      folder(
        `an empty tokenizer_class, ${JSON.stringify({ model_type, ...more })}`,
        digits,
        { tokenizer_class: "" },
        { model_type, ...more },
      ),
    ),
  ),
  folder("an empty tokenizer_class in config.json", digits, {}, { model_type: "gpt2", tokenizer_class: "" }),
  ...["CohereTokenizerFast", "GPT2TokenizerFast", "Qwen2TokenizerFast", "LlamaTokenizerFast"].map((name) =>
    folder(
      `${name}, a normalized token`,
      name.startsWith("Llama") ? llama2 : gpt2,
      { tokenizer_class: name, additional_special_tokens: [typed("a")] },
      { model_type: "unknown" },
    ),
  ),
  folder(
    "CohereTokenizerFast, tokens twice",
    gpt2,
    {
      tokenizer_class: "CohereTokenizerFast",
      mask_token: "tok",
      additional_special_tokens: [twice, "[MASK]"],
    },
    { model_type: "unknown" },
    { "added_tokens.json": { "[MASK]": 400, tok: 401 } },
  ),
];
