import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { isCount, isRecord } from "@periodic-eval/contracts/options";
import type { Json } from "@periodic-eval/core";
import { canonicalJson } from "@periodic-eval/core/random";
import { parsePythonJson } from "@periodic-eval/data";

/** Numbers that a trainer logged at a step. */
export interface LoggedMetrics {
  /** Completed optimizer steps. */
  readonly step: number;
  /** Passes over the data; null if the trainer does not log them. */
  readonly epoch: number | null;
  /** Such as `loss` and `learning_rate`, under the trainer's names. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** The parts of `trainer_state.json` that transformers, axolotl and our trainers write alike. */
export interface TrainerState {
  readonly maxSteps: number | null;
  readonly epoch: number | null;
  /** Whether training has ended with this checkpoint: our trainers, and the callback in docs/guides/watch.md, say so. */
  readonly isFinished: boolean;
  readonly losses: readonly LoggedMetrics[];
  /** The seed of the training; null if the trainer does not write it. */
  readonly seed: number | string | null;
}

/** Parses the text of `trainer_state.json`. Throws if it is not complete. */
export function readTrainerState(text: string): TrainerState {
  const state = parsePythonJson(text);
  const { max_steps: maxSteps, epoch, finished, log_history: log, seed } = isRecord(state) ? state : {};
  return {
    maxSteps: isCount(maxSteps) && maxSteps > 0 ? maxSteps : null,
    epoch: isNumber(epoch) ? epoch : null,
    isFinished: finished === true,
    losses: Array.isArray(log) ? log.flatMap(loggedMetrics) : [],
    seed: isNumber(seed) || typeof seed === "string" ? seed : null,
  };
}

function loggedMetrics(entry: unknown): readonly LoggedMetrics[] {
  if (!isRecord(entry)) return [];
  const { step, epoch, ...rest } = entry;
  const numbers = Object.entries(rest).filter((pair): pair is [string, number] => isNumber(pair[1]));
  if (!isCount(step) || numbers.length === 0) return [];
  return [{ step, epoch: isNumber(epoch) ? epoch : null, metrics: Object.fromEntries(numbers) }];
}

const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);

/** States by path, with the signature of their files. */
export type StateCache = Map<string, { readonly signature: string; readonly dated: DatedState }>;

/** Reads the `trainer_state.json` of checkpoints, complete or not. Leaves out those that cannot be read. */
export async function readTrainerStates(
  candidates: readonly Pick<DatedState, "step" | "path">[],
  cache: StateCache = new Map(),
): Promise<readonly DatedState[]> {
  const states = await Promise.all(
    candidates.map(async ({ step, path }) => {
      const file = join(path, "trainer_state.json");
      try {
        const { size, mtimeMs, ctimeMs, ino } = await stat(file);
        const signature = [size, mtimeMs, ctimeMs, ino].join();
        const known = cache.get(path);
        if (known?.signature === signature) return known.dated;
        const state = readTrainerState(await readFile(file, "utf8"));
        const dated = { step, path, state, writtenAt: mtimeMs };
        cache.set(path, { signature, dated });
        return dated;
      } catch {
        return null;
      }
    }),
  );
  return states.filter((state) => state !== null);
}

/** The beginning of a training: it tells its checkpoints from those of another one. */
export interface TrainingBeginning {
  /** Null if the trainer does not write it. */
  readonly seed: number | string | null;
  /** The first entries of the trainer's log. A training that resumes from a checkpoint has them too. */
  readonly entries: readonly LoggedMetrics[];
}

/** Entries that are compared. */
const mostEntries = 16;

/** Returns how a checkpoint's training began; null if its trainer logged nothing. */
export function beginningOf(
  step: number,
  { losses, seed }: Pick<TrainerState, "losses" | "seed">,
): TrainingBeginning | null {
  // Later entries may differ in a training that was resumed from this checkpoint.
  const entries = losses.filter((entry, at) => at === 0 || entry.step <= step).slice(0, mostEntries);
  return entries.length === 0 && seed === null ? null : { seed, entries };
}

