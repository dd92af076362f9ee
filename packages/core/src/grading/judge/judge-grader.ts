import {
  type Grader,
  type GradeRequest,
  type Verdict,
  type VerdictSpending,
  type Json,
  type CallOptions,
  type EvaluableModel,
  type ModelWith,
  PeriodicEvalError,
  hashJson,
  isCacheable,
  type VerdictCache,
} from "@periodic-eval/contracts";
import { errorMessage, printable, judgeError } from "@periodic-eval/contracts/options";
import { forEachConcurrently } from "../../model/concurrently.ts";
import { withMinuteLines } from "../../model/minute-lines.ts";
import {
  openBudget,
  type JudgeBudget,
  judgeCalls,
  late,
  withinTime,
  type JudgeCalls,
  type Tally,
} from "./judge-calls.ts";
import { jsonMethod } from "./json-method.ts";
import { logprobMethod } from "./logprob-method.ts";
import { judgeChat, type JudgeMethod, type JudgeMethodName } from "./judge-method.ts";
import { checkJudgeOptions, type JudgeOptions } from "./options.ts";
import { checkPrompt, defaultScores, fillPrompt, resolvePrompts } from "./prompts.ts";

/** A judge, with its spending since it was created. */
export type JudgeGrader = Grader & { readonly spent: VerdictSpending };

/** Version of each method. It changes when the same reply would give another verdict. */
const policyVersions = { json: 2, logprob: 2 };

/** The parts of a judge that grade answers. */
interface Judge {
  /** Names the judge in errors. */
  readonly where: string;
  readonly method: JudgeMethod;
  readonly prompts: Readonly<Record<string, string>>;
  readonly calls: JudgeCalls;
  readonly cache: VerdictCache | undefined;
  /** The spending of no call. */
  readonly zero: VerdictSpending;
  readonly total: Tally;
  readonly timeoutSeconds: number;
}

/**
 * Returns a language model that grades answers at temperature 0. A failure concerns only the answer's own verdict: `error` with
 * the reason in `raw`; `unparsed`, `cut`, `refusal` or `code` with the reply in `raw`. Every verdict but an error is cached at once, so
 * that an aborted `grade` resumes where it stopped.
 *
 * @throws PeriodicEvalError `config` for a wrong option; `judge` if the model lacks an ability of the method.
 */
