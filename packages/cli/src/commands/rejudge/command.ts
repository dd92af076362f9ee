import { rejudge, rejudgeJson, rejudgeTable } from "./run.ts";
import { configError, dataError, isRecord } from "@periodic-eval/contracts/options";
import { onInterrupt } from "../../terminal/interrupt.ts";
import { openGrader, type GraderOptions } from "../../config/open-grader.ts";
import { PeriodicEvalError, type Grader, type Snapshot } from "@periodic-eval/core";
import {
  hasJudgeErrors,
  storedAlignmentEvaluation,
  storedJudge,
  storedRefusalEvaluation,
} from "@periodic-eval/core/evaluations";
import { refusalJudge } from "@periodic-eval/core/grading";
import { gradeStored, isUngraded } from "@periodic-eval/core/session";
import { fileStore, readRun } from "@periodic-eval/store";
import { Option, type Command } from "commander";
import { integer, atFlag } from "../../config/command-options.ts";
import { noSnapshot } from "../../run/read-runs.ts";
import { jsonText, plainTable, type Terminal, type Colours } from "../../terminal/terminal.ts";

interface RejudgeOptions {
  readonly judge?: string;
  readonly method?: "json" | "logprob";
  readonly maxCalls?: number;
  readonly json: boolean;
}

/** `rejudge`: grades the stored answers of a run that are not graded, or all of them with another judge. */
export function addRejudge(program: Command, terminal: Terminal): void {
  program
    .command("rejudge")
    .description("grade a run's stored answers that were left ungraded, or all with another judge")
    .argument("<run-dir>", "folder of the run")
    .option("--judge <name>", "openai:MODEL, anthropic:MODEL, folder:PATH, hf:owner/name …")
    .addOption(
      new Option("--method <name>", "how a judge model replies (default: json)").choices(["json", "logprob"]),
    )
    .option("--max-calls <number>", "most requests per snapshot, retries included", integer(0))
    .option("--json", "print one JSON document", false)
    .action(async (runDir: string, { judge: name, json, ...limits }: RejudgeOptions) => {
      const opened: Grader[] = [];
      const open = async (spec: string, options: GraderOptions = {}): Promise<Grader> => {
        const judge = await openGrader(spec, { ...limits, ...options, runDir });
        opened.push(judge);
        return judge;
      };
      const { signal, stopListening } = onInterrupt(terminal);
      try {
        const judge = name === undefined ? null : await atFlag("--judge", () => open(name));
        const ungraded = await ungradedOf(runDir);
        const ofAlignment = ungraded.filter(isAlignment);
        const isOfRun = ofAlignment.some((stored) => storedJudge(stored)?.fingerprint === judge?.fingerprint);
        if (judge === null || isOfRun) {
          const openFor = async (snapshot: Snapshot, spec: string) =>
            isAlignment(snapshot) ? (judge ?? open(spec)) : open(spec, refusalJudge);
          return await grade(runDir, { ungraded, open: openFor, signal, json }, terminal);
        }
        refuseOtherMethod(judge, ofAlignment);
        const result = await rejudge(runDir, judge, {
          signal,
          now: () => new Date().toISOString(),
          terminal,
        });
        terminal.out(json ? rejudgeJson(result) : rejudgeTable(result, terminal.colours));
      } finally {
        stopListening();
        for (const judge of opened) await judge.dispose?.();
      }
    });
}

/** Whether a judge of `--judge` can grade a snapshot. */
const isAlignment = ({ evaluation }: Snapshot): boolean => evaluation === "alignment";

/**
 * @throws PeriodicEvalError `config` if a judge has the name and model of the one that left measurements ungraded, but another
 *   fingerprint: it would regrade all answers of the run instead of these.
 */
function refuseOtherMethod(judge: Grader, ungraded: readonly Snapshot[]): void {
  const { model, method: requested } = recordOf(judge.describe?.());
  const left = ungraded.filter(
    (snapshot) => storedJudge(snapshot)?.name === judge.name && descriptionOf(snapshot)["model"] === model,
  );
  if (left.length === 0) return;
  const { method } = descriptionOf(left[0]!);
  const first =
    typeof method === "string" && method !== requested
      ? `Use --method ${method}, as in the run, to grade them`
      : "Resume the run, which grades them";
  throw configError({
    where: "--judge",
    got: `the run's judge "${judge.name}" with another fingerprint, and ungraded measurements (${left.length})`,
    expected: "the judge that they were measured for, with the same method",
    fix: `${first}; after that, this command regrades all answers.`,
  });
}

