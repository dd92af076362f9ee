import {
  PeriodicEvalError,
  type ChatEnding,
  type Prompt,
  type RenderedPrompt,
  type Tokenizer,
} from "@periodic-eval/core";
import { hashText } from "@periodic-eval/core/random";
import { checkKeys, checkWord, errorMessage } from "@periodic-eval/core/internal";
import { tokenByteRanges } from "./align.ts";
import { chatRenderer, type RenderedChat } from "./chat.ts";
import { openCodec, type Codec, type Pipeline } from "./codec.ts";
import { failure } from "../folder/failure.ts";
import type { DownloadProgress } from "../hub/fetch-model.ts";
import { modelFolder } from "../hub/model-folder.ts";
import { readTokenizerFiles, type TokenizerFiles } from "./files.ts";
import { compileTemplate, type ChatTemplate } from "./template.ts";
import { checkDate, defaultDate } from "./template-date.ts";

export interface LoadTokenizerOptions {
  /** Which pipeline a Llama-2 style folder gets. Default `"transformers"`: as transformers 5 loads it. */
  readonly pipeline?: Pipeline;
  /**
   * The day that a chat template is told where it asks for today's, as `YYYY-MM-DD`; default `"2024-07-26"`, which Llama
   * 3's templates fall back to. The clock is not read: prompts are the same on every day.
   */
  readonly date?: string;
  /** Told how far a file is that has to be fetched from the hub. */
  readonly onDownload?: (progress: DownloadProgress) => void;
}

/**
 * Opens the tokenizer of a Hugging Face folder, or of a model on its hub (`owner/name` or `owner/name@revision`; a local
 * folder of that name comes first): `tokenizer.json`, and where they are there `tokenizer_config.json`,
 * `special_tokens_map.json`, `generation_config.json` and `chat_template.jinja`. Encodings, renderings and decodings equal
 * transformers 5.23 (tokenizers 0.23) on the fixtures. Needs no TensorFlow.js.
 *
 * `render` of a chat throws a `PeriodicEvalError` of code `"model"` where the folder has no template, where the template
 * raises (its error is the `cause`), and where `"no_system_block"` or `"continue"` cannot be had from it.
 */
export async function loadTokenizer(source: string, options: LoadTokenizerOptions = {}): Promise<Tokenizer> {
  checkKeys("loadTokenizer", options, ["pipeline", "date", "onDownload"]);
  const { pipeline = "transformers", date = defaultDate, onDownload } = options;
  checkWord("loadTokenizer pipeline", pipeline, ["transformers", "tokenizer_json"]);
  checkDate(date);
  const folder = await modelFolder(source, { need: "tokenizer", ...(onDownload && { onDownload }) });
  const files = await readTokenizerFiles(folder);
  const codec = await openCodec(files, pipeline);
  const where = `the chat template of ${folder}`;
  const renderChat =
    files.chatTemplate === null ? null : chatRenderer(await compile(files, where, date), where);

  const render = (prompt: Prompt, ending: ChatEnding): RenderedPrompt => {
    if ("ids" in prompt) return { text: null, ids: prompt.ids, assistantMask: null };
    if ("text" in prompt)
      return { text: prompt.text, ids: codec.encode(prompt.text, true), assistantMask: null };
    if (renderChat === null) {
      throw new PeriodicEvalError({
        code: "model",
        where: folder,
        got: "a tokenizer without a chat template",
        expected: "chat_template.jinja, or chat_template in tokenizer_config.json",
        fix: "Add the template, or ask with plain text.",
      });
    }
    const { text, spoken } = renderChat(
      prompt.messages,
      prompt.system ?? "omit",
      ending,
      prompt.templateKwargs,
    );
    const ids = codec.encode(text, false);
    return { text, ids, assistantMask: maskOf(codec, text, ids, spoken) };
  };

  return {
    fingerprint: hashText(JSON.stringify([pipeline, date, files.identity])),
    vocabSize: codec.vocabSize,
    stopIds: stopIds(files, codec, renderChat),
    eosId: eosId(files, codec),
    encode: (text, { specialTokens = true } = {}) => codec.encode(text, specialTokens),
    decode: (ids, { specialTokens = true } = {}) => codec.decode(ids, specialTokens),
    render: (prompt, { ending = "generation" } = {}) => render(prompt, ending),
  };
}

async function compile(
  { chatTemplate, specialTokens }: TokenizerFiles,
  where: string,
  date: string,
): Promise<ChatTemplate> {
  try {
    return await compileTemplate(chatTemplate ?? "", specialTokens, date);
  } catch (cause) {
    const fix = "Correct the template, or remove it to ask with plain text.";
    throw failure(where, `the error "${errorMessage(cause)}"`, "a template that compiles", fix, cause);
  }
}

/** A token belongs to the assistant if any of its bytes do, as transformers' `return_assistant_tokens_mask`. */
function maskOf(
  codec: Codec,
  text: string,
  ids: readonly number[],
  spoken: RenderedChat["spoken"],
): boolean[] | null {
  if (spoken === null) return null;
  if (spoken.length === 0) return ids.map(() => false);
  const ranges = tokenByteRanges(codec, text, ids);
  if (ranges === null) return null;
  const spans = spoken.map(
    ([start, end]) => [byteLength(text.slice(0, start)), byteLength(text.slice(0, end))] as const,
  );
  return ranges.map(([start, end]) => spans.some(([from, to]) => start < to && end > from));
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** The model's own ends of text, and the special token that the template writes after an assistant's words. */
function stopIds(
  files: TokenizerFiles,
  codec: Codec,
  renderChat: ReturnType<typeof chatRenderer> | null,
): number[] {
  const found = new Set(files.eosIds);
  const eos = eosId(files, codec);
  if (eos !== null) found.add(eos);
  const endOfTurn = renderChat === null ? null : endOfTurnId(codec, renderChat);
  if (endOfTurn !== null) found.add(endOfTurn);
  return [...found];
}

function eosId({ specialTokens }: TokenizerFiles, codec: Codec): number | null {
  const eos = specialTokens["eos_token"];
  return eos === undefined ? null : (codec.idOf(eos) ?? null);
}

function endOfTurnId(codec: Codec, renderChat: ReturnType<typeof chatRenderer>): number | null {
  const spoken = "PROBE";
  const chat = [
    { role: "user", content: "Hello" },
    { role: "assistant", content: spoken },
  ];
  try {
    const { text } = renderChat(chat, "omit", "complete");
    const after = text.slice(text.lastIndexOf(spoken) + spoken.length);
    const first = codec.encode(after.trimStart(), false)[0];
    return first !== undefined && codec.specialIds.has(first) ? first : null;
  } catch {
    // A template that takes no such chat has no end of turn that could be found this way.
    return null;
  }
}
