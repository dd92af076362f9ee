import { describeCrossing } from "../../schedule/triggers.ts";
import { commit } from "../records/commit.ts";
import { firingOf, recordOf } from "../records/new-record.ts";
import { setAside } from "../records/resume.ts";
import { abortReason, type Asked, type Run } from "../run.ts";

/**
 * What an abort cuts off leaves no record: it is owed, and asked for again when the run is resumed at this step, on the
 * same weights. A record that this training made at the step, partial or failed, stands instead.
 */
export async function leaveOwed(run: Run, asked: Asked): Promise<void> {
  const { id, evaluation, crossed, by, on = "model", plannedLooks = null } = asked;
  const key = { phase: run.phase, id, step: run.progress.step };
  run.telling.warn(
    `callback "${by.id}"`,
    `"${id}" is not measured at step ${key.step} (${abortReason(run)}): it is when the run is resumed`,
  );
  if (run.records.isSettled(key)) return;
  const thresholds = crossed.filter(({ at }) => at !== null);
  if (thresholds.length === 0 && crossed.length > 0) {
    // The end is crossed again by the resumed phase, which must not find what a longer training left here.
    const left = run.records.get(key);
    if (left !== null) await setAside(run, left, "an abort cut off its being measured anew");
    return;
  }
  const { name, version } = evaluation;
  const before = run.owed.get(id)?.crossed ?? [];
  const known = new Set(before.map(describeCrossing));
  const added = thresholds.filter((crossing) => !known.has(describeCrossing(crossing)));
  run.owed.set(id, {
    by: by.id,
    evaluation: { name, version },
    on,
    crossed: [...before, ...added],
    plannedLooks,
  });
}

/** Puts what is owed into the queue again, where its callback still asks for that evaluation. */
export function askOwed(run: Run): void {
  for (const [id, { by: asker, evaluation: owed, crossed, on, plannedLooks }] of run.owed) {
    const by = run.callbacks.find((callback) => callback.id === asker);
    const evaluation = by?.asks?.find(({ name }) => name === owed.name);
    const isQueued = run.queue.some((asked) => asked.id === id);
    if (!isQueued && by !== undefined && evaluation !== undefined)
      run.queue.push({ id, evaluation, crossed, on, plannedLooks, by });
  }
}

/** Where training leaves the step at which something is owed, its weights are gone: a record says so. */
export async function skipOwed(run: Run): Promise<void> {
  for (const [id, { by, evaluation, crossed, on }] of run.owed) {
    // Asked again at a late begin: measured with the step that follows.
    if (run.queue.some((asked) => asked.id === id)) continue;
    const firing = firingOf(run, { id, evaluation, on, crossed: crossed.map(describeCrossing) });
    const skipped = recordOf(firing, { status: "skipped", reason: "aborted; training went on" });
    const left = run.records.get(skipped);
    await commit(run, skipped, [], { stale: left === null ? null : "training went on after an abort" });
    run.owed.delete(id);
    run.telling.warn(
      `callback "${by}"`,
      `"${id}" is skipped at step ${skipped.step}: its measurement was aborted, and training went on`,
    );
  }
}
