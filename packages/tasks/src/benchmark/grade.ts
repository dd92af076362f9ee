import type { CallOptions, Grader, GradeRequest, Verdict } from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/contracts/options";
import { readVerdicts } from "@periodic-eval/core/grading";
import type { AnsweredTaskRow, BenchmarkRow, BenchmarkVerdict } from "./benchmark-task.ts";
import type { OpenVerifiers } from "./verifiers/open-verifiers.ts";

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
  const requests = row.completions.flatMap(({ answer }) => (answer === null ? [] : [{ question, answer }]));
  const verdicts = (await verdictsOf(await verifiers.open(row), requests, options)).values();
  const outcomes = row.completions.map(({ answer }) =>
    answer === null ? unfinished : outcomeOf(verdicts.next().value!),
  );
  return {
    ...row,
    rewards: outcomes.map(([reward]) => reward),
    passed: outcomes.map(([, passed]) => passed),
    verdicts: outcomes.map(([, , verdict]) => verdict),
  };
}

/** Returns one verdict per answer. If the grader throws, they are errors; other tasks are still graded. */
async function verdictsOf(
  grader: Grader,
  requests: readonly GradeRequest[],
  options: CallOptions,
): Promise<readonly Verdict[]> {
  try {
    return requests.length === 0
      ? []
      : readVerdicts(grader, await grader.grade(requests, options), requests.length);
  } catch (error) {
    options.signal.throwIfAborted();
    return requests.map(() => ({ status: "error", raw: errorMessage(error) }));
  }
}

/** The grade of one completion. */
type Outcome = readonly [reward: number | null, passed: boolean | null, verdict: BenchmarkVerdict];

/** The thinking used all of `maxTokens`, so there is no answer: that counts as not passed. */
const unfinished: Outcome = [0, false, { status: "unfinished", raw: "the thinking did not end" }];

function outcomeOf(verdict: Verdict): Outcome {
  const { status, raw } = verdict;
  if (verdict.status !== "graded") return [null, null, { status, raw }];
  const { reward, passed = Number((reward ?? 0) >= 1) } = verdict.scores;
  if (Number.isFinite(reward)) return [reward!, passed >= 1, { status, raw }];
  const names = Object.keys(verdict.scores).join(", ");
  return [null, null, { status: "error", raw: `a verdict without a reward (scores: ${names})` }];
}
