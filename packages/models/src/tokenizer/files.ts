import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import {
  checkConfig,
  checkEosIds,
  checkTokenizer,
  type TokenizerConfig,
  type TokenizerJson,
} from "./check-files.ts";
import { parseJsonObject, readText } from "../folder/read-file.ts";

/** A tokenizer's files, parsed, with the texts that they were parsed from. */
export interface TokenizerFiles {
  readonly folder: string;
  readonly tokenizer: TokenizerJson;
  readonly config: TokenizerConfig;
  /** Names such as `eos_token`, as the files give them (`special_tokens_map.json` fills what the config leaves out). */
  readonly specialTokens: Readonly<Record<string, string>>;
  /** The source of the default chat template; null where the folder has none. */
  readonly chatTemplate: string | null;
  readonly eosIds: readonly number[];
  /** What an encoding, a rendering or the end of a reply depends on, as text. */
  readonly identity: string;
}

/** Reads a Hugging Face tokenizer folder. Only `tokenizer.json` must be there. */
export async function readTokenizerFiles(folder: string): Promise<TokenizerFiles> {
  const [tokenizerText, configText, mapText, generationText, templateText] = await Promise.all([
    readText(folder, "tokenizer.json"),
    readText(folder, "tokenizer_config.json"),
    readText(folder, "special_tokens_map.json"),
    readText(folder, "generation_config.json"),
    readText(folder, "chat_template.jinja"),
  ]);
  if (tokenizerText === null) {
    throw new PeriodicEvalError({
      code: "model",
      where: join(folder, "tokenizer.json"),
      got: "no such file",
      expected: "a Hugging Face tokenizer in its fast form",
      fix: "Save the tokenizer with save_pretrained, or give a folder that has tokenizer.json.",
    });
  }
  const parsed = (text: string | null, name: string) =>
    parseJsonObject(text ?? "{}", join(folder, name), "Download or write the file again.");
  const config = checkConfig(
    parsed(configText, "tokenizer_config.json"),
    join(folder, "tokenizer_config.json"),
  );
  const map = parsed(mapText, "special_tokens_map.json");
  const generation = parsed(generationText, "generation_config.json");
  const eosIds = checkEosIds(generation["eos_token_id"], join(folder, "generation_config.json"));
  return {
    folder,
    tokenizer: checkTokenizer(parsed(tokenizerText, "tokenizer.json"), join(folder, "tokenizer.json")),
    config,
    specialTokens: specialTokens({ ...map, ...config }),
    chatTemplate: templateText ?? templateOf(config),
    eosIds,
    // Of the generation file only what is read: how replies are sampled, each evaluation says itself.
    identity: JSON.stringify([tokenizerText, configText, mapText, templateText, eosIds]),
  };
}

function specialTokens(entries: Record<string, unknown>): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(entries)) {
    if (!name.endsWith("_token") || value === null) continue;
    if (typeof value === "string") found[name] = value;
    else if (typeof value === "object" && "content" in value) found[name] = String(value.content);
  }
  return found;
}

function templateOf({ chat_template: template }: TokenizerConfig): string | null {
  if (template === undefined || typeof template === "string") return template ?? null;
  return template.find(({ name }) => name === "default")?.template ?? null;
}
