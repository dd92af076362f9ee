import { quoteValue } from "../internal/quote-value.ts";
import { PeriodicEvalError } from "../errors.ts";
import type { Awaitable, Json } from "../contracts/json.ts";
import { errorMessage } from "../internal/error-message.ts";
import type { CallOptions } from "../contracts/model.ts";
import { nearest } from "../internal/nearest.ts";
import type { Grader, GradeRequest, Verdict } from "../contracts/grading.ts";

/** Longest wait for a function of the user's, which may ask a server. */
const verifierSeconds = 60;

/** What a verifier of one's own is told of the task. */
export interface VerifierTask {
  readonly id: string;
  /** The user's last message, as the model was asked. */
  readonly question: string;
  readonly answer: Json;
  readonly metadata: { readonly [key: string]: Json };
  readonly args: VerifierArgs;
}

/** Arguments of a verifier, by name. */
export type VerifierArgs = { readonly [name: string]: Json };

/** Passed or not, as a reward of 1 or 0; or a reward, which passes from 1 on; or both, with what is kept beside them. */
export type VerifierResult =
  | boolean
  | number
  | { readonly reward: number; readonly passed?: boolean; readonly raw?: string };

/**
 * A verifier of one's own: an export of a module. What it throws, and what it gives that is
 * none of these, is a failed grade of that completion, with the reason.
 */
export type Verifier = (completion: string, task: VerifierTask) => Awaitable<VerifierResult>;

export interface VerifierModule {
  /** Of its text; what it imports is not in it. */
  readonly hash: string;
  readonly exports: Readonly<Record<string, unknown>>;
}

/**
 * The function or the grader that a module exports.
 *
 * @throws PeriodicEvalError `data` where there is none of that name.
 */
export function findVerifier({ exports }: VerifierModule, name: string): Verifier | Grader {
  const given = exports[name];
  if (typeof given === "function") return given as Verifier;
  if (typeof (given as Partial<Grader> | undefined)?.grade === "function") return given as Grader;
  const names = Object.keys(exports);
  const close = nearest(name, names);
  throw new PeriodicEvalError({
    code: "data",
    where: "verifier.export",
    got: given === undefined ? `"${name}", which the module does not export` : `"${name}", ${typeof given}`,
    expected: `a function or a grader (it exports ${names.join(", ") || "nothing"})`,
    fix: close === null || close === name ? "Export the verifier." : `Did you mean "${close}"?`,
  });
}

/** What a function said, as a grader's verdict. */
export function toVerdict(said: unknown): Verdict {
  if (typeof said === "boolean" || typeof said === "number") return toVerdict({ reward: Number(said) });
  const { reward, passed, raw = null } = (said ?? {}) as Readonly<Record<string, unknown>>;
  const isRight =
    Number.isFinite(reward) &&
    (passed === undefined || typeof passed === "boolean") &&
    (raw === null || typeof raw === "string");
  if (!isRight)
    return {
      status: "error",
      raw: `the verifier gave ${quoteValue(said)}, neither true, false, a number nor { reward, passed, raw }`,
    };
  const scores = { reward: reward as number, ...(passed !== undefined && { passed: Number(passed) }) };
  return { status: "graded", scores, raw };
}

/** Answers graded side by side: as many listeners on one signal are no leak yet. */
const atOnce = 8;

/** A verifier that throws fails to grade that completion; the others are graded. */
export function verifierGrader(
  name: string,
  version: string,
  verify: (request: GradeRequest, options: CallOptions) => Promise<Verdict>,
): Grader {
  return {
    name,
    fingerprint: `verifier:${name}@${version}`,
    async grade(requests, options) {
      const { signal } = options;
      const gradeOne = async (request: GradeRequest): Promise<Verdict> => {
        signal.throwIfAborted();
        try {
          return await verify(request, options);
        } catch (error) {
          signal.throwIfAborted();
          return { status: "error", raw: errorMessage(error) };
        }
      };
      const verdicts: Verdict[] = [];
      for (let from = 0; from < requests.length; from += atOnce)
        verdicts.push(...(await Promise.all(requests.slice(from, from + atOnce).map(gradeOne))));
      return verdicts;
    },
  };
}

/** @throws the signal's reason, and an Error where there is no verdict within 60 seconds. */
export async function withVerifierTimeout<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  let stop: (reason: unknown) => void;
  const stopped = new Promise<never>((_, reject) => (stop = reject));
  const onAbort = () => stop(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  const late = () => stop(new Error(`no verdict within ${verifierSeconds} s`));
  const timer = setTimeout(late, 1000 * verifierSeconds);
  try {
    return await Promise.race([work(), stopped]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}
