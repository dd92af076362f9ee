import { isRecord } from "@periodic-eval/core/internal";
import type { AddedToken } from "../pipeline/added-tokens.ts";

type Fields = Readonly<Record<string, unknown>>;

const mistralTypes = ["mistral", "mistral3", "voxtral", "ministral", "pixtral"];

/**
 * Whether transformers 5.24 replaces the expression of a Mistral tokenizer: `fix_mistral_regex` asks for it, the vocabulary is
 * large, and an older transformers saved the model. See `TokenizersBackend._patch_mistral_regex`.
 */
export function needsMistralSplit(
  {
    tokenizer,
    config,
    model,
  }: { readonly tokenizer: Fields; readonly config: Fields; readonly model: Fields },
  added: readonly AddedToken[],
): boolean {
  if (config["fix_mistral_regex"] !== true || tokenizer["pre_tokenizer"] == null) return false;
  const type = model["model_type"];
  const version = model["transformers_version"];
  if (Object.keys(model).length === 0 || (type != null && !mistralTypes.includes(type as string)))
    return false;
  if (typeof version === "string" && version !== "" && Number.parseInt(version, 10) >= 5) return false;
  const { vocab } = isRecord(tokenizer["model"]) ? tokenizer["model"] : {};
  return (
    isRecord(vocab) && new Set([...Object.keys(vocab), ...added.map(({ content }) => content)]).size > 100_000
  );
}

const split = {
  type: "Split",
  pattern: {
    Regex: String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  },
  behavior: "Isolated",
  invert: false,
};

/** Returns the pre-tokenizer with the corrected expression. */
export function mistralSplit(preTokenizer: unknown): unknown {
  if (!isRecord(preTokenizer)) return preTokenizer;
  const { type, pretokenizers } = preTokenizer;
  if (type === "Sequence" && Array.isArray(pretokenizers))
    return { type, pretokenizers: [split, ...(pretokenizers as unknown[]).slice(1)] };
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false };
  return { type: "Sequence", pretokenizers: [split, type === "Metaspace" ? byteLevel : preTokenizer] };
}
