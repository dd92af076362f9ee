import type { Json, Snapshot } from "@periodic-eval/core";
import { differencesOf, isOfCheckpoint, otherItems, voidReason } from "@periodic-eval/store";
import { type RunRecord } from "@periodic-eval/contracts";
import { isMap } from "../html/json-field.ts";

/** A run that may count in a mean over runs. */
export interface RunOfMean {
  readonly name: string;
  readonly run: RunRecord;
  /** Runs of one group are averaged. Default: all are. */
  readonly group?: string;
  /** The training file that the run recorded; null or absent if it is unknown. */
  readonly config?: Json;
}

/**
 * Returns why a mean of a callback's metrics leaves out each run; null for a run that counts. Of the runs of a group that repeat one
 * training (equal seeds, or equal weights and values) the first counts, as of copies of a run in any group. Runs whose end cannot be
 * judged, that may not be paired with the first run or have more or fewer items, or that have other training options than the first
 * run of their group, do not count.
 */
export function reasonsToLeaveOut(runs: readonly RunOfMean[], id: string): readonly (string | null)[] {
  const counted: { readonly of: RunOfMean; readonly last: Snapshot }[] = [];
  return runs.map((of) => {
    const last = lastOf(of.run, id);
    if (last === undefined) return null;
    const reason = last.primary_metric === null ? null : voidReason(last, last.primary_metric);
    if (reason !== null) return `its end cannot be judged: ${reason}`;
    const [first] = counted;
    const inGroup = counted.filter((one) => one.of.group === of.group);
    const copied = counted.find((one) => JSON.stringify(one.last) === JSON.stringify(last));
    if (copied !== undefined) return `it is a copy of ${copied.of.name}: both count once`;
    const different = first === undefined ? [] : differencesFromFirst(first.last, last);
    if (different.length > 0) return `${first!.of.name} has ${different.join(", ")}`;
    const training = inGroup[0] && trainingDifference({ of, last }, inGroup[0]);
    if (training) return `its ${training} in ${inGroup[0]!.of.name}`;
    const repeated = inGroup.find((one) => isRepeat(one.last, last));
    if (repeated !== undefined) {
      const what = hasEqualBits(repeated.last, last) ? "weights" : `seed ${last.provenance.seed}`;
      return `it repeats ${repeated.of.name}, with equal ${what}: both count once`;
    }
    counted.push({ of, last });
    return null;
  });
}

/** A pair of measurements needs some common items; values over all items of each run are compared only over equally many. */
function differencesFromFirst(first: Snapshot, last: Snapshot): readonly string[] {
  const different = differencesOf(first, last);
  const [was, is] = [first.provenance, last.provenance];
  if (different.length > 0 || was.items === is.items) return different;
  return [otherItems(was.items, is.items)];
}

const lastOf = ({ phases }: RunRecord, id: string): Snapshot | undefined =>
  phases
    .flatMap(({ snapshots }) => snapshots)
    .filter((one) => one.id === id && one.provenance.hash !== null)
    .at(-1);

const hasEqualBits = (one: Snapshot, other: Snapshot): boolean => {
  const value = ({ metrics, primary_metric: primary }: Snapshot) => metrics[primary ?? ""]?.value;
  return one.weights !== null && one.weights === other.weights && value(one) === value(other);
};

/** Whether two runs repeat one training. Checkpoints of another program do not have its seed. */
const isRepeat = (one: Snapshot, other: Snapshot): boolean =>
  hasEqualBits(one, other) ||
  (one.provenance.seed === other.provenance.seed && !isOfCheckpoint(one) && !isOfCheckpoint(other));

/** Options of a training file that differ between runs that are averaged, or change no number. */
const perRun = ["seed", "run_dir", "loggers", "$schema"];

function trainingDifference(
  here: { readonly of: RunOfMean; readonly last: Snapshot },
  there: { readonly of: RunOfMean; readonly last: Snapshot },
): string | null {
  const [config, other] = [here, there].map(({ of }) => withoutKeys(of.config ?? null, perRun));
  const isKnown = config !== null && other !== null;
  return (
    difference(here.last.max_steps, there.last.max_steps, "number of steps") ??
    (isKnown ? difference(config!, other!, "training option") : null)
  );
}

const withoutKeys = (json: Json, keys: readonly string[]): Json =>
  isMap(json) ? Object.fromEntries(Object.entries(json).filter(([key]) => !keys.includes(key))) : json;

/** Names the first part of two values that differs: `option of leakage sampling.temperature is 1, but 0`; null if they are equal. */
function difference(here: Json, there: Json, what: string, path = ""): string | null {
  if (isMap(here) && isMap(there)) {
    for (const key of new Set([...Object.keys(here), ...Object.keys(there)])) {
      const found = difference(
        here[key] ?? null,
        there[key] ?? null,
        what,
        path === "" ? key : `${path}.${key}`,
      );
      if (found !== null) return found;
    }
    return null;
  }
  const [is, was] = [JSON.stringify(here), JSON.stringify(there)];
  if (is === was) return null;
  const short = (text: string) => (text.length > 60 ? `${text.slice(0, 60)}…` : text);
  return `${what}${path === "" ? "" : ` ${path}`} is ${short(is)}, but ${short(was)}`;
}
