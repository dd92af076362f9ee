import { plannedSteps } from "../../schedule/crossings.ts";
import type { Trigger } from "../../contracts/schedule.ts";
import type { LookCost, LookTime, Timed } from "./measurement-costs.ts";
import type { Mark, Measured } from "../window/measure-once.ts";
import { isAdapterOff } from "../records/baseline.ts";
import { secondsOf, type Asked, type Run } from "../run.ts";
import { shareSeconds, type Wanted } from "./share-seconds.ts";

/** What the governor lets one measurement take. */
export interface Allowance {
  /** What it decided, for the snapshot. */
  readonly told: string;
  /** Why not all is measured, for a person; null where all is. */
  readonly why: string | null;
  /** Items to measure first; 0: none. */
  readonly first: number;
  /** Items to measure further, once `done` are, in so many seconds; 0 ends it. */
  more(done: number, seconds: number): number;
  /** When it is cut off, on the run's clock; null: never. */
  deadline(): number | null;
}

/** Of the pause that is allowed, left for what is slower than expected. */
const windowSlack = 0.1;
/** A measurement is cut off at so many times what it was given. */
const patience = 2;
/** Kept for an end that takes longer than expected: a share of it and what is doubtful, at most these. */
const caution = { ofEnd: 0.03, ofTraining: 0.01, ofLeft: 0.1 };
/** The first step of a session compiles: as long as it is all that is known, others are taken to be a tenth of it. */
const firstStepCounts = 0.1;
/** Of the items, measured first where nothing is known of what they take. */
const pilot = 1 / 16;

export const defaultOverheadPercent = 20;

/** Learns from the snapshots of earlier sessions, called once the records are read. */
export function learnFromRecords(run: Run): void {
  const { costs, sizes, asked } = run.learned;
  for (const { asks = [], id } of run.callbacks) {
    for (const snapshot of run.records.all()) {
      const evaluation = asks.find(
        ({ name, version }) => name === snapshot.evaluation && version === snapshot.evaluation_version,
      );
      if (snapshot.id !== id || evaluation === undefined || !run.records.isSettled(snapshot)) continue;
      const { timing, step, phase, provenance } = snapshot;
      if (phase === run.phase && step > 0) asked.set(id, (asked.get(id) ?? 0) + 1);
      const items = timing.items / (evaluation.samplesPerItem ?? 1);
      if (provenance.items !== null) sizes.set(id, provenance.items);
      if (items === 0) continue;
      const { measure_seconds: seconds, guards_seconds: aroundSeconds } = timing;
      costs.learn(id, { items, seconds, told: null, aroundSeconds, isWarm: step > 0 });
    }
  }
}

/** Called with every step that was trained. */
export function learnStep({ learned, previous, progress }: Run): void {
  if (learned.firstStep !== null) return;
  const steps = progress.step - (previous?.step ?? 0);
  const seconds = progress.elapsedSeconds - (previous?.elapsedSeconds ?? 0);
  if (steps > 0) learned.firstStep = { steps, seconds };
}

/** Called with every measurement that gave rows, once it is recorded: so many, in so many seconds with all round it. */
export function learnLook(
  run: Run,
  { id, evaluation }: Asked,
  {
    marks: all,
    firstPortion,
    isCut,
    measureSeconds,
  }: Pick<Measured, "marks" | "firstPortion" | "isCut" | "measureSeconds">,
  whole: { readonly rows: number; readonly seconds: number },
): void {
  const { costs, warm } = run.learned;
  // A further portion pays again what a look costs beside its items.
  const marks = firstPortion === null ? all : all.filter(({ items }) => items <= firstPortion.items);
  const last = marks.at(-1);
  // Of a call that was cut off there are seconds and no rows.
  const { items, seconds } =
    firstPortion ??
    (isCut && last !== undefined
      ? last
      : { items: whole.rows / (evaluation.samplesPerItem ?? 1), seconds: measureSeconds });
  const aroundSeconds = whole.seconds - measureSeconds;
  const isWarm = warm.has(id);
  warm.add(id);
  if (items === 0) return;
  costs.learn(id, { items, seconds, told: toldOf(marks, items), aroundSeconds, isWarm });
}

function toldOf(marks: readonly Mark[], items: number): Timed | null {
  const [first, last] = [marks[0], marks.at(-1)];
  if (first === undefined || last === undefined || last.items - first.items < items / 4) return null;
  // Told of when all calls of the model were done, it says nothing.
  if (last.calls === first.calls) return null;
  return { items: last.items - first.items, seconds: last.seconds - first.seconds };
}

/** Expected seconds of a whole look; null where nothing is known, or nothing is governed. */
export function expectedSeconds(run: Run, { id }: Asked, items: number): number | null {
  const cost = isGoverned(run) ? run.learned.costs.of(id) : null;
  return cost && cost.fixed + cost.perItem * items;
}

