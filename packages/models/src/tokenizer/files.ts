import { join } from "@periodic-eval/core/platform";
import { modelError } from "../folder/model-error.ts";
import { parseJsonObject, readText } from "../folder/read-file.ts";
import {
  checkConfig,
  checkEosIds,
  checkTokenizer,
  type TokenizerConfig,
  type TokenizerJson,
} from "./check-files.ts";

/** The parsed files of a tokenizer. */
export interface TokenizerFiles {
  readonly folder: string;
  readonly tokenizer: TokenizerJson;
  readonly config: TokenizerConfig;
  /** Special tokens by name, such as `eos_token`. `special_tokens_map.json` fills gaps of `tokenizer_config.json`. */
  readonly specialTokens: Readonly<Record<string, string>>;
  /** The source of the default chat template; null if the folder has none. */
  readonly chatTemplate: string | null;
  readonly eosIds: readonly number[];
  /** JSON of everything that encodings, renderings and ends of replies depend on. */
  readonly identity: string;
}

/** Reads a Hugging Face tokenizer folder. Only `tokenizer.json` is required. */
export async function readTokenizerFiles(folder: string): Promise<TokenizerFiles> {
  const [tokenizerText, configText, mapText, generationText, templateText] = await Promise.all([
    readText(folder, "tokenizer.json"),
    readText(folder, "tokenizer_config.json"),
    readText(folder, "special_tokens_map.json"),
    readText(folder, "generation_config.json"),
    readText(folder, "chat_template.jinja"),
  ]);
  if (tokenizerText === null) {
    throw modelError({
      where: join(folder, "tokenizer.json"),
      got: "no such file",
      expected: "a fast Hugging Face tokenizer",
      fix: "Save the tokenizer with save_pretrained, or pass a folder that has tokenizer.json.",
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
    // Evaluations set their own sampling, so only the ids of the generation file count.
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
