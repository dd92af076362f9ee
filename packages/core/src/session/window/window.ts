import { withSeededRandom } from "../../guard/randomness.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { shareGenerations, type SharedModel } from "../../model/share-generations.ts";
import { seedOf } from "../../random/streams.ts";
import { describeCrossing } from "../../schedule/triggers.ts";
import type { Evidence, Snapshot } from "../../contracts/snapshot.ts";
import { recordRows } from "../records/background-grading.ts";
import { isAdapterOff, withAdapterOff } from "../records/baseline.ts";
import { disturbed } from "./broken-receipt.ts";
import { rowsOwed } from "../records/checked-rows.ts";
import { commit } from "../records/commit.ts";
import { lookOf } from "../records/compare.ts";
import { takeHookEvidence } from "./hook-evidence.ts";
import { tellFinished } from "../loop/hooks.ts";
import { drive } from "../loop/maybe-async.ts";
import { measureOnce, type Measured } from "./measure-once.ts";
import { firingOf, recordOf, type Firing } from "../records/new-record.ts";
import { leaveOwed } from "../loop/interrupted.ts";
import { whyNoMemory } from "../budget/memory.ts";
import { modelOf, prepareEvaluation, whereOf, type Prepared } from "./preflight.ts";
import { allow, expectedSeconds, learnLook } from "../budget/budget.ts";
import { adopt, readRows, whyNotAdopted } from "../records/resume.ts";
import { isBroken } from "./run-guarded.ts";
import { saveWeights } from "./save-weights.ts";
import { abortReason, secondsOf, type Asked, type Run } from "../run.ts";

/** A queued request with what it needs, or why it cannot have it. */
interface Ready {
  readonly asked: Asked;
  readonly firing: Firing;
  readonly prepared: Prepared | { readonly error: unknown };
}

/**
 * Measures everything queued on the frozen weights of this step, cheapest first, each inside the guards, so that a
 * receipt blames one measurement. What hooks ask for on seeing a snapshot is measured in the same window. Equal requests
 * of its measurements are answered once.
 */
export async function runWindow(run: Run): Promise<void> {
  run.windowOpenedAt = run.clock();
  let given: Promise<SharedModel> | null = null;
  const model = () => (given ??= modelOf(run).then(shareGenerations));
  try {
    // Items and metrics are asked for outside the guards: they too must leave training's numbers alone.
    await withSeededRandom(seedOf(run.seed, run.phase, "window", run.progress.step), async () => {
      while (run.queue.length > 0) await measureAll(run, run.queue.splice(0), model);
    });
  } finally {
    run.windowSeconds += run.clock() - run.windowOpenedAt;
    run.windowOpenedAt = null;
    run.windowWaiting.clear();
    run.saved = null;
  }
}

async function measureAll(
  run: Run,
  queue: readonly Asked[],
  model: () => Promise<SharedModel>,
): Promise<void> {
  const ready: Ready[] = [];
  for (const asked of withAdapterOff(run, queue)) {
    if (isRecorded(run, asked)) {
      run.owed.delete(asked.id);
      continue;
    }
    ready.push({ asked, firing: askedFiring(run, asked), prepared: await prepareAsked(run, asked, model) });
  }
  sortByCost(run, ready);
  for (const { asked } of ready) run.windowWaiting.add(asked.id);

  let justLeft: readonly Evidence[] = [];
  let broken: string | null = null;
  for (const one of ready) {
    const { id } = one.asked;
    run.windowWaiting.delete(id);
    const skipped = broken ?? run.unavailable.get(one.asked.evaluation) ?? null;
    if (skipped === null && run.signal.aborted) {
      await leaveOwed(run, one.asked);
      continue;
    }
    if (skipped !== null) {
      await recordSkip(run, one, { reason: skipped });
      run.owed.delete(id);
      continue;
    }
    const receipt = await fire(run, one, justLeft);
    if (receipt === null) {
      await leaveOwed(run, one.asked);
      continue;
    }
    run.owed.delete(id);
    justLeft = receipt;
    const blamed = justLeft.find(isBroken);
    if (blamed !== undefined) {
      disturbed(run, blamed, `the measurement "${id}" at step ${run.progress.step}`);
      // What follows would be measured on weights that training did not make.
      if (run.options.onBrokenReceipt !== "record")
        broken = `not measured: "${id}" had broken the guard "${blamed.part}"`;
      else (await model()).forget();
    }
  }
  await drive(tellFinished(run));
}

