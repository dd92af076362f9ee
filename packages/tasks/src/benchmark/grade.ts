import type { CallOptions, Grader, Verdict } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/contracts/options";
import { readVerdicts } from "@periodic-eval/core/grading";
import type { AnsweredTaskRow, BenchmarkRow, BenchmarkVerdict } from "./benchmark-task.ts";
import type { OpenVerifiers } from "./verifiers/open-verifiers.ts";

/** The grade of one completion. */
interface Outcome {
  readonly reward: number | null;
  readonly passed: boolean | null;
  readonly verdict: BenchmarkVerdict;
}

/** Grades each completion with its task's verifier. Replaces earlier verdicts. */
export async function gradeTasks(
  rows: readonly AnsweredTaskRow[],
  { verifiers, nConcurrent }: { readonly verifiers: OpenVerifiers; readonly nConcurrent: number },
  options: CallOptions,
): Promise<readonly BenchmarkRow[]> {
  const graded: BenchmarkRow[] = [];
  while (graded.length < rows.length) {
    options.signal.throwIfAborted();
    const some = rows.slice(graded.length, graded.length + nConcurrent);
    graded.push(...(await Promise.all(some.map((row) => gradeTask(row, verifiers, options)))));
  }
  return graded;
}

async function gradeTask(
  row: AnsweredTaskRow,
  verifiers: OpenVerifiers,
  options: CallOptions,
): Promise<BenchmarkRow> {
  const question = row.prompt.at(-1)!.content;
  const answers = row.completions.flatMap(({ answer }) => (answer === null ? [] : [answer]));
  const grader = await verifiers.open(row);
  const verdicts = (await verdictsOf(grader, question, answers, options)).values();
  const outcomes = row.completions.map(({ answer }) =>
    answer === null ? unfinished : outcomeOf(verdicts.next().value!),
  );
  return {
    ...row,
    rewards: outcomes.map(({ reward }) => reward),
    passed: outcomes.map(({ passed }) => passed),
    verdicts: outcomes.map(({ verdict }) => verdict),
  };
}

/** Returns one verdict per answer. If the grader throws, they are errors; other tasks are still graded. */
async function verdictsOf(
  grader: Grader,
  question: string,
  answers: readonly string[],
  options: CallOptions,
): Promise<readonly Verdict[]> {
  if (answers.length === 0) return [];
  const failed = (raw: string) => answers.map((): Verdict => ({ status: "error", raw }));
  try {
    const requests = answers.map((answer) => ({ question, answer }));
    return readVerdicts(grader, await grader.grade(requests, options), answers.length);
  } catch (error) {
    options.signal.throwIfAborted();
    return failed(errorMessage(error));
  }
}

/** The thinking used all of `maxTokens`, so there is no answer: that counts as not passed. */
const unfinished: Outcome = {
  reward: 0,
  passed: false,
  verdict: { status: "unfinished", raw: "the thinking did not end" },
};

function outcomeOf(given: Verdict): Outcome {
  const { status, raw } = given;
  const nothing = { reward: null, passed: null };
  if (given.status !== "graded") return { ...nothing, verdict: { status, raw } };
  const { reward, passed = Number((reward ?? 0) >= 1) } = given.scores;
  if (!Number.isFinite(reward)) {
    const names = Object.keys(given.scores).join(", ");
    return { ...nothing, verdict: { status: "error", raw: `a verdict without a reward (scores: ${names})` } };
  }
  return { reward: reward!, passed: passed >= 1, verdict: { status, raw } };
}
