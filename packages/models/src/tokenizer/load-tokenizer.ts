import type { Tokenizer } from "@periodic-eval/core";
import {
  chatRenderer,
  defaultDate,
  templateDate,
  tokenizerWith,
  type ChatTemplate,
} from "@periodic-eval/tokenizers";
import { errorMessage, parseOptions } from "@periodic-eval/contracts/options";
import { hashText } from "@periodic-eval/core/random";
import * as z from "zod";
import { modelError } from "../folder/model-error.ts";
import { onDownloadSchema, type DownloadProgress } from "../hub/fetch-model.ts";
import { modelFolder } from "../hub/model-folder.ts";
import { openCodec, type OpenedCodec, type PipelineSource } from "./codec.ts";
import { readTokenizerFiles } from "./files.ts";
import { compileTemplate } from "./template.ts";

export interface LoadTokenizerOptions {
  /** Where the pipeline comes from. Default: `"transformers"`, as transformers 5.24 loads the folder. */
  readonly pipeline?: PipelineSource;
  /**
   * The value of today's date in chat templates, as `YYYY-MM-DD`. Default: `"2024-07-26"`, the fallback of the Llama 3
   * templates. The clock is never read, so prompts are the same on every day.
   */
  readonly date?: string;
  /** Called with the progress of each file that is downloaded from the hub. */
  readonly onDownload?: (progress: DownloadProgress) => void;
}

const optionsSchema = z.strictObject({
  pipeline: z.enum(["transformers", "tokenizer_json"]).default("transformers"),
  date: templateDate.default(defaultDate),
  onDownload: onDownloadSchema.optional(),
} satisfies Record<keyof LoadTokenizerOptions, z.ZodType>);

/**
 * Loads the tokenizer of a local Hugging Face folder, or of a model on the hub as `owner/name` or `owner/name@revision`; a
 * local folder of that name takes precedence. Reads `tokenizer.json` and, if present, `tokenizer_config.json`,
 * `special_tokens_map.json`, `added_tokens.json`, `generation_config.json`, `config.json` and `chat_template.jinja`. Encodings
 * and decodings equal transformers 5.24 (tokenizers 0.23); a component that is not supported is an error. Needs no
 * TensorFlow.js.
 *
 * `render` throws a `model` error for a chat if the folder has no template, if the template raises (its error is the
 * `cause`), or if the template cannot produce `"no_system_block"` or `"continue"`.
 *
 * @throws PeriodicEvalError `model` if a file is missing, damaged or not supported; `config` for a wrong option.
 */
export async function loadTokenizer(source: string, options: LoadTokenizerOptions = {}): Promise<Tokenizer> {
  const { pipeline, date, onDownload } = parseOptions("loadTokenizer options", optionsSchema, options);
  const folder = await modelFolder(source, { need: "tokenizer", ...(onDownload && { onDownload }) });
  const files = await readTokenizerFiles(folder);
  const codec = openCodec(files, pipeline);
  const where = `the chat template of ${folder}`;
  const renderChat =
    files.chatTemplate === null
      ? null
      : chatRenderer(compile(files.chatTemplate, codec, where, date), where, files.chatTemplate);

  const noTemplate = () =>
    modelError({
      where: folder,
      got: "a tokenizer without a chat template",
      expected: "chat_template.jinja, or chat_template in tokenizer_config.json",
      fix: "Add the template, or use plain text prompts.",
    });

  const eos = codec.specialTokens["eos_token"];
  return tokenizerWith(codec, {
    fingerprint: hashText(JSON.stringify([pipeline, date, files.identity])),
    eosId: eos === undefined ? null : (codec.idOf(eos) ?? null),
    endIds: files.eosIds,
    renderChat,
    noTemplate,
  });
}

function compile(
  chatTemplate: string,
  { specialTokens }: OpenedCodec,
  where: string,
  date: string,
): ChatTemplate {
  try {
    return compileTemplate(chatTemplate, specialTokens, date);
  } catch (cause) {
    throw modelError({
      where,
      got: `the error "${errorMessage(cause)}"`,
      expected: "a template that compiles",
      fix: "Correct the template, or remove it and use plain text prompts.",
      cause,
    });
  }
}
