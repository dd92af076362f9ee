import { grouped } from "@periodic-eval/contracts";
import {
  configError,
  didYouMean,
  errorMessage,
  parseOptions,
  quoteValue,
  printable,
} from "@periodic-eval/contracts/options";
import type { CallOptions, Grader, Verdict } from "@periodic-eval/core";
import { loadVerifierModule } from "@periodic-eval/data/config";
import { customVerifier, findVerifier, graderSchema, readVerdicts } from "@periodic-eval/core/grading";
import { hashJson } from "@periodic-eval/core/random";
import { abortable, startTimeout } from "@periodic-eval/store";
import type { Preference } from "../preferences/preference.ts";
import { shippedGrader, shippedVerifiers } from "./shipped.ts";

/**
 * Opens the grader of a preference and grades the answers of the preference's pairs. A verifier that throws, or returns
 * something other than a reward from 0 to 1, therefore fails before training.
 *
 * @param onWarning Receives the errors of a custom verifier. Default: `process.emitWarning`.
 * @throws PeriodicEvalError `config` for a verifier that is missing, does not load, gets wrong arguments or fails on an answer.
 */
export async function openVerifier(
  { name, verifier, folder, logprob_pairs: pairs }: Preference,
  options: CallOptions = { signal: new AbortController().signal },
  onWarning: OnWarning = emitWarning,
): Promise<Grader> {
  const where = `preference ${name}, verifier`;
  const grader =
    "module" in verifier
      ? customGrader(await moduleGrader(name, verifier, folder), { where, onWarning })
      : namedGrader(verifier, where);
  await grader.check?.(options);
  const requests = pairs.flatMap(({ prompt, chosen, rejected }) =>
    [chosen, rejected].map((answer) => ({ question: prompt, answer })),
  );
  // The first answer is graded alone: a verifier that hangs costs one timeout, not one per answer.
  const [first, ...rest] = requests;
  const alone = await grader.grade([first!], options);
  const isGraded = alone.every((verdict) => faultOf(verdict) === null);
  const verdicts = isGraded ? [...alone, ...(await grader.grade(rest, options))] : alone;
  verdicts.forEach((verdict, at) => {
    const fault = faultOf(verdict);
    if (fault === null) return;
    throw configError({
      where,
      got: `${fault} for the answer ${JSON.stringify(requests[at]!.answer.slice(0, 60))}`,
      expected: "a reward from 0 to 1 for every answer of the preference's pairs",
      fix: "Correct the verifier: answers without a reward are not counted.",
    });
  });
  return grader;
}

/** Returns the reward of a verdict; null for a verdict without one. */
export const rewardOf = (verdict: Verdict): number | null =>
  verdict.status === "graded" ? (verdict.scores["reward"] ?? null) : null;

function faultOf(verdict: Verdict): string | null {
  return verdict.status === "graded" ? null : `"${verdict.raw ?? verdict.status}"`;
}

function namedGrader(
  { name, args }: Extract<Preference["verifier"], { readonly name: string }>,
  where: string,
): Grader {
  if (Object.hasOwn(shippedVerifiers, name)) return shippedGrader(name, args, where);
  const names = Object.keys(shippedVerifiers);
  throw configError({
    where,
    value: name,
    expected: `one of ${names.join(", ")}, or { module, export }`,
    fix: didYouMean(name, names) ?? "Name one of them, or a custom function.",
  });
}

async function moduleGrader(
  preference: string,
  { module: path, export: exported, args }: Extract<Preference["verifier"], { readonly module: string }>,
  folder: string,
): Promise<Grader> {
  const loaded = await loadVerifierModule(folder, path);
  const verifier = findVerifier(loaded, exported);
  if ("grade" in verifier) return verifier;
  const task = { id: preference, answer: null, metadata: {}, args };
  return customVerifier(`${path}#${exported}`, hashJson([loaded.hash, args]), verifier, task);
}

const defaultTimeoutSeconds = 600;
/** Maximum number of reasons for missing scores that a grader's warnings name. */
const maxReasons = 10;

interface CustomGraderOptions {
  /** Names the grader in warnings: `preference concise, verifier`. */
  readonly where: string;
  readonly onWarning: OnWarning;
  /** Seconds that one call may take. Default: 600. */
  readonly timeoutSeconds?: number;
}

