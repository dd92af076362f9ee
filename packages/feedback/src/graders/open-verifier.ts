import { verifierGrader, type CallOptions, type Grader, type Verdict } from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { findVerifier, toVerdict, withVerifierTimeout } from "@periodic-eval/core/grading";
import { configError, nearest } from "@periodic-eval/contracts/options";
import { loadVerifierModule } from "@periodic-eval/core/config";
import type { Preference } from "../preferences/preference.ts";
import { customGrader } from "./custom-grader.ts";
import { shippedGrader, shippedVerifiers } from "./shipped.ts";
import { emitWarning, type OnWarning } from "./warnings.ts";

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
  const [first, ...others] = requests;
  const verdict = await grader.grade([first!], options);
  const isGraded = verdict.every((one) => faultOf(one) === null);
  const verdicts = isGraded ? [...verdict, ...(await grader.grade(others, options))] : verdict;
  verdicts.forEach((one, at) => {
    const fault = faultOf(one);
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
  const close = nearest(name, names);
  throw configError({
    where,
    value: name,
    expected: `one of ${names.join(", ")}, or { module, export }`,
    fix: close === null ? "Name one of them, or a custom function." : `Did you mean "${close}"?`,
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
  const fingerprint = hashJson([loaded.hash, args]);
  return verifierGrader(`${path}#${exported}`, fingerprint, async ({ question, answer }, { signal }) => {
    const task = { id: preference, question, answer: null, metadata: {}, args };
    return toVerdict(await withVerifierTimeout(signal, async () => verifier(answer, task)));
  });
}
