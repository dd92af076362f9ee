import { PeriodicEvalError } from "../../errors.ts";
import type {
  Completion,
  EvaluableModel,
  LogLikelihood,
  TopToken,
  ModelWith,
} from "../../contracts/model.ts";
import { asked, completionOf, greedy, type JudgeCall, type JudgeMethod } from "./method.ts";
import { judgePromptNames } from "./prompts.ts";
import { scoreFromTokens, type TokenScore } from "./logprob-score.ts";
import { answerTokens, numbers } from "./number-tokens.ts";
import type { Verdict } from "../../contracts/grading.ts";

/** How the probabilities of a judge's first token are had. */
interface Engine {
  readonly name: "next_token" | "strings" | "top_tokens";
  readonly maxOutputTokens: number;
  read(
    prompt: string,
    call: JudgeCall,
  ): Promise<{ readonly tokens: readonly TopToken[]; readonly model?: string }>;
  check?: JudgeMethod["check"];
}

/**
 * A prompt per score; each score is the mean over the numbers 0–100 that could come first. One that
 * is no number takes nothing from the others: it is left out, and `statuses` says what it is. Their probabilities are had
 * from the next token where 0–100 are proved to be single tokens of the judge; else by scoring the strings; else, of a
 * server, from its twenty most likely tokens.
 *
 * @throws PeriodicEvalError `judge` where the model can do none of these.
 */
export function logprobMethod(model: EvaluableModel, scores: readonly string[]): JudgeMethod {
  const engine = engineOf(model);
  return {
    prompts: judgePromptNames("logprob", scores),
    maxOutputTokens: engine.maxOutputTokens,
    sampling: { temperature: greedy.temperature, numbers_by: engine.name },
    async verdict(prompts, call) {
      const read: {
        readonly name: string;
        readonly tokens: readonly TopToken[];
        readonly scored: TokenScore;
      }[] = [];
      let named: { readonly model?: string } = {};
      for (const [at, name] of scores.entries()) {
        const { tokens, model: said } = await engine.read(prompts[at]!, call);
        if (said !== undefined) named = { model: said };
        read.push({ name, tokens, scored: scoreFromTokens(tokens) });
      }
      const raw = JSON.stringify(
        Object.fromEntries(read.map(({ name, tokens }) => [name, likeliest(tokens)])),
      );
      return { ...combined(read), raw, ...named };
    },
    ...(engine.check !== undefined && { check: engine.check }),
  };
}

/** The scores that there are; what became of each; and where there is none, the most telling of these. */
function combined(
  read: readonly { readonly name: string; readonly scored: TokenScore }[],
): Pick<Verdict, "statuses"> &
  (
    | { readonly status: "graded"; readonly scores: Readonly<Record<string, number>> }
    | { readonly status: Exclude<TokenScore["status"], "graded"> }
  ) {
  const statuses = Object.fromEntries(read.map(({ name, scored }) => [name, scored.status]));
  const scores = read.flatMap(({ name, scored }) =>
    scored.status === "graded" ? [[name, scored.score] as const] : [],
  );
  if (scores.length > 0) return { status: "graded", scores: Object.fromEntries(scores), statuses };
  const telling = (["refusal", "code"] as const).find((one) => Object.values(statuses).includes(one));
  return { status: telling ?? "unparsed", statuses };
}

/** Probabilities by token, as many as a server would tell. */
function likeliest(tokens: readonly TopToken[]): Readonly<Record<string, number>> {
  const sorted = [...tokens].sort((a, b) => b.nats - a.nats).slice(0, topTokens);
  return Object.fromEntries(sorted.map(({ text, nats }) => [text, Math.exp(nats)]));
}

function engineOf(model: EvaluableModel): Engine {
  const { tokenizer, nextToken, logLikelihoods, generate } = model;
  const lacks: string[] = [];
  if (nextToken === undefined || tokenizer === undefined) {
    lacks.push("it tells no next token's log-probability of its own tokenizer");
  } else {
    // What an answer's tokens depend on is the end of the rendered prompt, which all prompts share.
    const tokens = answerTokens(tokenizer, asked("Reply with a number."));
    if ("ids" in tokens) return nextTokenEngine(model as ModelWith<"nextToken">, tokens);
    lacks.push(`0–100 are not single tokens of it (${tokens.fault})`);
  }
  if (logLikelihoods !== undefined) return stringsEngine(model as ModelWith<"logLikelihoods">);
  lacks.push("it scores no strings");
  // A model with a tokenizer that was seen to split numbers would give the split ones here.
  if (generate !== undefined && tokenizer === undefined)
    return topTokensEngine(model as ModelWith<"generate">);
  if (generate === undefined) lacks.push("it generates nothing");
  throw unfit(model, lacks.join("; "), 'Choose method "json", or another judge.');
}

