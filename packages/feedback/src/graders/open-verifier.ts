import {
  PeriodicEvalError,
  verifierGrader,
  type CallOptions,
  type Grader,
  type Verdict,
} from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { findVerifier, toVerdict, withVerifierTimeout } from "@periodic-eval/core/grading";
import { nearest } from "@periodic-eval/core/internal";
import { loadVerifierModule } from "@periodic-eval/core/config";
import type { Preference } from "../preferences/preference.ts";
import { shippedGrader, shippedVerifiers } from "./shipped.ts";

/**
 * The grader of a preference, tried on the answers of its pairs: one that throws, or gives what is no reward from 0 to 1,
 * is told of before anything is trained.
 *
 * @throws PeriodicEvalError `config` for a verifier that is not there or does not load, for wrong arguments, and for one
 *   that fails on an answer of the preference's own.
 */
export async function openVerifier(
  { name, verifier, folder, logprob_pairs: pairs }: Preference,
  options: CallOptions = { signal: new AbortController().signal },
): Promise<Grader> {
  const where = `preference ${name}, verifier`;
  const grader =
    "module" in verifier ? await moduleGrader(name, verifier, folder) : namedGrader(verifier, where);
  await grader.check?.(options);
  const requests = pairs.flatMap(({ prompt, chosen, rejected }) =>
    [chosen, rejected].map((answer) => ({ question: prompt, answer })),
  );
  // The first alone before the others: one that never answers is told of once its time is over, not after that of all.
  const [first, ...others] = requests;
  const verdict = await grader.grade([first!], options);
  const isFit = verdict.every((one) => faultOf(one) === null);
  const verdicts = isFit ? [...verdict, ...(await grader.grade(others, options))] : verdict;
  verdicts.forEach((one, at) => {
    const fault = faultOf(one);
    if (fault === null) return;
    throw new PeriodicEvalError({
      code: "config",
      where,
      got: `${fault} of the answer ${JSON.stringify(requests[at]!.answer.slice(0, 60))}`,
      expected: "a reward from 0 to 1 of every answer of its pairs",
      fix: "Mend the verifier: what it cannot grade is not counted.",
    });
  });
  return grader;
}

/** The reward of a verdict; null where there is none. */
export const rewardOf = (verdict: Verdict): number | null =>
  verdict.status === "graded" ? (verdict.scores["reward"] ?? null) : null;

function faultOf(verdict: Verdict): string | null {
  if (verdict.status !== "graded") return `"${verdict.raw ?? verdict.status}"`;
  const reward = verdict.scores["reward"];
  return reward !== undefined && reward >= 0 && reward <= 1 ? null : `a reward of ${reward}`;
}

function namedGrader(
  { name, args }: Extract<Preference["verifier"], { readonly name: string }>,
  where: string,
): Grader {
  if (Object.hasOwn(shippedVerifiers, name)) return shippedGrader(name, args, where);
  const names = Object.keys(shippedVerifiers);
  const close = nearest(name, names);
  throw new PeriodicEvalError({
    code: "config",
    where,
    got: JSON.stringify(name),
    expected: `one of ${names.join(", ")}, or { module, export }`,
    fix: close === null ? "Name one of them, or a function of your own." : `Did you mean "${close}"?`,
  });
}

async function moduleGrader(
  preference: string,
  { module: path, export: exported, args }: Extract<Preference["verifier"], { readonly module: string }>,
  folder: string,
): Promise<Grader> {
  const loaded = await loadVerifierModule(folder, path);
  const own = findVerifier(loaded, exported);
  if ("grade" in own) return own;
  const fingerprint = hashJson([loaded.hash, args]);
  return verifierGrader(`${path}#${exported}`, fingerprint, async ({ question, answer }, { signal }) => {
    const told = { id: preference, question, answer: null, metadata: {}, args };
    return toVerdict(await withVerifierTimeout(signal, async () => own(answer, told)));
  });
}
