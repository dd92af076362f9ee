import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type ConditionStop, PeriodicEvalError, type Progress } from "@periodic-eval/core";
import { checkRequests, isUngraded } from "@periodic-eval/core/session";
import { checkWritable, readRun } from "@periodic-eval/store";
import { watchCheckpoints, type WatchEnd } from "@periodic-eval/remote";
import { throwAll } from "../../config/config-file.ts";
import { startEngineOf } from "../../config/open-model.ts";
import type { LoadTasks } from "../../config/open-grader.ts";
import { reportRun } from "../../run/report-run.ts";
import { CommandFailure, interruptedError, onInterrupt, stoppedCode } from "../../terminal/interrupt.ts";
import { progressOnly, type Terminal } from "../../terminal/terminal.ts";
import { configure, type WatchCommandOptions } from "./configuration.ts";
import { removeStop, reportStop, standingStop } from "./stop-file.ts";
import { trainingPaths, lastPassed, standingPart, readWatchState, type WatchState } from "./watch-state.ts";
import { WatchedPhase, type Watching } from "./watched-phase.ts";

/** Measures the checkpoints of a folder, with the base model as step 0, and prints the report. Run again, it resumes. */
export async function watch(
  checkpoints: string,
  options: WatchCommandOptions,
  { terminal, loadTasks }: { readonly terminal: Terminal; readonly loadTasks: LoadTasks },
): Promise<void> {
  const { runDir, base, json } = options;
  await checkWritable(runDir);
  const progress = json ? progressOnly(terminal) : terminal;
  // Before the configuration opens a judge, which may run on this engine.
  const engine = await startEngineOf(options.config ?? null, { ...options, model: base }, progress);
  const { signal, stopListening } = onInterrupt(terminal);
  let stop: ConditionStop | null = null;
  try {
    const asked = { checkpoints: resolve(checkpoints), base };
    for (let isMeasured = false; !isMeasured && stop === null;) {
      const configuration = await configure(options, loadTasks);
      const { state } = await standingState(options, configuration.phase, asked, progress);
      const onStop = async (newStop: ConditionStop, at: WatchState | null) => {
        if (stop === null)
          await reportStop(runDir, newStop, { passed: at?.passed ?? [], terminal: progress });
        stop = newStop;
      };
      const watching = {
        checkpoints,
        options,
        configuration,
        engine,
        state,
        signal,
        onStop,
        terminal: progress,
      };
      isMeasured =
        (await measureCheckpoints(watching)) &&
        // Checkpoints may have been written again, or have arrived, while later ones were measured.
        (await standingState(options, configuration.phase, asked, { err: () => undefined })).isWhole;
    }
  } finally {
    stopListening();
    await engine.dispose();
  }
  await reportRun(runDir, { json }, terminal);
  if (stop !== null) throw new CommandFailure(stoppedCode);
}

/** Reads where an earlier watcher stopped, before the first checkpoint that has changed or arrived since; null if nothing stands. */
async function standingState(
  { runDir, pattern, order }: WatchCommandOptions,
  phase: string,
  asked: Pick<WatchState, "checkpoints" | "base">,
  terminal: Pick<Terminal, "err">,
): Promise<{ readonly state: WatchState | null; readonly isWhole: boolean }> {
  const known = await readWatchState(runDir, phase, asked);
  const paths = await trainingPaths(asked.checkpoints, { pattern, phase, known: known?.beginning ?? null });
  if (known === null) return { state: null, isWhole: true };
  const needsState = pattern === undefined;
  const { state, reason } = await standingPart(known, order === "latest" ? [] : paths, needsState);
  if (reason !== null) terminal.err(reason);
  return { state, isWhole: reason === null };
}

/**
 * Returns false if a checkpoint changed while it was measured, or became complete after a later one. Its step is not in the state
 * then, so that another call measures it: the session recognizes by the hash of the weights which measurements are still right.
 */
