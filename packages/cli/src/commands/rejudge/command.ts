import { rejudge, rejudgeJson, rejudgeTable } from "./run.ts";
import { onInterrupt } from "../../terminal/interrupt.ts";
import { openGrader } from "../../config/open-grader.ts";
import { PeriodicEvalError, type Grader, type Snapshot } from "@periodic-eval/core";
import { hasJudgeErrors, storedAlignmentEvaluation, storedJudge } from "@periodic-eval/core/evaluations";
import { gradeStored, isUngraded } from "@periodic-eval/core/session";
import { fileStore, readRun } from "@periodic-eval/store";
import { Option, type Command } from "commander";
import { integer, atFlag } from "../../config/command-options.ts";
import { noSnapshot } from "../../run/read-runs.ts";
import { jsonText, plainTable, type Terminal, type Colours } from "../../terminal/terminal.ts";

interface RejudgeOptions {
  readonly judge?: string;
  readonly heal: boolean;
  readonly method?: "json" | "logprob";
  readonly maxCalls?: number;
  readonly json: boolean;
}

/** `rejudge`: grades the stored answers of a run with another judge. */
export function addRejudge(program: Command, terminal: Terminal): void {
  program
    .command("rejudge")
    .description("grade a run's stored answers with another judge, or those left ungraded")
    .argument("<run-dir>", "folder of the run")
    .option("--judge <name>", "openai:MODEL, anthropic:MODEL, folder:PATH, hf:owner/name …")
    .option("--heal", "grade answers that were left ungraded, with the run's judge", false)
    .addOption(
      new Option("--method <name>", "how a judge model replies (default: json)").choices(["json", "logprob"]),
    )
    .option("--max-calls <number>", "most requests per snapshot, retries included", integer(0))
    .option("--json", "print one JSON document", false)
    .action(
      async (runDir: string, { judge: spec, json, heal, ...limits }: RejudgeOptions, command: Command) => {
        if (heal) return healRun(runDir, { judge: spec ?? null, json, ...limits }, terminal);
        if (spec === undefined) return command.error("error: required option '--judge <name>' not specified");
        const judge = await atFlag("--judge", () => openGrader(spec, { ...limits, runDir }));
        const { signal, stopListening } = onInterrupt(terminal);
        try {
          const result = await rejudge(runDir, judge, {
            signal,
            now: () => new Date().toISOString(),
            terminal,
          });
          terminal.out(json ? rejudgeJson(result) : rejudgeTable(result, terminal.colours));
        } finally {
          stopListening();
          await judge.dispose?.();
        }
      },
    );
}

async function healRun(
  runDir: string,
  { judge, json, ...limits }: Omit<RejudgeOptions, "judge" | "heal"> & { readonly judge: string | null },
  terminal: Terminal,
): Promise<void> {
  const opener = (name: string) => openGrader(name, { ...limits, runDir });
  const open = judge === null ? opener : (name: string) => atFlag("--judge", () => opener(name));
  const { signal, stopListening } = onInterrupt(terminal);
  try {
    const healed = await heal(runDir, { judge, open, signal }, terminal);
    const { snapshots } = healed;
    terminal.out(json ? healedJson(snapshots) : healedTable(snapshots, terminal.colours));
    checkHealed(healed, runDir);
  } finally {
    stopListening();
  }
}

interface HealRequest {
  /** Name of the judge; null for the one that the snapshots name. */
  readonly judge: string | null;
  readonly open: (name: string) => Promise<Grader>;
  readonly signal: AbortSignal;
}

/** Measurements that were graded, and those of them that still lack grades. */
interface Healed {
  readonly snapshots: readonly Snapshot[];
  readonly left: readonly Snapshot[];
}

/**
 * Grades the answers and anchors of a run that a judge has not graded, with the judge that they were measured for: those of
 * measurements without grades, and those on which the judge failed in others. Updates their snapshots.
 *
 * @throws PeriodicEvalError `data` if no such measurement names a judge; `store` if a training uses the run; the judge's errors.
 */
async function heal(
  runDir: string,
  { judge: named, open, signal }: HealRequest,
  terminal: Terminal,
): Promise<Healed> {
  const openOnes = await openOf(runDir);
  if (openOnes.length === 0) return { snapshots: [], left: [] };
  const judge = await open(named ?? judgeOf(openOnes, runDir));
  try {
    await judge.check?.({ signal });
    const keys = new Set(openOnes.map(keyOf));
    const snapshots = await gradeStored(runDir, {
      evaluationOf: (snapshot) => storedAlignmentEvaluation(snapshot, judge),
      isOpen: (snapshot) => keys.has(keyOf(snapshot)),
      signal,
      warn: (where, message) => terminal.err(`[periodic-eval] ${where}: ${message}`),
    });
    const left = new Set((await openOf(runDir)).map(keyOf));
    return { snapshots, left: snapshots.filter((snapshot) => left.has(keyOf(snapshot))) };
  } finally {
    await judge.dispose?.();
  }
}

const keyOf = ({ phase, id, step }: Snapshot): string => `${phase}/${id}/${step}`;

/** Returns the snapshots with answers or anchors that a judge has not graded. */
async function openOf(runDir: string): Promise<readonly Snapshot[]> {
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

/** Throws if answers or anchors stayed ungraded. */
function checkHealed({ snapshots, left }: Healed, runDir: string): void {
  if (left.length === 0) return;
  throw new PeriodicEvalError({
    code: "judge",
    where: runDir,
    got: `${left.length} of ${snapshots.length} measurements that are still not graded`,
    expected: "the judge that they were measured for, with the same method, reachable",
    fix: "Read the reasons, and try again with --judge and --method as in the run; or resume the run.",
  });
}

const healedTable = (snapshots: readonly Snapshot[], colours: Colours): string =>
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

const healedJson = (snapshots: readonly Snapshot[]): string =>
  jsonText({
    measurements: snapshots.map(({ phase, id, step, status, reason }) => ({
      phase,
      id,
      step,
      status,
      reason,
    })),
  });