/** Returns how a snapshot describes its judge. */
const descriptionOf = (snapshot: Snapshot) => recordOf(storedJudge(snapshot)?.description);

const recordOf = (value: unknown): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {});

interface GradeRequest {
  readonly ungraded: readonly Snapshot[];
  /** Opens the judge that a snapshot names. */
  readonly open: (snapshot: Snapshot, judge: string) => Promise<Grader>;
  readonly signal: AbortSignal;
  readonly json: boolean;
}

/**
 * Grades the answers and anchors of a run that a judge has not graded, with the judges that they were measured for: those of
 * measurements without grades, and those on which the judge failed in others. Updates their snapshots, and prints them.
 *
 * @throws PeriodicEvalError `data` if no such measurement names a judge; `judge` if answers or anchors stay ungraded; `store` if a
 *   training uses the run; the judge's errors.
 */
async function grade(
  runDir: string,
  { ungraded, open, signal, json }: GradeRequest,
  terminal: Terminal,
): Promise<void> {
  const print = (graded: readonly Snapshot[]) =>
    terminal.out(json ? gradedJson(graded) : gradedTable(graded, terminal.colours));
  // Grading takes the run's lock, which a training may hold.
  if (ungraded.length === 0) return print([]);
  const judges = new Map<string, Grader>();
  for (const snapshot of ungraded) {
    const stored = storedJudge(snapshot);
    if (stored === null || judges.has(stored.fingerprint)) continue;
    const judge = await open(snapshot, stored.name);
    judges.set(stored.fingerprint, judge);
    await judge.check?.({ signal });
  }
  if (judges.size === 0)
    throw dataError(
      runDir,
      "ungraded measurements without a judge",
      "ungraded measurements of alignment, or of refusal with a judge",
      "Resume the run: its callbacks grade them.",
    );
  const keys = new Set(ungraded.map(keyOf));
  const snapshots = await gradeStored(runDir, {
    evaluationOf: (snapshot) => {
      const judge = judges.get(storedJudge(snapshot)?.fingerprint ?? "");
      if (judge === undefined) return null;
      return (isAlignment(snapshot) ? storedAlignmentEvaluation : storedRefusalEvaluation)(snapshot, judge);
    },
    isOpen: (snapshot) => keys.has(keyOf(snapshot)),
    signal,
    warn: (where, message) => terminal.err(`[periodic-eval] ${where}: ${message}`),
  });
  print(snapshots);
  const left = await ungradedOf(runDir);
  if (left.length > 0)
    throw new PeriodicEvalError({
      code: "judge",
      where: runDir,
      got: `${left.length} of ${ungraded.length} measurements that are still not graded`,
      expected: "the judge that they were measured for, with the same method, reachable",
      fix: "Read the reasons, and try again with --method as in the run; or resume the run.",
    });
}

const keyOf = ({ phase, id, step }: Snapshot): string => `${phase}/${id}/${step}`;

/** Returns the snapshots with answers or anchors that a judge has not graded. */
async function ungradedOf(runDir: string): Promise<readonly Snapshot[]> {
  const snapshots = (await readRun(runDir)).phases.flatMap((phase) => phase.snapshots);
  if (snapshots.length === 0) throw noSnapshot(runDir);
  const store = fileStore(runDir);
  const isOpen = async (snapshot: Snapshot) =>
    isUngraded(snapshot) ||
    (storedJudge(snapshot) !== null &&
      snapshot.samples !== null &&
      // Damaged rows cannot be graded; `verify` reports them.
      hasJudgeErrors(await store.rows(snapshot).catch(() => [])));
  const open = await Promise.all(snapshots.map(isOpen));
  return snapshots.filter((_, at) => open[at]);
}

const gradedJson = (graded: readonly Snapshot[]): string =>
  jsonText({
    measurements: graded.map(({ phase, id, step, status, reason }) => ({ phase, id, step, status, reason })),
  });

const gradedTable = (graded: readonly Snapshot[], colours: Colours): string =>
  graded.length === 0
    ? "every measurement is graded"
    : plainTable(
        [{ words: "phase" }, { words: "callback" }, "step", { words: "status" }, { words: "reason" }],
        graded.map(({ phase, id, step, status, reason }) => [phase, id, String(step), status, reason ?? ""]),
        colours,
      );
