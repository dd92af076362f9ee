import { PeriodicEvalError } from "../../errors.ts";
import type { Json } from "../../contracts/json.ts";
import { errorMessage } from "../../internal/error-message.ts";
import type { CallOptions, EvaluableModel, RequestEnded, Usage, ModelWith } from "../../contracts/model.ts";
import { hashJson } from "../../random/hash.ts";
import { costOf, openBudget, type Grant, type JudgeBudget, type JudgeSpending } from "./budget.ts";
import { jsonMethod } from "./json.ts";
import { logprobMethod } from "./logprob.ts";
import type { JudgeCall, JudgeMethod } from "./method.ts";
import { checkJudgeOptions, checkPrompt, promptsOf, type JudgeOptions } from "./options.ts";
import { filled, usualScores } from "./prompts.ts";
import type { Grader, GradeRequest, Verdict, VerdictSpending } from "../../contracts/grading.ts";
import { isCacheable } from "./verdict-cache.ts";
import { abortRelay, withinTime, type AbortRelay } from "../within-time.ts";

/** A judge, and what it was asked and cost since it was made. */
export type JudgeGrader = Grader & { readonly spent: JudgeSpending };

type Tally = { -readonly [Key in keyof VerdictSpending]: VerdictSpending[Key] };

/** By method; changes when the same reply would give another verdict. */
const policyVersions = { json: 1, logprob: 2 };

/**
 * A language model that grades answers at temperature 0. What fails of one answer is that answer's verdict: `error`, with
 * the reason in `raw`; `unparsed`, `refusal` or `code`, with what was said in `raw`. Verdicts but errors are cached as they
 * come, so that a `grade` that was aborted goes on where it stopped.
 *
 * @throws PeriodicEvalError `config` for wrong options; `judge` where the model cannot do what the method needs.
 */