/** Baselines first, then by expected seconds; by items as long as those of some are not known. */
function sortByCost(run: Run, ready: Ready[]): void {
  const items = ({ prepared }: Ready) => ("items" in prepared ? prepared.items.length : 0);
  const seconds = new Map(ready.map((one) => [one, expectedSeconds(run, one.asked, items(one))]));
  const isKnown = ![...seconds.values()].includes(null);
  const cost = (one: Ready) => (isKnown ? seconds.get(one)! : items(one));
  const rank = ({ asked }: Ready) => (isAdapterOff(run, asked.id) ? 0 : 1);
  ready.sort((a, b) => rank(a) - rank(b) || cost(a) - cost(b));
}

/** A step that has its measurement is not measured again; one whose record is failed, skipped or partial is. */
function isRecorded(run: Run, { id }: Asked): boolean {
  const key = { phase: run.phase, id, step: run.progress.step };
  const status = run.records.isSettled(key) ? run.records.get(key)?.status : undefined;
  return status === "complete" || status === "grading";
}

async function prepareAsked(
  run: Run,
  { evaluation, on = "model", by }: Asked,
  model: () => Promise<SharedModel>,
): Promise<Ready["prepared"]> {
  if (run.unavailable.has(evaluation) || run.signal.aborted) return { error: null };
  try {
    return await prepareEvaluation(run, (await model()).model, evaluation, on, whereOf(by, evaluation));
  } catch (error) {
    return { error };
  }
}

function askedFiring(run: Run, { id, evaluation, crossed, on = "model" }: Asked): Firing {
  const key = { phase: run.phase, id, step: run.progress.step };
  const earlier = run.records.isSettled(key) ? (run.records.get(key)?.crossed ?? []) : [];
  const owed = run.owed.get(id)?.crossed ?? [];
  const texts = [...new Set([...earlier, ...[...owed, ...crossed].map(describeCrossing)])];
  return firingOf(run, { id, evaluation, on, crossed: texts });
}

/** One measurement; returns what its guards saw, null where an abort cut it off and it left no record. */
async function fire(
  run: Run,
  one: Ready,
  justLeft: readonly Evidence[],
): Promise<readonly Evidence[] | null> {
  const { asked, firing, prepared } = one;
  if (!("items" in prepared)) {
    await recordFailure(run, one, prepared.error, takeHookEvidence(run, asked.by));
    return [];
  }
  const existing = unsettled(run, firing);
  const began = run.clock();
  const memory = whyNoMemory(run);
  const allowance = allow(run, asked, prepared.items.length);
  const isAdoptable = existing?.status === "complete" || existing?.status === "grading";
  const none = memory ?? (allowance.first === 0 && !isAdoptable ? allowance.why : null);
  if (none !== null) {
    await recordSkip(run, one, { reason: none, ...(memory === null && { governor: allowance.told }) });
    return justLeft;
  }
  let stale: string | null = null;
  let saved: Snapshot["saved"];
  const measured = await measureOnce({
    evaluation: asked.evaluation,
    prepared,
    guards: run.guards,
    justLeft,
    seed: seedOf(run.seed, run.phase, asked.id, run.progress.step),
    stepSeed: seedOf(run.seed, run.phase, run.progress.step),
    provenanceSeed: run.seed,
    signal: run.signal,
    clock: run.clock,
    portions: (done, seconds) => (done === 0 ? allowance.first : allowance.more(done, seconds)),
    deadline: () => allowance.deadline(),
    progress: (done) =>
      run.telling.event({
        kind: "measuring",
        id: asked.id,
        step: run.progress.step,
        done,
        total: prepared.items.length,
      }),
    async before(provenance, weights) {
      stale =
        existing &&
        whyNotAdopted(existing, { evaluation: asked.evaluation, on: firing.on, provenance, weights });
      if (existing !== null && stale === null) return true;
      saved = await saveWeights(run);
      return false;
    },
  });
  if (measured.kind === "adopted") {
    await adopt(run, existing!, firing, asked.by);
    return measured.receipt;
  }
  const owed = rowsOwed(asked.evaluation, prepared);
  const isWhole = measured.kind === "measured" && measured.rows.length >= owed;
  // What a guard saw must be told, whatever became of the measurement.
  if (run.signal.aborted && !isWhole && !measured.receipt.some(isBroken)) return null;
  const receipt = [...measured.receipt, ...takeHookEvidence(run, asked.by)];
  if (measured.kind === "failed") {
    await recordFailure(run, one, measured.error, receipt, measured);
    return measured.receipt;
  }
  const told = { governor: allowance.told };
  const short = measured.isCut
    ? "its time was up"
    : allowance.first < prepared.items.length
      ? allowance.why
      : null;
  if (measured.rows.length === 0 && short !== null) {
    await recordSkip(run, one, { reason: short, ...told }, receipt);
    return measured.receipt;
  }
  const partial = isWhole ? null : whyPartial(run, short, measured.rows.length, owed);
  const base = recordOf(firing, {
    status: partial === null ? "complete" : "partial",
    reason: partial,
    ...(saved !== undefined && { saved }),
    provenance: measured.provenance,
    weights: measured.weights,
    receipt,
    timing: { ...timingOf(run, measured, measured.rows.length), ...told },
  });
  const look = lookOf(run, base, asked.plannedLooks ?? null);
  await recordRows(
    run,
    { base, rows: measured.rows, evaluation: asked.evaluation, by: asked.by, look },
    stale,
  );
  learnLook(run, asked, measured, { rows: measured.rows.length, seconds: run.clock() - began });
  return measured.receipt;
}

