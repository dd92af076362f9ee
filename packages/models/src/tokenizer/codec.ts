import { join } from "node:path";
import { errorMessage } from "@periodic-eval/core/internal";
import type { Tokenizer as HuggingFaceTokenizer } from "@huggingface/tokenizers";
import { failure } from "../folder/failure.ts";
import type { TokenizerConfig, TokenizerJson } from "./check-files.ts";
import type { TokenizerFiles } from "./files.ts";

/**
 * Which pipeline a Llama-2 style folder gets.
 * - `"transformers"`: as transformers 5 loads it. For `tokenizer_class: LlamaTokenizer` it rebuilds the pipeline and leaves
 *   that of `tokenizer.json` aside.
 * - `"tokenizer_json"`: the file taken literally, as the fast tokenizers of transformers 4 did.
 */
export type Pipeline = "transformers" | "tokenizer_json";

/** Text to ids and back, with no notion of chats. */
export interface Codec {
  readonly vocabSize: number;
  encode(text: string, specialTokens: boolean): number[];
  decode(ids: readonly number[], specialTokens: boolean): string;
  tokenOf(id: number): string | undefined;
  idOf(token: string): number | undefined;
  readonly specialIds: ReadonlySet<number>;
  /** True where tokens are written in GPT-2's byte alphabet. */
  readonly isByteLevel: boolean;
}

/** Throws a `model` error where the library cannot make a tokenizer of the file; so do its functions for a text. */
export async function openCodec(
  { folder, tokenizer: file, config }: TokenizerFiles,
  pipeline: Pipeline,
): Promise<Codec> {
  const { Tokenizer } = await import("@huggingface/tokenizers");
  const loaded = pipeline === "transformers" ? asTransformersLoads(file, config) : file;
  const json = { ...loaded, pre_tokenizer: withEveryNumeral(loaded.pre_tokenizer) };
  const where = join(folder, "tokenizer.json");
  const tokenizer = guarded(where, "a tokenizer that can be built", () => {
    const built = new Tokenizer(json, {
      ...config,
      // transformers 5 cleans up only where it is asked to; the library's default is the older one.
      clean_up_tokenization_spaces: config.clean_up_tokenization_spaces ?? false,
    });
    repairByteFallback(built);
    // What is wrong in a pipeline often shows only where something goes through it.
    built.encode("a b");
    return built;
  });
  let largest = -1;
  for (const id of tokenizer.get_vocab().values()) largest = Math.max(largest, id);
  return {
    vocabSize: largest + 1,
    encode: (text, specialTokens) =>
      guarded(where, "a tokenizer that encodes this text", () => {
        return tokenizer.encode(text, { add_special_tokens: specialTokens }).ids;
      }),
    decode: (ids, specialTokens) =>
      // The library refuses an empty list.
      ids.length === 0
        ? ""
        : guarded(where, "a tokenizer that decodes these ids", () => {
            return tokenizer.decode([...ids], { skip_special_tokens: !specialTokens });
          }),
    tokenOf: (id) => tokenizer.id_to_token(id),
    idOf: (token) => tokenizer.token_to_id(token),
    specialIds: new Set(json.added_tokens.filter(({ special }) => special).map(({ id }) => id)),
    isByteLevel: holds(json.decoder, "ByteLevel"),
  };
}

/** What the library throws says neither whose file it is nor what to do. */
function guarded<T>(where: string, expected: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    const fix =
      "Save the tokenizer anew with save_pretrained: this file is damaged, or of a kind that is not supported.";
    throw failure(where, `the error "${errorMessage(cause)}"`, expected, fix, cause);
  }
}

/** transformers 5.23, `models/llama/tokenization_llama.py`: vocabulary and merges are kept, the pipeline is built anew. */
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
 * `Digits` splits at what Rust's `char::is_numeric` holds for a number: Unicode's Nd, Nl and No. The library splits at the
 * ASCII digits alone; its `Split` takes the whole class.
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
 * The library decodes runs of `<0xNN>` with a TextDecoder that swallows U+FEFF and replaces a broken run by fewer signs
 * than Hugging Face's, which writes one U+FFFD per byte.
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

/** The library's decoders as they are at run time; its types keep these fields to themselves. */
interface DecoderPart {
  readonly config?: { readonly type?: string };
  readonly decoders?: readonly DecoderPart[];
  text_decoder?: { decode(bytes: Uint8Array): string };
}

function holds(part: unknown, type: string): boolean {
  return JSON.stringify(part ?? null).includes(`"type":"${type}"`);
}