/** What a measurement of so many items may take now. */
export function allow(run: Run, asked: Asked, items: number): Allowance {
  const { learned, progress } = run;
  const { id } = asked;
  learned.sizes.set(id, items);
  const whole = (told: string) => ({ told, why: null, first: items, more: () => 0, deadline: () => null });
  if (!isGoverned(run)) return whole("off");
  if (progress.step === 0 || asked.crossed.some(({ trigger }) => isEdge(trigger, "start")))
    return whole("whole: the start is");
  if (isLast(run)) return whole("whole: the end is");
  if (isAdapterOff(run, id)) return whole("whole: the baseline is");
  learned.asked.set(id, (learned.asked.get(id) ?? 0) + 1);

  const began = run.clock();
  const first = plan(run, asked, items, { began, and: null });
  if (first.items === 0) learned.skipped.set(id, (learned.skipped.get(id) ?? 0) + 1);
  else learned.skipped.delete(id);
  const what =
    first.items === items ? "whole" : first.items === 0 ? "skipped" : `${first.items} of ${items} items`;
  let seconds = first.seconds;
  return {
    told: `${what}: ${first.why}`,
    why: first.why,
    first: first.items,
    deadline: () => (Number.isFinite(seconds) ? began + seconds : null),
    more(done, taken) {
      // Once: each portion pays again what a call costs beside its items.
      if (done >= items || done > first.items) return 0;
      const and = { items: done, seconds: taken, told: null, aroundSeconds: 0, isWarm: true };
      const further = plan(run, asked, items, { began, and });
      const more = further.items - done;
      // A small batch costs nearly as much as a larger one.
      if (more < Math.max(1, done / 4)) return 0;
      seconds = further.seconds;
      return more;
    },
  };
}

interface Planned {
  readonly items: number;
  /** When to cut it off, from when the measurement began. */
  readonly seconds: number;
  readonly why: string;
}

/** What of the look that is being measured is measured already. */
interface Measuring {
  readonly id: string;
  readonly and: LookTime | null;
}

/** How many items this look may have; with `and`, where so many are measured already. */
function plan(
  run: Run,
  asked: Asked,
  items: number,
  { began, and }: { readonly began: number; readonly and: LookTime | null },
): Planned {
  const { learned } = run;
  const { id } = asked;
  const spent = run.clock() - began;
  const cost = learned.costs.of(id, and);
  const { left, projected, why } = available(run, { id, and });
  const room = left + spent;
  const inWindow = secondsInWindow(run) + spent;
  const most = Math.min(room, inWindow);
  if (cost === null) {
    const isPossible = most > 0;
    const tried = isPossible ? Math.ceil(pilot * items) : 0;
    return { items: tried, seconds: most, why: `${why}; nothing is known yet of what an item takes` };
  }
  // A whisker more, for sums that rounding made too small.
  const fits = (seconds: number) =>
    cost.perItem > 0
      ? Math.max(0, Math.min(items, Math.floor(((1 + 1e-9) * seconds - cost.fixed) / cost.perItem)))
      : items;
  // What a call costs beside its items is paid again by a further portion.
  const again = and === null ? 0 : cost.fixed;
  const fitsWindow = fits((1 - windowSlack) * inWindow - again);
  const windowWhy = `${shownSeconds(cost.fixed + cost.perItem * items)} expected, ${shownSeconds(Math.max(0, inWindow))} left of the ${run.options.budget?.secondsPerWindow} s of a window`;
  if (fitsWindow === 0) return { items: 0, seconds: inWindow, why: windowWhy };
  const own: Wanted = { ...wantedOf(run, id, cost, projected), items };
  const others = othersOf(run, id, projected);
  const mine = { ...own, items: Math.min(items, fitsWindow) };
  const share = shareSeconds(room - again, [mine, ...others]).get(id)!;
  // Looks that cannot all be had are spread over those to come.
  const isTurn = ((learned.skipped.get(id) ?? 0) + 1) * share.looks >= own.looks;
  const given = and !== null || isTurn ? share.items : 0;
  const expected = cost.fixed + again + cost.perItem * given;
  const limited = given < fitsWindow || fitsWindow === items;
  const seconds = Math.min(Math.max(most, expected), patience * expected);
  return {
    items: given,
    seconds,
    why: limited ? `${shownSeconds(cost.fixed + cost.perItem * items)} expected, ${why}` : windowWhy,
  };
}

