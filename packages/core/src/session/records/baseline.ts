import type { TrainerCallback } from "../../contracts/callback.ts";
import { quoteValue } from "../../internal/quote-value.ts";
import { PeriodicEvalError } from "../../errors.ts";
import type { AnyEvaluation } from "../../contracts/evaluation.ts";
import type { Json } from "../../contracts/json.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { nearest } from "../../internal/nearest.ts";
import { canonicalJson } from "../../random/hash.ts";
import type { EvaluableModel } from "../../contracts/model.ts";
import type { EarlierRun } from "../../snapshots/storage/earlier-run.ts";
import { keyText } from "../../snapshots/order.ts";
import type { Snapshot } from "../../contracts/snapshot.ts";
import { provenanceOf } from "./new-record.ts";
import { modelOf, prepareEvaluation, whereOf } from "../window/preflight.ts";
import type { Asked, Run } from "../run.ts";
import type { SessionOptions } from "../../contracts/session.ts";

const words = ["phase_start", "run_start", "adapter_off"];

/** A path has a separator, so that a misspelt word is none. */
const isPath = (baseline: string) => /[\\/]/.test(baseline);

export function checkBaseline({ baseline, callbacks }: Pick<SessionOptions, "baseline" | "callbacks">): void {
  if (baseline === undefined || (typeof baseline === "string" && isPath(baseline))) return;
  if (!words.includes(baseline)) {
    const guess = typeof baseline === "string" ? nearest(baseline, words) : null;
    throw new PeriodicEvalError({
      code: "config",
      where: "session option baseline",
      got: quoteValue(baseline),
      expected: `${words.map((one) => `"${one}"`).join(", ")} or the path of an earlier run`,
      fix:
        guess === null
          ? `Write "phase_start", or a path with its separator, as "./runs/1".`
          : `Write "${guess}".`,
    });
  }
  if (baseline !== "adapter_off") return;
  const ids = new Set(callbacks.map(({ id }) => id));
  const taken = [...ids].find((id) => ids.has(adapterOffId(id)));
  if (taken === undefined) return;
  throw new PeriodicEvalError({
    code: "config",
    where: "session option callbacks",
    got: `a callback with id "${adapterOffId(taken)}"`,
    expected: `another id: it is what the baseline of "${taken}" is kept under`,
    fix: "Give the callback another id.",
  });
}

/** What the model without its adapter is measured under. */
export const adapterOffId = (id: string): string => `${id}.adapter_off`;

/** Whether a request is one that the session adds for the baseline. */
export const isAdapterOff = ({ options }: Pick<Run, "options">, id: string): boolean =>
  options.baseline === "adapter_off" && id.endsWith(adapterOffId(""));

/**
 * Finds the baseline that lies outside of this run's own looks, before step 1.
 *
 * @throws PeriodicEvalError `config` for a run whose starts were asked another way than here, or that measured nothing of
 *   what is measured here; `model` for `adapter_off` with a model that has no adapter.
 */
export async function openBaseline(run: Run): Promise<void> {
  const { baseline = "phase_start" } = run.options;
  if (baseline === "adapter_off") return findAdapterOff(run);
  if (!isPath(baseline)) return;
  run.earlier = await earlierRunAt(baseline);
  for (const { file, message } of run.earlier.problems)
    run.telling.warn("comparison", `${file} of ${baseline} is left out: ${message}`);
  const scheduled = run.callbacks.filter(({ triggers }) => triggers !== undefined);
  const found: boolean[] = [];
  for (const { callback, evaluation } of askedBy(run, scheduled)) {
    const start = run.earlier.startOf(run.phase, callback.id);
    found.push(start !== null);
    if (start === null)
      tellIncomparable(run, callback.id, `"${callback.id}" is not compared: ${baseline} has no start of it`);
    else await checkStart(run, start, callback, evaluation);
  }
  if (found.length === 0 || found.includes(true)) return;
  throw new PeriodicEvalError({
    code: "config",
    where: "session option baseline",
    got: `${baseline}, which has no start of ${scheduled.map(({ id }) => `"${id}"`).join(", ")}`,
    expected: "an earlier run that measured the same",
    fix: 'Name another run, or write "phase_start".',
  });
}

function askedBy(run: Run, callbacks: readonly TrainerCallback[]) {
  return callbacks.flatMap((callback) =>
    (callback.asks ?? [])
      .filter((evaluation) => !run.unavailable.has(evaluation))
      .map((evaluation) => ({ callback, evaluation })),
  );
}

/**
 * The earlier run that is named, null where a baseline is none.
 *
 * @throws PeriodicEvalError as `openBaseline`, for what shows before anything is measured.
 */
export async function findBaseline(baseline: string, model: EvaluableModel): Promise<EarlierRun | null> {
  if (baseline === "adapter_off" && model.base === undefined) {
    throw new PeriodicEvalError({
      code: "model",
      where: "session option baseline",
      got: `"adapter_off" with the model "${model.identity.name}", which has no adapter to switch off`,
      expected: "a model with an adapter (LoRA)",
      fix: 'Open the model with its adapter, or write "phase_start".',
    });
  }
  return isPath(baseline) ? earlierRunAt(baseline) : null;
}

