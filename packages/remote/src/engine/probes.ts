import { type Tokenizer, PeriodicEvalError } from "@periodic-eval/core";
import { abbreviated, configError, isCount, quoteValue } from "@periodic-eval/contracts/options";
import { hashJson } from "@periodic-eval/core/random";
import { failedAttemptOf } from "../http/json-service.ts";
import { arrayOrNull, at, isString } from "../http/reply-fields.ts";
import { generateBody, tokenNats } from "./generation.ts";
import { messageText } from "../models/chat-message.ts";
import type { Replica } from "./pool.ts";
import { scorePrompts, withScoringFix } from "./scoring.ts";
import { serverError, checkPromptIds, choicesOf, completionIds, topLogProbs } from "./wire.ts";

/** The entry of a model in the server's list. */
export interface ListedModel {
  readonly id: string;
  readonly root: string | null;
  readonly parent: string | null;
  readonly contextLimit: number | null;
}

export async function listModels(
  { service }: Pick<Replica, "service">,
  signal: AbortSignal,
): Promise<readonly ListedModel[]> {
  const reply = await service.ask("v1/models", undefined, signal);
  return (arrayOrNull(at(reply, "data")) ?? []).flatMap((entry): ListedModel[] => {
    const text = (name: string) => {
      const value = at(entry, name);
      return isString(value) ? value : null;
    };
    const [id, limit] = [text("id"), at(entry, "max_model_len")];
    if (id === null) return [];
    const contextLimit = typeof limit === "number" && limit > 0 ? limit : null;
    return [{ id, root: text("root"), parent: text("parent"), contextLimit }];
  });
}

/** @throws PeriodicEvalError `config` if the server does not list the model. */
export function findModel(
  models: readonly ListedModel[],
  name: string,
  where: string,
  url: string,
): ListedModel {
  const listed = models.find(({ id }) => id === name);
  if (listed !== undefined) return listed;
  throw configError({
    where,
    path: ["model"],
    value: name,
    expected: `a model of ${url}: ${abbreviated(models.map(({ id }) => quoteValue(id)).join(", "), 1000) || "it lists none"}`,
    fix: "Correct the name.",
  });
}

/** Texts that tokenizers encode differently: digits, spaces, line breaks, letters beyond ASCII, emoji. */
const probeTexts = [
  "The quick brown fox, aged 12345.67, can't jump over 3 lazy dogs.\n\n\tdef f(x):\n        return x ** 2\n",
  "  Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich —  naïve façade ",
  "東京は日本の首都です。 Привет, мир! 🙂🏳️‍🌈 ﷽",
  "<|im_start|>user\nQuestion: Which one?<|im_end|>\n</s><s>[INST] Answer: (A)",
];

/** Returns null if the tokenizer cannot encode the text, such as a tokenizer of few characters. */
function encodeOrNull(tokenizer: Tokenizer, text: string, specialTokens: boolean): readonly number[] | null {
  try {
    return tokenizer.encode(text, { specialTokens });
  } catch {
    return null;
  }
}

/**
 * Compares a tokenizer with the server's.
 *
 * @returns False if the server has no `/tokenize`, or one with other fields.
 * @throws PeriodicEvalError `model` if they encode a text differently.
 */
export async function checkTokenizer(
  replica: Replica,
  tokenizer: Tokenizer,
  model: string,
  where: string,
  signal: AbortSignal,
): Promise<boolean> {
  for (const prompt of probeTexts)
    for (const specialTokens of [true, false]) {
      const ours = encodeOrNull(tokenizer, prompt, specialTokens);
      if (ours === null) continue;
      const body = { model, prompt, add_special_tokens: specialTokens };
      const { status, body: reply } = await replica.service.reply("tokenize", body, signal, {
        isJson: false,
      });
      const theirs = arrayOrNull(at(reply, "tokens")) ?? [];
      // llama.cpp reads the text of another field, so it returns no tokens; other servers return objects.
      if (status >= 300 || theirs.length === 0 || !theirs.every((id) => isCount(id))) return false;
      const differs = ours.findIndex((id, index) => id !== theirs[index]);
      if (differs === -1 && ours.length === theirs.length) continue;
      throw serverError({
        where,
        got: `a tokenizer that encodes ${quoteValue(prompt.slice(0, 40))}… as [${ours.slice(0, 8).join(", ")}, …]`,
        expected: `the ids of ${replica.url}, [${theirs.slice(0, 8).join(", ")}, …]`,
        fix: "Give the tokenizer of the model that the server runs.",
      });
    }
  return true;
}

/** Token ids for probes, at most 48 and fewer than the context holds; null if the tokenizer encodes none of the texts. */
export function probeIds(tokenizer: Tokenizer, contextLimit: number): readonly number[] | null {
  const ids = [...probeTexts, "A"].flatMap((text) => encodeOrNull(tokenizer, text.slice(0, 64), false) ?? []);
  const most = Math.min(48, contextLimit - 8);
  return ids.length < 2 || most < 2 ? null : ids.slice(0, most);
}