/** Seconds for all looks between start and end, from now on. */
function available(
  run: Run,
  measured: Measuring,
): { readonly left: number; readonly projected: number; readonly why: string } {
  const percent = run.options.budget?.overheadPercent ?? defaultOverheadPercent;
  const { wall, windows } = secondsOf(run);
  const projected = projectedSeconds(run, wall - windows);
  if (run.options.budget?.overheadPercent === null)
    return { left: Infinity, projected, why: "no limit of overhead" };
  const { expected: kept, doubtful } = secondsOfEnd(run, measured);
  const most = (percent / 100) * projected - windows - kept;
  const left =
    most -
    Math.max(
      0,
      Math.min(doubtful + caution.ofEnd * kept, caution.ofTraining * projected, caution.ofLeft * most),
    );
  const training = run.progress.maxSteps === null ? "trained so far" : "of training expected";
  const why = `${shownSeconds(Math.max(0, left))} left for this and later looks: ${percent} % of ${shownSeconds(projected)} ${training}, less ${shownSeconds(windows)} used and ${shownSeconds(kept)} kept for the end`;
  return { left, projected, why };
}

/** Of the whole phase where its length is known, else of what has been trained. */
function projectedSeconds({ progress, learned }: Run, trained: number): number {
  const { step, maxSteps } = progress;
  if (maxSteps === null || step === 0) return trained;
  const { steps, seconds } = learned.firstStep ?? { steps: 0, seconds: 0 };
  const perStep = step > steps ? (trained - seconds) / (step - steps) : firstStepCounts * (trained / step);
  return trained + Math.max(0, maxSteps - step) * Math.max(0, perStep);
}

/** `doubtful`: what the end may take beyond what is expected. */
function secondsOfEnd(
  run: Run,
  measured: Measuring,
): { readonly expected: number; readonly doubtful: number } {
  let expected = 0;
  let doubtful = 0;
  for (const { id, triggers = [] } of run.callbacks) {
    const items = run.learned.sizes.get(id);
    const cost =
      items === undefined ? null : run.learned.costs.end(id, items, id === measured.id ? measured.and : null);
    if (cost === null) continue;
    const isAtEnd =
      triggers.some((trigger) => isEdge(trigger, "end")) ||
      stepsOf(run, triggers)?.at(-1) === run.progress.maxSteps;
    if (!isAtEnd) continue;
    expected += cost.expected;
    doubtful += cost.doubtful;
  }
  return { expected, doubtful };
}

/** The looks that other callbacks will still ask for, this window's included. */
function othersOf(run: Run, id: string, projected: number): readonly Wanted[] {
  return run.callbacks.flatMap((callback) => {
    if (callback.id === id) return [];
    const cost = run.learned.costs.of(callback.id);
    const items = run.learned.sizes.get(callback.id);
    if (cost === null || items === undefined) return [];
    const wanted = wantedOf(run, callback.id, cost, projected);
    const looks = wanted.looks - (run.windowWaiting.has(callback.id) ? 0 : 1);
    return looks > 0 ? [{ ...wanted, items, looks }] : [];
  });
}

/** Looks of an id between now and the end, one that is due now included. */
function wantedOf(
  run: Run,
  id: string,
  { fixed, perItem }: LookCost,
  projected: number,
): Omit<Wanted, "items"> {
  const { triggers = [] } = run.callbacks.find((callback) => callback.id === id) ?? {};
  const { step, maxSteps, elapsedSeconds } = run.progress;
  const steps = stepsOf(run, triggers);
  const planned = steps?.filter((one) => one > step && one < maxSteps!).length;
  // As often as so far, where no schedule tells.
  const asFar = (run.learned.asked.get(id) ?? 0) * Math.max(0, projected / elapsedSeconds - 1);
  const ahead =
    triggers.length > 0 && planned !== undefined ? planned : Number.isFinite(asFar) ? Math.floor(asFar) : 0;
  return { id, fixed, perItem, looks: ahead + 1 };
}

function stepsOf({ progress }: Run, triggers: readonly Trigger[]) {
  return plannedSteps(triggers, progress.maxSteps);
}

function isEdge(trigger: object, edge: "start" | "end"): boolean {
  return "at" in trigger && trigger.at === edge;
}

/** The last step of a phase is its end: what is measured there is not measured again. */
function isLast({ progress: { ended, step, maxSteps } }: Run): boolean {
  return ended || (maxSteps !== null && step >= maxSteps);
}

function secondsInWindow(run: Run): number {
  const limit = run.options.budget?.secondsPerWindow ?? null;
  if (limit === null) return Infinity;
  return limit - (run.windowOpenedAt === null ? 0 : run.clock() - run.windowOpenedAt);
}

function isGoverned({ options: { budget = {} } }: Run): boolean {
  return budget.overheadPercent !== null || (budget.secondsPerWindow ?? null) !== null;
}

const shownSeconds = (seconds: number) => `${Number(seconds.toPrecision(3))} s`;
