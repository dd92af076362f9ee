import { isCount, isRecord } from "@periodic-eval/contracts/options";
import { quoteShort } from "../folder/model-error.ts";
import { partError } from "./pipeline/part.ts";

export interface TokenizerConfig {
  readonly chat_template?: string | readonly { readonly name: string; readonly template: string }[];
  readonly [key: string]: unknown;
}

type Fields = Readonly<Record<string, unknown>>;

/** Checks the fields of `tokenizer_config.json` that this package reads, except those of tokens. */
export function checkConfig(json: Fields, file: string): TokenizerConfig {
  const { chat_template: template, tokenizer_class: name, fast_tokenizer_files: versions } = json;
  const isNamed = (entry: unknown) =>
    isRecord(entry) && typeof entry["name"] === "string" && typeof entry["template"] === "string";
  const isTemplate =
    template == null || typeof template === "string" || (Array.isArray(template) && template.every(isNamed));
  if (!isTemplate)
    throw partError(
      file,
      ["chat_template"],
      quoteShort(template),
      "a string, or an array of { name, template }",
    );
  if (name != null && typeof name !== "string")
    throw partError(file, ["tokenizer_class"], quoteShort(name), "a string");
  if (versions != null)
    throw partError(
      file,
      ["fast_tokenizer_files"],
      quoteShort(versions),
      "one tokenizer.json for all versions of transformers",
      "Save the tokenizer again with save_pretrained.",
    );
  return {
    ...json,
    ...("chat_template" in json && { chat_template: template ?? undefined }),
  } as TokenizerConfig;
}

/** Checks an `eos_token_id`: an id, an array of ids, or null. */
export function checkEosIds(value: unknown, file: string): readonly number[] {
  const ids: readonly unknown[] = Array.isArray(value) ? value : value == null ? [] : [value];
  if (!ids.every((id) => isCount(id)))
    throw partError(file, ["eos_token_id"], quoteShort(value), "integers of 0 or more");
  return ids;
}