async function earlierRunAt(path: string): Promise<EarlierRun> {
  const { readEarlierRun } = await import("../../snapshots/storage/earlier-run.ts");
  return readEarlierRun(path);
}

async function findAdapterOff(run: Run): Promise<void> {
  const model = await modelOf(run);
  await findBaseline("adapter_off", model);
  for (const { callback, evaluation } of askedBy(run, run.callbacks)) {
    if (callback.on === "base") continue;
    try {
      await prepareEvaluation(run, model, evaluation, "base", whereOf(callback, evaluation));
      run.adapterOff.add(evaluation);
    } catch (error) {
      const why = `without the adapter it cannot be measured: ${errorMessage(error)}`;
      tellIncomparable(run, callback.id, `"${callback.id}" is not compared: ${why}`);
    }
  }
}

function tellIncomparable(run: Run, id: string, message: string): void {
  run.toldIncomparable.add(id);
  run.telling.warn("comparison", message);
}

async function checkStart(
  run: Run,
  start: Snapshot,
  callback: TrainerCallback,
  evaluation: AnyEvaluation,
): Promise<void> {
  const on = callback.on ?? "model";
  const prepared = await prepareEvaluation(
    run,
    await modelOf(run),
    evaluation,
    on,
    whereOf(callback, evaluation),
  );
  const here = {
    evaluation: evaluation.name,
    evaluation_version: evaluation.version,
    on,
    provenance: provenanceOf(evaluation, prepared, run.seed),
  };
  const different = differencesOf(start, here);
  if (start.status !== "complete") different.push(`the status "${start.status}"`);
  const { items, items_hash } = start.provenance;
  if (items_hash !== here.provenance.items_hash)
    different.push(`other items (${items ?? "unknown"}, here ${here.provenance.items})`);
  if (different.length > 0) {
    throw new PeriodicEvalError({
      code: "config",
      where: `session option baseline, callback "${callback.id}"`,
      got: `${run.earlier!.path}, where ${keyText(start)} has ${different.join(", ")}`,
      expected: "a start that was asked as it is here",
      fix: "Ask here what was asked there, or name another run.",
    });
  }
  await run.earlier!.rows(start);
}

type Way = Pick<Snapshot, "evaluation" | "evaluation_version" | "on"> & {
  readonly provenance: Pick<Snapshot["provenance"], "evaluation" | "tokenizer">;
};

/**
 * How another measurement was asked another way than one here, in words. Comparing the two would blame training for it.
 *
 * @param besides what differs on purpose.
 */
export function differencesOf(there: Way, here: Way, besides: "on" | null = null): string[] {
  const texts = {
    "the evaluation": [there.evaluation, here.evaluation],
    "the version": [there.evaluation_version, here.evaluation_version],
    "the model (on)": besides === "on" ? [] : [there.on, here.on],
    "the tokenizer": [there.provenance.tokenizer, here.provenance.tokenizer],
  };
  const [was, is] = [howAsked(there), howAsked(here)];
  const options = [...new Set([...Object.keys(was), ...Object.keys(is)])].filter(
    (name) => textOf(was[name]) !== textOf(is[name]),
  );
  return [
    ...Object.entries(texts)
      .filter(([, [one, other]]) => one !== other)
      .map(([what, [one, other]]) => `${what} ${one ?? "unknown"} (here ${other ?? "unknown"})`),
    ...(options.length === 0 ? [] : [`other options (${options.join(", ")})`]),
  ];
}

const textOf = (value: Json | undefined) => (value === undefined ? null : canonicalJson(value));

/** Provenance without what only chooses or shows items: pairs are made of those that both have. */
function howAsked({ provenance: { evaluation } }: Way): { readonly [option: string]: Json } {
  if (typeof evaluation !== "object" || evaluation === null || Array.isArray(evaluation))
    return { provenance: evaluation };
  const { subsample: _, example_prompt: __, ...how } = evaluation as { readonly [key: string]: Json };
  return how;
}

/**
 * What is measured in a window: what was asked for, and with `adapter_off`, in front, the model without its adapter for
 * what has no such baseline in the phase yet.
 */
export function withAdapterOff(run: Run, queue: readonly Asked[]): readonly Asked[] {
  if (run.options.baseline !== "adapter_off") return queue;
  const added = queue.flatMap(({ id: askedId, evaluation, on = "model", by }): readonly Asked[] => {
    const id = adapterOffId(askedId);
    const isThere = queue.some((other) => other.id === id) || adapterOffOf(run, askedId) !== null;
    if (on === "base" || isThere || !run.adapterOff.has(evaluation)) return [];
    return [{ id, evaluation, crossed: [], on: "base", by }];
  });
  return [...added, ...queue];
}

/** The measurement of the model without its adapter that looks of an id are compared with; null where there is none. */
export function adapterOffOf(
  { records, phase }: Pick<Run, "records" | "phase">,
  id: string,
): Snapshot | null {
  const isWhole = ({ status }: Snapshot) => status === "complete" || status === "grading";
  return records.settled(phase, adapterOffId(id)).find(isWhole) ?? null;
}