function whyPartial(run: Run, short: string | null, rows: number, owed: number): string {
  const why = abortReason(run) ?? short;
  return `${why === null ? "" : `${why}; `}${rows} of ${owed} rows`;
}

/** A record that nothing is measured here, unless one of this step tells more. */
async function recordSkip(
  run: Run,
  one: Ready,
  { reason, governor = "off" }: { readonly reason: string; readonly governor?: string },
  receipt: readonly Evidence[] = takeHookEvidence(run, one.asked.by),
): Promise<void> {
  if (isSettled(run, one.firing)) return;
  const { timing } = recordOf(one.firing, { status: "skipped", reason });
  await record(run, one, {
    status: "skipped",
    reason,
    receipt: [...receipt],
    timing: { ...timing, governor },
  });
}

async function recordFailure(
  run: Run,
  one: Ready,
  error: unknown,
  receipt: readonly Evidence[],
  measured?: Measured,
): Promise<void> {
  const aborted = abortReason(run);
  const changes = {
    status: "failed" as const,
    reason: aborted ?? errorMessage(error),
    receipt: [...receipt],
    ...(measured !== undefined && { weights: measured.weights, timing: timingOf(run, measured, 0) }),
    ...(measured?.provenance != null && { provenance: measured.provenance }),
  };
  if (aborted === null) {
    run.telling.warn(
      `callback "${one.asked.by.id}"`,
      `the measurement "${one.asked.id}" failed at step ${run.progress.step}: ${errorMessage(error)}`,
    );
    if (run.options.onFailure === "throw") run.toThrow ??= error;
  }
  await record(run, one, changes, aborted === null ? error : undefined);
}

async function record(
  run: Run,
  { asked, firing }: Ready,
  changes: Partial<Snapshot> & Pick<Snapshot, "status" | "reason">,
  error?: unknown,
): Promise<void> {
  const failure = error === undefined ? null : { by: asked.by, error };
  const stale = `measured anew, and then ${changes.status}`;
  const earlier = run.records.get(keyOf(firing));
  if (earlier !== null && isSettled(run, firing)) {
    const rows = await readRows(run, earlier, "so it is set aside");
    if (rows === null) return commit(run, recordOf(firing, changes), [], { stale, failure });
    if (rows.length > 0) {
      // Half a measurement tells more than a second one that gave none.
      const kept = {
        ...earlier,
        crossed: [...firing.crossed],
        reason: [earlier.reason, `${stale}: ${changes.reason}`].filter(Boolean).join("; "),
        receipt: [...earlier.receipt, ...(changes.receipt ?? [])],
      };
      return commit(run, kept, rows, { failure });
    }
  }
  await commit(run, recordOf(firing, changes), [], {
    stale: unsettled(run, firing) === null ? null : stale,
    failure,
  });
}

const keyOf = ({ phase, id, at }: Firing) => ({ phase, id, step: at.step });

function isSettled(run: Run, firing: Firing): boolean {
  return run.records.isSettled(keyOf(firing));
}

/** A record of this key that a training left which was cut off. */
function unsettled(run: Run, firing: Firing): Snapshot | null {
  return isSettled(run, firing) ? null : run.records.get(keyOf(firing));
}

function timingOf(
  run: Run,
  { guardsSeconds, measureSeconds, tokens }: Measured,
  items: number,
): Snapshot["timing"] {
  const { wall, windows } = secondsOf(run);
  const training = wall - windows;
  return {
    total_seconds: guardsSeconds + measureSeconds,
    guards_seconds: guardsSeconds,
    measure_seconds: measureSeconds,
    grade_seconds: null,
    items,
    tokens,
    // Before the first step there is no training to compare with.
    overhead_percent: run.progress.step > 0 && training > 0 ? (100 * windows) / training : null,
    governor: "off",
  };
}
