type Fields = Readonly<Record<string, unknown>>;

/** The pipeline that a class of transformers 5.24 builds for a folder: of `tokenizer.json` it takes the vocabulary and the merges. */
export interface RebuiltPipeline {
  readonly model: Fields;
  readonly normalizer: unknown;
  readonly pre_tokenizer: unknown;
  readonly decoder: unknown;
  /** The class's named special tokens, for names that the configuration lacks. */
  readonly defaults: Readonly<Record<string, string>>;
  /** With which properties the class adds its special tokens a second time, if it does. */
  readonly addsSpecialTokensAgain?: "default" | "declared";
  /** Names of the special tokens around a text, whatever the file says; null for none. */
  readonly around?: readonly [first: string | null, last: string | null];
}

/**
 * @param option Returns a setting of the folder, or the default.
 * @param model The model of `tokenizer.json`.
 */
type Rebuild = (option: <T>(key: string, otherwise: T) => T, model: Fields) => RebuiltPipeline;

const sequence = (key: "normalizers" | "pretokenizers" | "decoders", ...parts: readonly unknown[]) => ({
  type: "Sequence",
  [key]: parts,
});
const regex = (source: string) => ({
  type: "Split",
  pattern: { Regex: source },
  behavior: "Isolated",
  invert: false,
});
const byteLevel = (addsSpace: boolean, usesRegex = true) => ({
  type: "ByteLevel",
  add_prefix_space: addsSpace,
  trim_offsets: true,
  use_regex: usesRegex,
});
const replace = (from: string, to: string) => ({ type: "Replace", pattern: { String: from }, content: to });
const fallbackDecoders = [replace("▁", " "), { type: "ByteFallback" }, { type: "Fuse" }];
const stripSpace = { type: "Strip", content: " ", start: 1, stop: 0 };
const metaspace = (scheme: "always" | "first" | "never", split: boolean) => ({
  type: "Metaspace",
  replacement: "▁",
  prepend_scheme: scheme,
  split,
});

const bpe = ({ vocab, merges }: Fields, options: Fields = {}) => ({
  type: "BPE",
  vocab: Array.isArray(vocab)
    ? Object.fromEntries(vocab.map((entry, id) => [Array.isArray(entry) ? entry[0] : entry, id]))
    : vocab,
  merges: merges ?? [],
  ...options,
});

const endOfText = "<|endoftext|>";
const sentencePiece = { bos_token: "<s>", eos_token: "</s>", unk_token: "<unk>" };

const qwen =
  (words: string, excluded: string, isAddingAgain: boolean): Rebuild =>
  (option, model) => ({
    model: bpe(model),
    normalizer: { type: "NFC" },
    pre_tokenizer: sequence(
      "pretokenizers",
      regex(
        `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?${words}+|\\p{N}| ?[^\\s${excluded}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`,
      ),
      byteLevel(option<boolean | null>("add_prefix_space", null) ?? false, false),
    ),
    decoder: byteLevel(true),
    defaults: { unk_token: endOfText, eos_token: endOfText, pad_token: endOfText },
    ...(isAddingAgain && { addsSpecialTokensAgain: "default" }),
  });

const gpt2 = (...[option, model]: Parameters<Rebuild>): RebuiltPipeline => ({
  model: bpe(model),
  normalizer: null,
  pre_tokenizer: byteLevel(option("add_prefix_space", false)),
  decoder: byteLevel(true),
  defaults: { unk_token: endOfText, bos_token: endOfText, eos_token: endOfText },
});

/** Functions by class, of `models/<family>/tokenization_<family>.py`. */
export const rebuiltPipelines: Readonly<Record<string, Rebuild>> = {
  GPT2Tokenizer: gpt2,
  CodeGenTokenizer: gpt2,
  GPTNeoXTokenizer: (...settings) => ({
    ...gpt2(...settings),
    normalizer: { type: "NFC" },
    around: [null, null],
    defaults: { ...gpt2(...settings).defaults, pad_token: "<|padding|>" },
  }),
  Qwen2Tokenizer: qwen("\\p{L}", "\\p{L}", true),
  Qwen3_5Tokenizer: qwen("[\\p{L}\\p{M}]", "\\p{L}\\p{M}", false),
  CohereTokenizer: (...settings) => ({
    ...gpt2(...settings),
    normalizer: { type: "NFC" },
    pre_tokenizer: sequence(
      "pretokenizers",
      { type: "Digits", individual_digits: true },
      byteLevel(settings[0]("add_prefix_space", false)),
    ),
    defaults: {
      unk_token: "<UNK>",
      bos_token: "<BOS_TOKEN>",
      eos_token: "<|END_OF_TURN_TOKEN|>",
      pad_token: "<PAD>",
      cls_token: "<CLS>",
      sep_token: "<SEP>",
      mask_token: "<MASK_TOKEN>",
    },
    addsSpecialTokensAgain: "declared",
  }),
  LlamaTokenizer: (option, model) => {
    const addsSpace = option<boolean | null>("add_prefix_space", null) ?? true;
    const scheme = option<boolean | null>("legacy", false) === true ? "always" : "first";
    return {
      model: bpe(model, { fuse_unk: true, byte_fallback: true }),
      normalizer: null,
      pre_tokenizer: metaspace(addsSpace ? scheme : "never", false),
      decoder: sequence("decoders", ...fallbackDecoders, ...(addsSpace ? [stripSpace] : [])),
      defaults: sentencePiece,
    };
  },
  CodeLlamaTokenizer: (option, model) => {
    const infill = {
      prefix_token: "▁<PRE>",
      middle_token: "▁<MID>",
      suffix_token: "▁<SUF>",
      eot_token: "▁<EOT>",
      fill_token: "<FILL_ME>",
    };
    const addsSpace = option<boolean | null>("add_prefix_space", true) ?? true;
    const unknown = option("unk_token", "<unk>");
    return {
      model: bpe(model, { fuse_unk: true, byte_fallback: true, unk_token: unknown }),
      normalizer: null,
      pre_tokenizer: metaspace(addsSpace ? "first" : "never", false),
      decoder: sequence("decoders", ...fallbackDecoders, stripSpace),
      around: ["bos_token", null],
      defaults: { ...sentencePiece, ...infill },
    };
  },
  GemmaTokenizer: (option, model) => ({
    model: bpe(model, {
      fuse_unk: true,
      byte_fallback: true,
      unk_token: option("unk_token", "<unk>"),
    }),
    normalizer: replace(" ", "▁"),
    pre_tokenizer: {
      type: "Split",
      pattern: { String: " " },
      behavior: "MergedWithPrevious",
      invert: false,
    },
    decoder: sequence("decoders", ...fallbackDecoders),
    defaults: {
      unk_token: "<unk>",
      bos_token: "<bos>",
      eos_token: "<eos>",
      pad_token: "<pad>",
      mask_token: "<mask>",
    },
  }),
};