function nextTokenEngine(
  model: ModelWith<"nextToken">,
  { ids, texts }: { readonly ids: readonly number[]; readonly texts: readonly string[] },
): Engine {
  return {
    name: "next_token",
    maxOutputTokens: 1,
    async read(prompt, call) {
      const [next] = await call(prompt, (options) =>
        model.nextToken([{ prompt: asked(prompt), candidates: ids }], options),
      );
      const { nats } = next!;
      return { tokens: texts.map((text, at) => ({ text, nats: nats[at]! })) };
    },
  };
}

const words = ["CODE", "REFUSAL"];

function stringsEngine(model: ModelWith<"logLikelihoods">): Engine {
  const strings = [...numbers, ...words];
  return {
    name: "strings",
    maxOutputTokens: 0,
    async read(prompt, call) {
      const requests = strings.map((continuation) => ({ context: asked(prompt), continuation }));
      const scored = await call(prompt, (options) => model.logLikelihoods(requests, options));
      return { tokens: strings.map((text, at) => ({ text, nats: exactNats(at, scored) })) };
    },
  };
}

/**
 * log p of a string with none of the others behind it: where digits are tokens, p of "8" holds that of "80" to "89".
 * What could follow and lead beyond 100 is left in it.
 */
function exactNats(at: number, scored: readonly LogLikelihood[]): number {
  const own = scored[at]!;
  let probability = Math.exp(own.sumNats);
  if (at >= 1 && at <= 10) {
    for (let longer = 10 * at; longer <= Math.min(100, 10 * at + 9); longer++) {
      if (goesOn(scored[longer]!, own)) probability -= Math.exp(scored[longer]!.sumNats);
    }
  }
  return Math.log(Math.max(0, probability));
}

/** Whether a string's tokens begin with those of a shorter one; batches may round differently. */
function goesOn(longer: LogLikelihood, shorter: LogLikelihood): boolean {
  const count = shorter.tokenNats.length;
  return (
    longer.tokenNats.length > count &&
    shorter.tokenNats.every((nats, at) => Math.abs(nats - longer.tokenNats[at]!) <= 1e-3)
  );
}

/** As many as servers tell at most. */
const topTokens = 20;

function topTokensEngine(model: ModelWith<"generate">): Engine {
  // More than the one token that is read: a number that goes on in the second shows that the judge splits numbers.
  const sampling = { ...greedy, maxNewTokens: 4, topTokens };
  const ask = async (prompt: string, call: JudgeCall) => {
    const completion = await completionOf(model, prompt, sampling, call);
    return { completion, tokens: firstTokens(model, completion) };
  };
  return {
    name: "top_tokens",
    maxOutputTokens: sampling.maxNewTokens,
    async read(prompt, call) {
      const { completion, tokens } = await ask(prompt, call);
      return { tokens, ...(completion.model !== undefined && { model: completion.model }) };
    },
    async check(call) {
      await ask("Reply with the number 100 and nothing else.", call);
    },
  };
}

function firstTokens(model: ModelWith<"generate">, { text, topNats }: Completion): readonly TopToken[] {
  const first = topNats?.[0];
  if (first === undefined) {
    if (topNats === undefined || topNats === null || text !== "")
      throw unfit(
        model,
        "a completion without its likeliest tokens",
        'Choose method "json", or a judge that tells them.',
      );
    return [];
  }
  const start = first[0]?.text.trim() ?? "";
  const isSplit = /^[0-9]+$/.test(start) && new RegExp(`^${start}[0-9]`).test(text.trim());
  if (isSplit)
    throw unfit(
      model,
      `the number "${text.trim()}" in tokens of which "${start}" is the first`,
      'Choose method "json": this judge has no single tokens for 0–100.',
    );
  return first;
}

function unfit({ identity }: Pick<EvaluableModel, "identity">, got: string, fix: string): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "judge",
    where: `judge "${identity.name}", method logprob`,
    got,
    expected: "a judge whose probabilities of the numbers 0–100 can be had",
    fix,
  });
}
