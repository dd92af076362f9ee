import { join, withinTime } from "@periodic-eval/core/platform";
import { errorMessage, type Codec } from "@periodic-eval/core/internal";
import type { Tokenizer as HuggingFaceTokenizer } from "@huggingface/tokenizers";
import { modelError } from "../folder/model-error.ts";
import type { TokenizerConfig, TokenizerJson } from "./check-files.ts";
import type { TokenizerFiles } from "./files.ts";
import { limitLattice } from "./lattice-limit.ts";
import {
  growsTooMuch,
  growthOf,
  holdsEndlessPattern,
  holdsSlowPattern,
  isSlowModel,
} from "./pipeline-limits.ts";

/** Shorter texts take less than seconds, unless the tokenizer is slow. */
const shortLength = 250;

/**
 * The pipeline of a Llama 2 style folder.
 * - `"transformers"`: that of transformers 5. For `tokenizer_class: LlamaTokenizer` it replaces the pipeline of
 *   `tokenizer.json`.
 * - `"tokenizer_json"`: that of `tokenizer.json`, as in the fast tokenizers of transformers 4.
 */
export type Pipeline = "transformers" | "tokenizer_json";

/**
 * Opens the codec of a tokenizer.
 *
 * @param limitMilliseconds Time for one text; a long text may take 30 µs more for each character.
 * @throws PeriodicEvalError `model` if the library cannot build the tokenizer. `encode` and `decode` throw the same for
 *   inputs on which the library fails.
 */
export async function openCodec(
  { folder, tokenizer: file, config }: TokenizerFiles,
  pipeline: Pipeline,
  limitMilliseconds = 10_000,
): Promise<Codec> {
  const { Tokenizer } = await import("@huggingface/tokenizers");
  const loaded = pipeline === "transformers" ? asTransformersLoads(file, config) : file;
  const json = { ...loaded, pre_tokenizer: withEveryNumeral(loaded.pre_tokenizer) };
  const where = join(folder, "tokenizer.json");
  for (const part of ["normalizer", "decoder"] as const)
    if (growsTooMuch(json[part]))
      throw modelError({
        where: `${where}, ${part}`,
        path: [part],
        got: "replacements that may multiply the length of a text by more than 1000",
        expected: "a tokenizer whose texts fit into memory",
        fix: "Check where the model comes from, and remove the replacements.",
      });
  for (const part of ["normalizer", "pre_tokenizer", "decoder"] as const)
    if (holdsEndlessPattern(json[part]))
      throw modelError({
        where: `${where}, ${part}`,
        path: [part],
        got: "a regular expression that is too long, or whose alternatives combine in too many ways",
        expected: "a tokenizer whose texts can be encoded",
        fix: "Check where the model comes from, and simplify the regular expression.",
      });
  const isSlow =
    isSlowModel(file.model) || [json.normalizer, json.pre_tokenizer, json.decoder].some(holdsSlowPattern);
  const guarded = <T>(length: number, expected: string, work: () => T): T => {
    const limit = limitMilliseconds + Math.ceil(0.03 * length);
    return named(where, expected, isSlow || length > shortLength ? () => withinTime(limit, work) : work);
  };
  const tokenizer = guarded(0, "a tokenizer that can be built", () => {
    const built = new Tokenizer(json, {
      ...config,
      // transformers 5 cleans up only if configured; the library's default is that of older versions.
      clean_up_tokenization_spaces: config.clean_up_tokenization_spaces ?? false,
    });
    repairByteFallback(built);
    limitLattice(built.model, file.model);
    // Many defects of a pipeline show only when it runs.
    built.encode("a b");
    return built;
  });
  const growth = { encoding: growthOf(json.normalizer), decoding: growthOf(json.decoder) };
  /** Tokens of a file have any length. */
  const lengthOf = (ids: readonly number[]) =>
    ids.reduce((sum, id) => sum + (tokenizer.id_to_token(id)?.length ?? 1), 0);
  let largest = -1;
  for (const id of tokenizer.get_vocab().values()) largest = Math.max(largest, id);
  return {
    vocabSize: largest + 1,
    encode: (text, specialTokens) =>
      guarded(text.length * growth.encoding, "a tokenizer that encodes this text", () => {
        return tokenizer.encode(text, { add_special_tokens: specialTokens }).ids;
      }),
    decode: (ids, specialTokens) =>
      // The library throws for an empty array.
      ids.length === 0
        ? ""
        : guarded(lengthOf(ids) * growth.decoding, "a tokenizer that decodes these ids", () => {
            return tokenizer.decode([...ids], { skip_special_tokens: !specialTokens });
          }),
    tokenOf: (id) => tokenizer.id_to_token(id),
    idOf: (token) => tokenizer.token_to_id(token),
    specialIds: new Set(json.added_tokens.filter(({ special }) => special).map(({ id }) => id)),
    isByteLevel: holds(json.decoder, "ByteLevel"),
  };
}

