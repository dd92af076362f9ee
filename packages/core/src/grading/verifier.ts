import { dataError, quoteValue, errorMessage, nearest } from "@periodic-eval/contracts/options";
import type { Awaitable, Json, CallOptions, Grader, GradeRequest, Verdict } from "@periodic-eval/contracts";
import type { VerifierModule } from "@periodic-eval/data/config";
import { withinTime } from "./judge/judge-calls.ts";

/** Timeout of a custom verifier, which may call a server. */
const verifierSeconds = 60;

/** The task of a completion, as a custom verifier receives it. */
export interface VerifierTask {
  readonly id: string;
  /** The user's last message in the prompt. */
  readonly question: string;
  readonly answer: Json;
  readonly metadata: { readonly [key: string]: Json };
  readonly args: VerifierArgs;
}

/** Arguments of a verifier, by name. */
export type VerifierArgs = { readonly [name: string]: Json };

/** Whether the completion passed (a reward of 1 or 0); or a reward, which passes from 1; or both, with a note for the row. */
export type VerifierResult =
  | boolean
  | number
  | { readonly reward: number; readonly passed?: boolean; readonly raw?: string };

/**
 * A custom verifier, exported by a module. If it throws or returns anything but a `VerifierResult`, grading that completion fails
 * with the reason.
 */
export type Verifier = (completion: string, task: VerifierTask) => Awaitable<VerifierResult>;

/**
 * Returns the function or the grader that a module exports under a name.
 *
 * @throws PeriodicEvalError `data` if the module exports neither.
 */
export function findVerifier({ exports }: VerifierModule, name: string): Verifier | Grader {
  const exported = exports[name];
  if (typeof exported === "function") return exported as Verifier;
  if (typeof (exported as Partial<Grader> | undefined)?.grade === "function") return exported as Grader;
  const names = Object.keys(exports);
  const close = nearest(name, names);
  const got =
    exported === undefined ? `"${name}", which the module does not export` : `"${name}", ${typeof exported}`;
  const expected = `a function or a grader (it exports ${names.join(", ") || "nothing"})`;
  const fix = close === null || close === name ? "Export the verifier." : `Did you mean "${close}"?`;
  throw dataError("verifier.export", got, expected, fix);
}

/** Converts the return value of a custom verifier to a verdict. */
function toVerdict(result: unknown): Verdict {
  if (typeof result === "boolean" || typeof result === "number") return toVerdict({ reward: Number(result) });
  const { reward, passed, raw = null } = (result ?? {}) as Readonly<Record<string, unknown>>;
  const isValid =
    Number.isFinite(reward) &&
    (passed === undefined || typeof passed === "boolean") &&
    (raw === null || typeof raw === "string");
  if (!isValid)
    return {
      status: "error",
      raw: `the verifier gave ${quoteValue(result)}, neither true, false, a number nor { reward, passed, raw }`,
    };
  const scores = { reward: reward as number, ...(passed !== undefined && { passed: Number(passed) }) };
  return { status: "graded", scores, raw };
}

/** Answers graded concurrently. Node warns about a leak from the eleventh listener on one signal. */
const concurrency = 8;

/** Returns a grader that runs a verifier on each answer. If the verifier throws, the verdict of that answer is `error`. */
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
      for (let from = 0; from < requests.length; from += concurrency)
        verdicts.push(...(await Promise.all(requests.slice(from, from + concurrency).map(gradeOne))));
      return verdicts;
    },
  };
}

/** Returns a grader that runs a custom verifier on each answer, with a timeout of 60 seconds. */
export const customVerifier = (
  name: string,
  version: string,
  verifier: Verifier,
  { id, ...task }: Omit<VerifierTask, "question">,
): Grader =>
  verifierGrader(name, version, async ({ question, answer }, { signal }) => {
    const late = () => new Error(`no verdict within ${verifierSeconds} s`);
    const work = async () => verifier(answer, { id, question, ...task });
    return toVerdict(await withinTime(signal, verifierSeconds, late, work));
  });