/**
 * Wraps a custom grader so that it cannot stop the training. If it throws, exceeds the timeout or does not return one verdict per
 * request, all verdicts are `error` with the reason.
 *
 * @throws PeriodicEvalError `config` for a grader without name, fingerprint or `grade`. `check` rethrows the errors of the grader's check.
 */
export function customGrader(grader: Grader, options: CustomGraderOptions): Grader {
  const { where, onWarning, timeoutSeconds = defaultTimeoutSeconds } = options;
  const { name, fingerprint } = parseOptions(where, graderSchema, grader);
  let isUnsettled = false;
  /** Reasons of missing scores that were reported: the same one may come back at every step, and one may quote the answer. */
  const reported = new Set<string>();

  function warnOfReasons(verdicts: readonly Verdict[]): void {
    const failed = verdicts.filter(({ status }) => status === "error");
    for (const [reason, { length }] of grouped(failed, ({ raw }) => raw ?? "no reason")) {
      if (reported.has(reason) || reported.size === maxReasons) continue;
      reported.add(reason);
      const last = reported.size === maxReasons ? "; further reasons are not reported" : "";
      onWarning(
        `${where}: ${length} of ${verdicts.length} answers are not graded: ${reason} (reported once${last})`,
      );
    }
  }

  /** Calls the grader. After a timeout, further calls fail until the abandoned one settles. */
  async function call<T>(
    what: string,
    signal: AbortSignal,
    work: (options: CallOptions) => T | PromiseLike<T>,
  ): Promise<T> {
    if (isUnsettled) throw new Error(`an earlier call of ${what} has not settled`);
    signal.throwIfAborted();
    const timeout = new AbortController();
    const eitherSignal = AbortSignal.any([signal, timeout.signal]);
    const stopTimeout = startTimeout(timeoutSeconds, () =>
      timeout.abort(new Error(`${what} has not settled within ${timeoutSeconds} s`)),
    );
    isUnsettled = true;
    const answer = (async () => work({ signal: eitherSignal }))().finally(() => (isUnsettled = false));
    return abortable(eitherSignal, answer).finally(stopTimeout);
  }

  return {
    name,
    fingerprint,
    check: async ({ signal }) => {
      await call("check", signal, (callOptions) => grader.check?.(callOptions));
    },
    async grade(requests, { signal }) {
      try {
        const returned = await call("grade", signal, (callOptions) => grader.grade(requests, callOptions));
        const verdicts = readVerdicts({ name }, returned, requests.length).map(withReward);
        warnOfReasons(verdicts);
        return verdicts;
      } catch (error) {
        signal.throwIfAborted();
        const raw = errorMessage(error);
        onWarning(`${where}: ${requests.length} answers are not graded: ${raw}`);
        return requests.map(() => ({ status: "error", raw }));
      }
    },
    dispose: async () => grader.dispose?.(),
  };
}

/** Replaces a graded verdict without a valid reward by an error. */
function withReward(verdict: Verdict): Verdict {
  if (verdict.status !== "graded") return verdict;
  const { reward } = verdict.scores;
  if (reward !== undefined && reward >= 0 && reward <= 1) return verdict;
  return {
    status: "error",
    raw: `the grader returned a reward of ${quoteValue(reward)}, not from 0 to 1`,
  };
}

/** Receives warnings: a user's function, or `process.emitWarning`. */
export type OnWarning = (message: string) => void;

const emitWarning: OnWarning = (message) => process.emitWarning(printable(message), "PeriodicEvalWarning");

/** Returns a function that never throws: if `onWarning` does, it emits the warning and the error as warnings of the process. */
export function safeWarning(onWarning: OnWarning = emitWarning): OnWarning {
  return (message) =>
    callUser(
      () => onWarning(message),
      (reason) => {
        emitWarning(message);
        emitWarning(`onWarning threw: ${reason}`);
      },
    );
}

/** Calls a function of the user that nothing waits for. If it throws or rejects, `failed` receives the reason. */
export function callUser(work: () => unknown, failed: (reason: string) => void): void {
  const report = (error: unknown) => failed(errorMessage(error));
  try {
    Promise.resolve(work()).catch(report);
  } catch (error) {
    report(error);
  }
}