type Asked = Parameters<typeof scorePrompts>[1];

/** Returns the log-probabilities of the probe's tokens but the first, as the model scores them alone. */
export async function probeNats(
  replica: Replica,
  asked: Asked,
  ids: readonly number[],
  signal: AbortSignal,
): Promise<readonly number[]> {
  try {
    const [scores] = await scorePrompts(replica, asked, [{ ids, count: ids.length - 1 }], signal);
    return scores!.map(({ nats }) => nats);
  } catch (error) {
    throw withScoringFix(error);
  }
}

/** Returns the largest change of the probe's log-probabilities when other prompts are scored in the same batch. */
export async function batchDifference(
  replica: Replica,
  asked: Asked,
  ids: readonly number[],
  alone: readonly number[],
  signal: AbortSignal,
): Promise<number> {
  const fillers = Array.from({ length: 7 }, (_, index) => {
    const part = ids.slice(0, Math.max(2, Math.ceil((ids.length * (index + 1)) / 7)));
    return { ids: part, count: 1 };
  });
  try {
    const [scores] = await scorePrompts(replica, asked, [{ ids, count: alone.length }, ...fillers], signal);
    return largestDifference(
      scores!.map(({ nats }) => nats),
      alone,
    );
  } catch (error) {
    throw withScoringFix(error);
  }
}

export const largestDifference = (a: readonly number[], b: readonly number[]): number =>
  Math.max(...a.map((nats, index) => Math.abs(nats - b[index]!)));

/** Differences up to this one are rounding: nats per token. Larger ones are expected of a server whose scores depend on the batch. */
export const toleranceOf = (difference: number): number => Math.max(1e-3, 4 * difference);

/** A hash that changes with the weights: of the exact log-probabilities of the probe. */
export const fingerprintOf = (nats: readonly number[]): string => `probe:${hashJson([...nats])}`;

/** The fields that a server returns with generated tokens. */
export interface GenerationFacts {
  readonly topCount: number;
  readonly hasTokenNats: boolean;
}

/**
 * Generates from token ids, and compares the log-probabilities of generated tokens with those of the same tokens in a prompt. A
 * server may report them after temperature and top-p.
 *
 * @returns null if the server cannot generate from token ids, or does not report the ids it generates.
 */
export async function probeGeneration(
  replica: Replica,
  asked: Asked,
  tokenizer: Tokenizer,
  ids: readonly number[],
  signal: AbortSignal,
): Promise<GenerationFacts | null> {
  const prompt = ids.slice(0, 8);
  const sampling = { maxNewTokens: 4, temperature: 0.5, seed: "probe" };
  for (const topTokens of [20, 5, 0]) {
    const body = generateBody(asked.name, tokenizer, {
      prompt,
      sampling: { ...sampling, topTokens },
      room: 4,
    });
    const generated = await orMissing(async () => {
      const reply = await replica.service.ask("v1/completions", body, signal);
      const [choice] = choicesOf(
        reply,
        { count: 1, model: asked.name, isAdapter: asked.isAdapter },
        asked.where,
      );
      checkPromptIds(choice, prompt, asked.where);
      const written = completionIds(choice);
      return written === null || written.length === 0 ? null : { choice, written };
    });
    if (generated === null) continue;
    const hasTokenNats = await orMissing(async () => {
      const { choice, written } = generated;
      const nats = tokenNats(choice, written.length, asked.where);
      const whole = await probeNats(replica, asked, [...prompt, ...written], signal);
      return largestDifference(nats, whole.slice(-written.length)) <= 0.1;
    });
    const top = hasTokenNats === true ? topLogProbs(generated.choice, asked.where)?.[0] : undefined;
    return { topCount: (top?.size ?? 0) > 1 ? topTokens : 0, hasTokenNats: hasTokenNats === true };
  }
  return null;
}

/** Whether a server answers chats, and reports how many tokens they have. */
export async function probeChat(replica: Replica, model: string, signal: AbortSignal): Promise<boolean> {
  const body = { model, messages: [{ role: "user", content: "Hi" }], max_tokens: 2, temperature: 0 };
  const reply = await orMissing(() => replica.service.ask("v1/chat/completions", body, signal));
  // The two tokens of a model that thinks are no content yet.
  return (
    messageText(replica.url, at(reply, "choices", 0, "message")) !== null &&
    typeof at(reply, "usage", "completion_tokens") === "number"
  );
}

/**
 * Returns null if a server answers that it cannot do something. Other errors pass through: a server that cannot be reached, or
 * rejects the key, may have the ability.
 */
export async function orMissing<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    const status = PeriodicEvalError.is(error) && error.detail?.kind === "http" ? error.detail.status : null;
    const isAnswer =
      PeriodicEvalError.is(error) && failedAttemptOf(error) === null && status !== 401 && status !== 403;
    if (isAnswer) return null;
    throw error;
  }
}
