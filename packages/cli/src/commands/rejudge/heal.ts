import { PeriodicEvalError, type Grader, type Snapshot } from "@periodic-eval/core";
import { storedAlignmentEvaluation, storedJudge } from "@periodic-eval/core/evaluations";
import { gradeStored, isUngraded } from "@periodic-eval/core/session";
import { readRun } from "@periodic-eval/core/snapshots";
import { plainTable } from "../../terminal/plain-table.ts";
import type { Colours, Terminal } from "../../terminal/terminal.ts";

interface HealRequest {
  /** Name of the judge; null for the one that the snapshots name. */
  readonly judge: string | null;
  readonly open: (name: string) => Promise<Grader>;
  readonly signal: AbortSignal;
}

/**
 * Grades the measurements of a run whose answers are kept without grades, with the judge that they were measured for. Updates
 * their snapshots.
 *
 * @throws PeriodicEvalError `data` if no such measurement names a judge; `store` if a training uses the run; the judge's errors.
 */
export async function heal(
  runDir: string,
  { judge: named, open, signal }: HealRequest,
  terminal: Terminal,
): Promise<readonly Snapshot[]> {
  const ungraded = await ungradedOf(runDir);
  if (ungraded.length === 0) return [];
  const judge = await open(named ?? judgeOf(ungraded, runDir));
  try {
    await judge.check?.({ signal });
    return await gradeStored(runDir, {
      evaluationOf: (snapshot) => storedAlignmentEvaluation(snapshot, judge),
      signal,
      warn: (where, message) => terminal.err(`[periodic-eval] ${where}: ${message}`),
    });
  } finally {
    await judge.dispose?.();
  }
}

async function ungradedOf(runDir: string): Promise<readonly Snapshot[]> {
  const snapshots = (await readRun(runDir)).phases.flatMap((phase) => phase.snapshots);
  if (snapshots.length > 0) return snapshots.filter(isUngraded);
  throw new PeriodicEvalError({
    code: "data",
    where: runDir,
    got: "no snapshots",
    expected: "snapshots under periodic_eval/",
    fix: "Name the folder of a run.",
  });
}

/** Returns the name of the judge that ungraded measurements were made for. */
function judgeOf(ungraded: readonly Snapshot[], runDir: string): string {
  const names = new Set(ungraded.map((one) => storedJudge(one)?.name).filter((name) => name !== undefined));
  const [only] = names;
  if (only !== undefined && names.size === 1) return only;
  throw new PeriodicEvalError({
    code: "data",
    where: runDir,
    got: names.size === 0 ? "ungraded measurements without a judge" : `the judges ${[...names].join(", ")}`,
    expected: "ungraded alignment measurements of one judge",
    fix: names.size === 0 ? "Resume the run: its callbacks grade them." : "Choose one with --judge.",
  });
}

/** Throws if measurements stayed ungraded. */
export function checkHealed(snapshots: readonly Snapshot[], runDir: string): void {
  const left = snapshots.filter(({ status }) => status !== "complete" && status !== "partial");
  if (left.length === 0) return;
  throw new PeriodicEvalError({
    code: "judge",
    where: runDir,
    got: `${left.length} of ${snapshots.length} measurements that are still not graded`,
    expected: "the judge that they were measured for, with the same method, reachable",
    fix: "Read the reasons, and try again with --judge and --method as in the run; or resume the run.",
  });
}

export const healedTable = (snapshots: readonly Snapshot[], colours: Colours): string =>
  snapshots.length === 0
    ? "every measurement is graded"
    : plainTable(
        [{ words: "phase" }, { words: "callback" }, "step", { words: "status" }, { words: "reason" }],
        snapshots.map(({ phase, id, step, status, reason }) => [
          phase,
          id,
          String(step),
          status,
          reason ?? "",
        ]),
        colours,
      );

export const healedJson = (snapshots: readonly Snapshot[]): string =>
  JSON.stringify(
    {
      measurements: snapshots.map(({ phase, id, step, status, reason }) => ({
        phase,
        id,
        step,
        status,
        reason,
      })),
    },
    null,
    2,
  );