async function measureCheckpoints(watching: Watching): Promise<boolean> {
  const { checkpoints, options, state, signal, terminal } = watching;
  const { follow, order, pattern, runDir } = options;
  const earlier = await standingStop(runDir, watching.configuration, state);
  if (earlier !== null) {
    await watching.onStop(earlier.stop, state);
    if (state !== null && !earlier.isGraded) await (await WatchedPhase.open(watching, null)).close(false);
    return true;
  }
  // A trainer that starts again must not read it while this watcher waits for a checkpoint.
  await removeStop(runDir);
  const waiting = new AbortController();
  const iterator = watchCheckpoints(checkpoints, {
    follow,
    order,
    ...(pattern !== undefined && { pattern }),
    ...(state !== null && { after: lastPassed(state).session.progress.step }),
    late: "end",
    log: (message) => terminal.err(message),
    signal: AbortSignal.any([signal, waiting.signal]),
  });
  if (state === null) await checkEarly(watching);
  // An earlier watcher may have left answers to grade.
  let phase = await openGrading(watching);
  try {
    let next = await (phase === null ? iterator.next() : nextWhileTesting(phase, iterator, waiting));
    const end = next.done === true && (await phase?.isStopped()) !== true ? next.value : null;
    const isOver =
      end !== null &&
      (state === null || !end.isFinished || end.isLate || (await isMeasured(watching, state)));
    if (signal.aborted && phase === null)
      throw interruptedAt(runDir, state && lastPassed(state).session.progress);
    if (!signal.aborted && isOver) {
      await phase?.abandon();
      if (end.isLate) return false;
      // A verdict that arrived meanwhile may meet a condition.
      await phase?.isStopped();
      if (state === null) throw nothingYet(checkpoints, options);
      terminal.out(unchangedText(checkpoints, state, end));
      return true;
    }
    phase ??= await WatchedPhase.open(watching, next.done === true ? null : next.value);
    while (next.done !== true && !signal.aborted && !(await phase.isStopped())) {
      if (!(await phase.measure(next.value))) {
        await phase.abandon();
        return false;
      }
      if (!(await phase.isStopped())) next = await nextWhileTesting(phase, iterator, waiting);
    }
    const { isLate = false, isFinished = false } = next.done === true ? next.value : {};
    if (isLate) {
      await phase.abandon();
      return false;
    }
    await phase.close(isFinished);
  } catch (error) {
    waiting.abort();
    await phase?.fail(error);
    throw error;
  }
  if (signal.aborted) throw interruptedAt(runDir, phase.progress);
  return true;
}

/** Opens the session before a checkpoint comes if an earlier watcher has left answers to grade; otherwise returns null. */
async function openGrading(watching: Watching): Promise<WatchedPhase | null> {
  const { options, configuration, state } = watching;
  if (!options.follow || state === null) return null;
  const { phases } = await readRun(options.runDir, undefined, { rows: false });
  const snapshots = phases.find(({ name }) => name === configuration.phase)?.snapshots ?? [];
  return snapshots.some(isUngraded) ? WatchedPhase.open(watching, null) : null;
}

/** Waits for the next checkpoint. A condition that the verdict of a background judge meets meanwhile ends the iteration. */
async function nextWhileTesting(
  phase: WatchedPhase,
  iterator: ReturnType<typeof watchCheckpoints>,
  waiting: AbortController,
): ReturnType<typeof iterator.next> {
  const next = iterator.next();
  const hasCome = next.then(
    () => true,
    () => true,
  );
  while (!(await Promise.race([hasCome, sleep(1000, false, { ref: false })])))
    if (await phase.meetsCondition()) waiting.abort();
  return next;
}

/** Whether training is finished and its end is measured. Measurements of its last checkpoint that were damaged are taken again. */
async function isMeasured({ options, configuration }: Watching, state: WatchState): Promise<boolean> {
  if (!state.finished) return false;
  const { step } = lastPassed(state).session.progress;
  const { problems } = await readRun(options.runDir);
  return !problems.some(
    ({ key, kind, invalid }) =>
      key?.phase === configuration.phase && key.step === step && (invalid || kind === "rows"),
  );
}

/** Throws before the first checkpoint what a session would throw at its begin, as far as it does not depend on the tokenizer. */
async function checkEarly({ options, configuration, engine }: Watching): Promise<void> {
  const { base, tokenizer = null } = options;
  const { callbacks, session } = configuration.block;
  const errors = await checkRequests({
    callbacks,
    ...session,
    model: await engine.outline(base, null, { tokenizer }),
  });
  throwAll(errors.filter((error) => !PeriodicEvalError.is(error, "model")).map(configuration.place));
}

const unchangedText = (checkpoints: string, state: WatchState, { isFinished }: WatchEnd): string => {
  const { step } = lastPassed(state).session.progress;
  return state.finished && isFinished
    ? `already measured: training finished at step ${step}`
    : `no checkpoint after step ${step} in ${checkpoints} yet`;
};

const nothingYet = (checkpoints: string, { follow, pattern }: WatchCommandOptions): PeriodicEvalError =>
  new PeriodicEvalError({
    code: "data",
    where: checkpoints,
    got: "no complete checkpoint",
    expected: pattern === undefined ? "checkpoint-<N> or step_<N> folders" : `folders named ${pattern}`,
    fix: `${follow ? "Check that training writes checkpoints." : "Add --follow to wait for the first one."} --pattern gives other names.`,
  });

const interruptedAt = (runDir: string, progress: Progress | null): PeriodicEvalError =>
  interruptedError(
    runDir,
    progress === null ? "" : `after step ${progress.step}`,
    "Run the same command again to resume.",
  );