export async function judgeGrader(options: JudgeOptions): Promise<JudgeGrader> {
  checkJudgeOptions(options);
  const { model, method: methodName = "json", scores = defaultScores } = options;
  const { name = model.identity.name, concurrency = 8, timeoutSeconds = 360, cache, price = null } = options;
  const where = `judge "${name}"`;
  const method = await methodOf(options, methodName, scores);
  const prompts = resolvePrompts(method.prompts, methodName, scores, options.prompts);
  const { identity } = model;
  const description = {
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
  const fingerprint = `judge:${hashJson(description)}`;
  const zero: VerdictSpending = {
    calls: 0,
    cached: 0,
    inputTokens: 0,
    outputTokens: 0,
    cost: price && 0,
  };
  const total = { ...zero };
  const calls = judgeCalls(where, timeoutSeconds, price, method.maxOutputTokens, total);
  const judge: Judge = { where, method, prompts, calls, cache, zero, total, timeoutSeconds };
  return {
    name,
    fingerprint,
    promptNames: method.prompts,
    spent: total,
    describe: () => ({ judge: name, engine: identity.engine, ...description }),
    check: (outer, requests = [trial]) => checkJudge(judge, model, requests, outer),
    checkLength: async (requests) => void (await fittingOf(judge, model, requests)),
    async grade(requests, outer) {
      outer.signal.throwIfAborted();
      const { maxCalls = null, maxCost = null } = options;
      const budget = openBudget({ maxCalls, maxCost });
      return gradeAll(judge, requests, budget, outer, { fingerprint, concurrency });
    },
  };
}

async function gradeAll(
  judge: Judge,
  requests: readonly GradeRequest[],
  budget: JudgeBudget,
  outer: CallOptions,
  { fingerprint, concurrency }: { readonly fingerprint: string; readonly concurrency: number },
): Promise<readonly Verdict[]> {
  const texts = requests.map((request) => promptsFor(judge, request));
  const keys = requests.map(({ question, answer, fresh = false }, at) =>
    judge.cache === undefined || fresh
      ? null
      : hashJson({ grader: fingerprint, prompts: texts[at]!, question, answer }),
  );
  // With a cache, equal answers are judged once.
  const places = new Map<string | number, number[]>();
  keys.forEach((key, at) => places.set(key ?? at, [...(places.get(key ?? at) ?? []), at]));
  const verdicts: Verdict[] = [];
  let judged = 0;
  const gradeOne = async (equal: readonly number[]) => {
    outer.signal.throwIfAborted();
    const first = equal[0]!;
    const verdict = await cachedVerdict(judge, keys[first]!, () =>
      judgeAnswer(judge, texts[first]!, budget, outer),
    );
    const spentByOthers = verdict.status === "error" ? judge.zero : { ...judge.zero, cached: 1 };
    for (const at of equal) verdicts[at] = at === first ? verdict : { ...verdict, spent: spentByOthers };
    if (verdict.status !== "error") judge.total.cached += equal.length - 1;
    judged += equal.length;
  };
  await withMinuteLines(
    warn,
    (seconds) =>
      `grading waits for ${judge.where}: no reply for ${seconds} s, ${judged} of ${requests.length} answers are done; ${endText(judge)}`,
    (replied) =>
      forEachConcurrently([...places.values()], concurrency, (equal) => gradeOne(equal).then(replied)),
  );
  return verdicts;
}

const warn = (line: string) => console.warn(printable(`[periodic-eval] ${line}`));

const endText = ({ timeoutSeconds }: Judge): string =>
  `each call ends after ${timeoutSeconds} s (timeoutSeconds)`;

function promptsFor(
  { where, method, prompts }: Judge,
  { question, answer, prompts: overrides = {} }: GradeRequest,
): readonly string[] {
  return method.prompts.map((name) => {
    const prompt = Object.hasOwn(overrides, name) ? overrides[name] : prompts[name]!;
    checkPrompt(`${where}: GradeRequest.prompts.${name}`, prompt);
    return fillPrompt(prompt, question, answer);
  });
}

async function judgeAnswer(
  { method, calls, zero }: Judge,
  prompts: readonly string[],
  budget: JudgeBudget,
  outer: CallOptions,
): Promise<Verdict> {
  const most = prompts.reduce((sum, prompt) => sum + calls.mostCost(prompt), 0);
  const grant = await budget.take(prompts.length, most);
  if (typeof grant === "string")
    return { status: "error", raw: `not asked: ${grant} is reached`, spent: zero };
  const tally = { ...zero };
  try {
    const call = calls.runner(outer, tally, grant.again);
    return { ...(await method.verdict(prompts, call)), spent: tally };
  } catch (error) {
    outer.signal.throwIfAborted();
    return { status: "error", raw: errorMessage(error), spent: tally };
  } finally {
    grant.settle(tally);
  }
}

/** Returns the verdict from the cache, or makes and caches it. A failure of the cache costs a call, not a verdict. */
async function cachedVerdict(
  { cache, zero, total }: Judge,
  key: string | null,
  make: () => Promise<Verdict>,
): Promise<Verdict> {
  if (cache === undefined || key === null) return make();
  const attempt = <T>(work: () => T | Promise<T>) =>
    Promise.resolve()
      .then(work)
      .catch(() => null);
  const cached: unknown = await attempt(() => cache.get(key));
  if (isCacheable(cached)) {
    total.cached += 1;
    return { ...cached, spent: { ...zero, cached: 1 } };
  }
  const verdict = await make();
  const { spent: _, ...lasting } = verdict;
  if (isCacheable(lasting)) await attempt(() => cache.set(key, lasting));
  return verdict;
}

/** Any judge can grade this answer; the verdict does not matter. */
const trial: GradeRequest = { question: "What is two plus two?", answer: "Two plus two is four." };

async function checkJudge(
  judge: Judge,
  model: EvaluableModel,
  requests: readonly GradeRequest[],
  outer: CallOptions,
): Promise<void> {
  const { where, method, calls, zero, timeoutSeconds } = judge;
  const call = calls.runner(outer, { ...zero }, () => null);
  const tryCalls = async (replied: () => void) => {
    await withinTime(outer.signal, timeoutSeconds, late(where, timeoutSeconds), async (signal) =>
      model.check?.({ signal }),
    );
    replied();
    await method.check?.(call);
    replied();
    await method.verdict(await fittingOf(judge, model, requests), call);
  };
  try {
    await withMinuteLines(
      warn,
      (seconds) =>
        `the check before grading waits for ${where}: no reply for ${seconds} s; ${endText(judge)}`,
      tryCalls,
    );
  } catch (error) {
    outer.signal.throwIfAborted();
    throw PeriodicEvalError.is(error, "judge") ? error : unreachable(where, error);
  }
}

/**
 * Returns the filled prompts of the longest request.
 *
 * @throws PeriodicEvalError `judge` if they do not fit the model's context.
 */
async function fittingOf(
  judge: Judge,
  { tokenizer, contextLength }: EvaluableModel,
  requests: readonly GradeRequest[],
): Promise<readonly string[]> {
  const { request, texts, text } = longestOf(judge, requests);
  const [rendered] = (await tokenizer?.render([judgeChat(text)])) ?? [];
  const tokens = rendered?.ids.length ?? 0;
  if (tokens > (contextLength ?? Infinity)) throw tooLong(judge.where, request, tokens, contextLength!);
  return texts;
}

/** Returns the request with the longest prompt (in characters), with its filled prompts. */
function longestOf(judge: Judge, requests: readonly GradeRequest[]) {
  const filled = (requests.length === 0 ? [trial] : requests).map((request) => {
    const texts = promptsFor(judge, request);
    return { request, texts, text: texts.reduce((a, b) => (b.length > a.length ? b : a)) };
  });
  return filled.reduce((a, b) => (b.text.length > a.text.length ? b : a));
}

const tooLong = (judge: string, { place, prompts }: GradeRequest, tokens: number, most: number) => {
  const where = place === undefined ? judge : `${place}, ${judge}`;
  const fix =
    prompts === undefined
      ? "Choose a judge with a longer context, or shorter `prompts`; a file of questions names them in `judge_prompts`."
      : "Shorten the question's `judge_prompts`, or choose a judge with a longer context.";
  const expected = `at most ${most} tokens, the judge's context length`;
  return judgeError(where, `a prompt of ${tokens} tokens`, expected, fix);
};

function methodOf(
  { model, maxReplyTokens = 512 }: JudgeOptions,
  method: JudgeMethodName,
  scores: readonly string[],
): JudgeMethod | Promise<JudgeMethod> {
  if (method === "logprob") return logprobMethod(model, scores);
  if (model.generate !== undefined)
    return jsonMethod(model as EvaluableModel & ModelWith<"generate">, scores, maxReplyTokens);
  const where = `judge "${model.identity.name}", method json`;
  const fix = 'Choose method "logprob", or another judge.';
  throw judgeError(where, "a model that does not generate", "a model with the ability generate", fix);
}

/** Returns an error of the judge for an error of its client. */
function unreachable(judge: string, error: unknown): PeriodicEvalError {
  const inner = PeriodicEvalError.is(error) ? error : null;
  const where = inner === null || inner.where === judge ? judge : `${judge}, ${inner.where}`;
  const fix = inner?.fix ?? "Check that the judge is served and reachable; nothing was trained yet.";
  return judgeError(where, inner?.got ?? errorMessage(error), "a reply to a trial question", fix, error);
}