/** Returns by what a checkpoint's training differs from another one; null if nothing tells them apart. */
export function trainingDifference(
  { seed, entries }: TrainingBeginning,
  here: Pick<TrainerState, "losses" | "seed">,
): string | null {
  if (seed !== null && here.seed !== null && seed !== here.seed)
    return `its seed is ${here.seed}, not ${seed}`;
  // A loop may log only the steps since its checkpoint before, or since it was resumed.
  if (isAfter(here.losses, entries) || isAfter(entries, here.losses)) return null;
  for (const [at, entry] of here.losses.slice(0, entries.length).entries()) {
    const known = entries[at]!;
    if (canonicalJson(entry as unknown as Json) === canonicalJson(known as unknown as Json)) continue;
    return `its log begins with ${textOf(entry)}, not ${textOf(known)}`;
  }
  return null;
}

/** Whether entries begin after all others. */
function isAfter(entries: readonly LoggedMetrics[], before: readonly LoggedMetrics[]): boolean {
  const [first, last] = [entries[0], before.at(-1)];
  return first !== undefined && last !== undefined && first.step > last.step;
}

const textOf = ({ step, metrics }: LoggedMetrics): string =>
  `${Object.entries(metrics)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ")} at step ${step}`;

/** A checkpoint, complete or not, whose `trainer_state.json` can be read. */
export interface DatedState {
  readonly step: number;
  readonly path: string;
  readonly state: TrainerState;
  /** When the trainer wrote the state, in milliseconds; programs that copy may keep this time. */
  readonly writtenAt: number;
}

/** Checkpoints of two trainings in one folder. */
export interface Trainings {
  /** The checkpoint that was written last; null if there is none. Its training is the one to measure. */
  readonly newest: DatedState | null;
  /** Checkpoints of earlier trainings by path, with what tells them from the newest. */
  readonly earlier: ReadonlyMap<string, string>;
}

/** Whether the training that wrote last has finished with the latest step of its checkpoints. */
export function hasFinished(states: readonly DatedState[], { newest, earlier }: Trainings): boolean {
  const last = states
    .filter(({ path }) => !earlier.has(path))
    .reduce<DatedState | null>((a, b) => (a === null || b.step > a.step ? b : a), null);
  if (newest === null || last === null) return false;
  const { maxSteps, isFinished } = last.state;
  const total = newest.state.maxSteps;
  // A training that was repeated with the same beginning may only be at a lower step yet.
  if (last !== newest && total !== null && total !== maxSteps && total > last.step) return false;
  return isFinished || (maxSteps !== null && last.step >= maxSteps);
}

/** Tells the checkpoints of the training that wrote last from those that earlier trainings left in the folder. */
export function tellTrainings(states: readonly DatedState[]): Trainings {
  const [newest = null] = states.toSorted((a, b) => b.writtenAt - a.writtenAt || b.step - a.step);
  const earlier = new Map<string, string>();
  for (const dated of newest === null ? [] : states) {
    const difference = dated === newest ? null : differenceFromNewest(newest!, dated);
    if (difference !== null) earlier.set(dated.path, difference);
  }
  return { newest, earlier };
}

function differenceFromNewest(newest: DatedState, dated: DatedState): string | null {
  const [first, second] = newest.step < dated.step ? [newest, dated] : [dated, newest];
  const beginning = beginningOf(first.step, first.state);
  const difference = beginning === null ? null : trainingDifference(beginning, second.state);
  if (difference !== null)
    return first === newest
      ? difference
      : trainingDifference(beginningOf(newest.step, newest.state)!, dated.state);
  // A later step that was written earlier, with another total and no log in common.
  const total = newest.state.maxSteps;
  const { maxSteps, losses } = dated.state;
  const isOlder = dated.step > newest.step && dated.writtenAt < newest.writtenAt;
  const isUnlogged = losses.length === 0 || newest.state.losses.length === 0;
  return isOlder && isUnlogged && total !== null && maxSteps !== null && maxSteps !== total
    ? `it has ${maxSteps} steps, not ${total}`
    : null;
}