export function judgeGrader(options: JudgeOptions): JudgeGrader {
  checkJudgeOptions(options);
  const { model, method: methodName = "json", scores = usualScores } = options;
  const { name = model.identity.name, concurrency = 8, timeoutSeconds = 360, cache, price = null } = options;
  const where = `judge "${name}"`;
  const method = methodOf(options, methodName, scores);
  const prompts = promptsOf(method.prompts, methodName, scores, options.prompts);
  const { identity } = model;
  const described = {
    model: identity.name,
    weights: identity.weights,
    adapter: identity.adapter,
    details: identity.details ?? null,
    method: methodName,
    scores,
    prompts,
    sampling: method.sampling,
    policy_version: policyVersions[methodName],
  } satisfies Json;
  const fingerprint = `judge:${hashJson(described)}`;
  const nothing: VerdictSpending = {
    calls: 0,
    cached: 0,
    inputTokens: 0,
    outputTokens: 0,
    cost: price && 0,
  };
  const spent = { ...nothing, cacheFailures: 0 };
  const ofCache = { ...nothing, cached: 1 };

  const promptsFor = ({ question, answer, prompts: own = {} }: GradeRequest): readonly string[] =>
    method.prompts.map((score) => {
      const prompt = Object.hasOwn(own, score) ? own[score] : prompts[score]!;
      checkPrompt(`${where}: GradeRequest.prompts.${score}`, prompt);
      return filled(prompt, question, answer);
    });

  /** The most that a call can cost: no token is less than a byte, and a chat template adds a few. */
  const mostCost = (prompt: string): number => {
    if (price === null) return 0;
    const inputTokens = new TextEncoder().encode(prompt).length + 64;
    return costOf({ inputTokens, outputTokens: method.maxOutputTokens }, price);
  };

  /** Runs calls, and tallies their requests; one of unknown usage counts as the most that it can have cost. */
  const calling = (outer: CallOptions, relay: AbortRelay, tally: Tally, again: Grant["again"]): JudgeCall => {
    return async (prompt, work, usageOf) => {
      const requests: { cost: number }[] = [];
      const begin = () => {
        const request = { cost: mostCost(prompt) };
        requests.push(request);
        return request;
      };
      const beforeRequest = (signal: AbortSignal): RequestEnded => {
        signal.throwIfAborted();
        const failed = requests.at(-1);
        const reached = failed === undefined ? null : again(failed.cost);
        if (reached !== null) throw new Error(`not asked again: ${reached} is reached`);
        const request = begin();
        return (mayBeBilled) => {
          if (!mayBeBilled) request.cost = 0;
        };
      };
      let usage: Usage | undefined;
      try {
        const result = await withinTime(where, timeoutSeconds, relay, (signal) =>
          work({ ...outer, signal, beforeRequest: () => beforeRequest(signal) }),
        );
        usage = usageOf?.(result);
        return result;
      } finally {
        // A model that is no server's tells of no request.
        const last = requests.at(-1) ?? begin();
        if (usage !== undefined && price !== null) last.cost = costOf(usage, price);
        const { inputTokens = 0, outputTokens = 0 } = usage ?? {};
        for (const sum of [tally, spent]) {
          sum.calls += requests.length;
          sum.inputTokens += inputTokens;
          sum.outputTokens += outputTokens;
          if (sum.cost !== null) sum.cost += requests.reduce((all, { cost }) => all + cost, 0);
        }
      }
    };
  };

  async function ask(
    texts: readonly string[],
    budget: JudgeBudget,
    outer: CallOptions,
    relay: AbortRelay,
  ): Promise<Verdict> {
    const most = texts.reduce((sum, text) => sum + mostCost(text), 0);
    const grant = await budget.take(texts.length, most);
    if (typeof grant === "string")
      return { status: "error", raw: `not asked: ${grant} is reached`, spent: nothing };
    const tally = { ...nothing };
    try {
      return { ...(await method.verdict(texts, calling(outer, relay, tally, grant.again))), spent: tally };
    } catch (error) {
      outer.signal.throwIfAborted();
      return { status: "error", raw: errorMessage(error), spent: tally };
    } finally {
      grant.settle(tally);
    }
  }

  /** From the cache, or of the judge and then into it. A cache that fails costs a call, not a verdict. */
  async function verdictOf(key: string | null, make: () => Promise<Verdict>): Promise<Verdict> {
    if (cache === undefined || key === null) return make();
    const kept = await cache.get(key).catch(() => void (spent.cacheFailures += 1));
    if (isCacheable(kept)) {
      spent.cached += 1;
      return { ...kept, spent: ofCache };
    }
    const verdict = await make();
    const { spent: _, ...lasting } = verdict;
    if (isCacheable(lasting)) await cache.set(key, lasting).catch(() => void (spent.cacheFailures += 1));
    return verdict;
  }

  return {
    name,
    fingerprint,
    promptNames: method.prompts,
    spent,
    describe: () => ({ judge: name, engine: identity.engine, ...described }),

    async check(outer) {
      const relay = abortRelay(outer.signal);
      const call = calling(outer, relay, { ...nothing }, () => null);
      try {
        await withinTime(where, timeoutSeconds, relay, async (signal) => model.check?.({ signal }));
        await method.check?.(call);
        await method.verdict(promptsFor(probe), call);
      } catch (error) {
        outer.signal.throwIfAborted();
        throw PeriodicEvalError.is(error, "judge") ? error : unreachable(where, error);
      } finally {
        relay.close();
      }
    },

    async grade(requests, outer) {
      outer.signal.throwIfAborted();
      const { maxCalls = null, maxCost = null } = options;
      const budget = openBudget({ maxCalls, maxCost });
      const texts = requests.map(promptsFor);
      const keys = requests.map(({ question, answer, fresh = false }, at) =>
        cache === undefined || fresh
          ? null
          : hashJson({ grader: fingerprint, prompts: texts[at]!, question, answer }),
      );
      // Equal answers are asked once where a cache would have known the second.
      const places = new Map<string | number, number[]>();
      keys.forEach((key, at) => places.set(key ?? at, [...(places.get(key ?? at) ?? []), at]));
      const verdicts: Verdict[] = [];
      const relay = abortRelay(outer.signal);
      await eachOf([...places.values()], concurrency, async (same) => {
        outer.signal.throwIfAborted();
        const first = same[0]!;
        const verdict = await verdictOf(keys[first]!, () => ask(texts[first]!, budget, outer, relay));
        const ofOthers = { ...verdict, spent: verdict.status === "error" ? nothing : ofCache };
        for (const at of same) verdicts[at] = at === first ? verdict : ofOthers;
        if (verdict.status !== "error") spent.cached += same.length - 1;
      }).finally(relay.close);
      return verdicts;
    },
  };
}

/** Any judge can say something about it; what it says does not matter. */
const probe: GradeRequest = { question: "What is two plus two?", answer: "Two plus two is four." };

function methodOf(
  { model, maxReplyTokens = 512 }: JudgeOptions,
  method: "json" | "logprob",
  scores: readonly string[],
): JudgeMethod {
  if (method === "logprob") return logprobMethod(model, scores);
  if (model.generate !== undefined)
    return jsonMethod(model as EvaluableModel & ModelWith<"generate">, scores, maxReplyTokens);
  throw new PeriodicEvalError({
    code: "judge",
    where: `judge "${model.identity.name}", method json`,
    got: "a model that generates nothing",
    expected: "one that generates",
    fix: 'Choose method "logprob", or another judge.',
  });
}

/** What the judge's client said, as an error of the judge. */
function unreachable(where: string, error: unknown): PeriodicEvalError {
  const ours = PeriodicEvalError.is(error) ? error : null;
  return new PeriodicEvalError({
    code: "judge",
    where: ours === null || ours.where === where ? where : `${where}, ${ours.where}`,
    got: ours?.got ?? errorMessage(error),
    expected: "a reply to a question asked on trial",
    fix: ours?.fix ?? "See that the judge is served and can be reached; nothing was trained yet.",
    cause: error,
  });
}

/** Works through a list, so many at a time; the first failure ends it when those under way are done. */
async function eachOf<T>(
  list: readonly T[],
  atOnce: number,
  work: (entry: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  let failure: { readonly error: unknown } | null = null;
  const worker = async () => {
    while (next < list.length && failure === null) {
      try {
        await work(list[next++]!);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, list.length) }, worker));
  if (failure !== null) throw (failure as { readonly error: unknown }).error;
}