/** Wraps errors of the library, which name neither the file nor a fix. */
function named<T>(where: string, expected: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    const got = `the error "${errorMessage(cause)}"`;
    const fix =
      "Save the tokenizer again with save_pretrained: this file is damaged or of an unsupported kind.";
    throw modelError({ where, got, expected, fix, cause });
  }
}

/** Keeps vocabulary and merges and replaces the pipeline, as transformers 5.23 `models/llama/tokenization_llama.py`. */
function asTransformersLoads(file: TokenizerJson, config: TokenizerConfig): TokenizerJson {
  if (!["LlamaTokenizer", "LlamaTokenizerFast"].includes(config.tokenizer_class ?? "")) return file;
  const addsSpace = config.add_prefix_space ?? true;
  const scheme = addsSpace ? ((config.legacy ?? false) ? "always" : "first") : "never";
  const strip = addsSpace ? [{ type: "Strip", content: " ", start: 1, stop: 0 }] : [];
  return {
    ...file,
    normalizer: null,
    pre_tokenizer: { type: "Metaspace", replacement: "▁", prepend_scheme: scheme, split: false },
    decoder: {
      type: "Sequence",
      decoders: [
        { type: "Replace", pattern: { String: "▁" }, content: " " },
        { type: "ByteFallback" },
        { type: "Fuse" },
        ...strip,
      ],
    },
  };
}

/**
 * Replaces `Digits` by an equivalent `Split`. Hugging Face's `Digits` splits at the characters of Rust's
 * `char::is_numeric`: Unicode's Nd, Nl and No. The library's splits at ASCII digits only.
 */
function withEveryNumeral(part: unknown): unknown {
  if (typeof part !== "object" || part === null) return part;
  const { type, individual_digits: isEach, pretokenizers: parts } = part as PreTokenizerPart;
  if (type === "Digits") {
    const pattern = { Regex: isEach === true ? "\\p{N}" : "\\p{N}+" };
    return { type: "Split", pattern, behavior: "Isolated", invert: false };
  }
  return Array.isArray(parts) ? { ...part, pretokenizers: parts.map(withEveryNumeral) } : part;
}

interface PreTokenizerPart {
  readonly type?: unknown;
  readonly individual_digits?: unknown;
  readonly pretokenizers?: unknown;
}

/**
 * Repairs the decoding of runs of `<0xNN>`. The library's TextDecoder drops U+FEFF, and for an invalid run it writes fewer
 * characters than Hugging Face's decoder, which writes one U+FFFD per byte.
 */
function repairByteFallback(tokenizer: HuggingFaceTokenizer): void {
  const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const decode = (bytes: Uint8Array): string => {
    try {
      return strict.decode(bytes);
    } catch {
      return "\uFFFD".repeat(bytes.length);
    }
  };
  const visit = (decoder: DecoderPart): void => {
    if (decoder.config?.type === "ByteFallback") decoder.text_decoder = { decode };
    decoder.decoders?.forEach(visit);
  };
  if (tokenizer.decoder !== null) visit(tokenizer.decoder);
}

/** The library's decoders at run time; its types hide these fields. */
interface DecoderPart {
  readonly config?: { readonly type?: string };
  readonly decoders?: readonly DecoderPart[];
  text_decoder?: { decode(bytes: Uint8Array): string };
}

function holds(part: unknown, type: string): boolean {
  return JSON.stringify(part ?? null).includes(`"type":"${type}"`);
}
