import { metricKit, primaryMetric, summarize } from "../../evaluations/kit/metric-kit.ts";
import type { AnyEvaluation, Metric, Row } from "../../contracts/evaluation.ts";
import { withSeededRandom } from "../../guard/randomness.ts";
import type { Json } from "../../contracts/json.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { seedOf } from "../../random/streams.ts";
import { keyText } from "../../snapshots/order.ts";
import type { EarlierRun } from "../../snapshots/storage/earlier-run.ts";
import type { Paired, Snapshot, SnapshotKey } from "../../contracts/snapshot.ts";
import { compareMeasurements } from "../../statistics/compare.ts";
import { alphaOfComparison } from "../../statistics/planned-comparisons.ts";
import { adapterOffOf, differencesOf } from "./baseline.ts";
import { rowsOf } from "./commit.ts";
import type { Records } from "./known-records.ts";
import type { Run } from "../run.ts";

/** A snapshot to compare with. */
export interface Baseline {
  readonly snapshot: Snapshot;
  /** The other run that has it; null where it is of this one. */
  readonly earlier: EarlierRun | null;
}

/** What a firing is compared with, and what its comparison with the baseline may spend. */
export interface Look {
  readonly baseline: Baseline | null;
  readonly previous: Snapshot | null;
  /** Null where there is no baseline. */
  readonly alpha: number | null;
}

/**
 * Metrics of rows, and the keys that existing scripts read. Draws from `Math.random` in them (a bootstrap) come from a
 * stream of the firing, beside training too, and so are the same again.
 */
export function resultsOf(evaluation: AnyEvaluation, rows: readonly Row[], firing: string) {
  return withSeededRandom(seedOf(firing, "metrics"), () => {
    const metrics: Readonly<Record<string, Metric<Row>>> = evaluation.metrics(metricKit<Row>());
    const values = summarize(metrics, rows);
    const plain: Readonly<Record<string, Json>> = evaluation.plainKeys?.(values, rows) ?? {};
    return { metrics, values, primary: primaryMetric(metrics), plain };
  });
}

/**
 * The baseline is the start of this phase, of the first phase, or of another run, or what was measured without the
 * adapter; the previous snapshot is the last one before in this phase. Both are of the same id and asked alike. What earlier
 * looks of the phase spent is read from their snapshots.
 */
export function lookOf(run: Run, now: Snapshot, plannedLooks: number | null): Look {
  const { records, options, telling, toldIncomparable, earlier: other } = run;
  const { phase, id, step } = now;
  const measured = (of: string) =>
    records
      .settled(of, id)
      .filter(
        (snapshot) =>
          snapshot.evaluation === now.evaluation &&
          (snapshot.status === "complete" || snapshot.status === "grading" || snapshot.status === "partial"),
      );
  const own = measured(phase).filter((snapshot) => snapshot.step < step);
  const startOf = (of: string) => (of === phase ? own : measured(of)).find(isStart) ?? null;
  // What is measured without the adapter anyway has its start for a baseline.
  const isWithoutAdapter = options.baseline === "adapter_off" && now.on === "model";
  const start =
    other !== null
      ? other.startOf(phase, id)
      : isWithoutAdapter
        ? adapterOffOf(run, id)
        : startOf(options.baseline === "run_start" ? firstPhase(records, now) : phase);
  const earlier = own.filter((snapshot) => differencesOf(snapshot, now).length === 0);
  const isAlike = start !== null && differencesOf(start, now, isWithoutAdapter ? "on" : null).length === 0;
  const isWhole = other === null || start?.status === "complete";
  const baseline = isAlike && isWhole ? { snapshot: start, earlier: other } : null;
  if (start !== null && baseline === null && !toldIncomparable.has(id)) {
    toldIncomparable.add(id);
    telling.warn(
      "comparison",
      `${keyText(now)} is not compared with ${keyText(start)}: ${
        isAlike
          ? `its status is "${start.status}"`
          : "its version, options, tokenizer or model (on) are others"
      }`,
    );
  }
  const spent = own.map(spentBy).filter((alpha) => alpha !== null);
  // A start that is not its own baseline is a look as well.
  const isStartALook =
    step === 0 || own.some((snapshot) => snapshot.step === 0 && spentBy(snapshot) !== null);
  const planned = plannedLooks !== null && isStartALook ? plannedLooks + 1 : plannedLooks;
  const alpha = baseline === null ? null : alphaOfComparison({ spent, planned });
  return { baseline, previous: earlier.at(-1) ?? null, alpha };
}

/** Only a whole measurement is a baseline. */
const isStart = ({ crossed, status }: Snapshot) => crossed.includes("start") && status !== "partial";

const firstPhase = (records: Records, key: SnapshotKey) =>
  records.all().find(({ id }) => id === key.id)?.phase ?? key.phase;

/**
 * What a snapshot's comparison with the baseline spent, or holds back while it is being graded: what the primary metric
 * was given, or what all metrics shared, of which Holm's method gives the least of m a level of 1/m. Null where nothing
 * could be compared.
 */
export function spentBy({ paired }: Snapshot): number | null {
  const levels = Object.values(paired.baseline ?? {}).flatMap(({ alpha }) => (alpha === null ? [] : [alpha]));
  return levels.length === 0 ? null : levels.length * Math.min(...levels);
}

/** Stands in a snapshot whose rows are not graded yet, so that its share of the error is spent once, crash or not. */
export function reservedPaired(
  id: string,
  { baseline, alpha }: Look,
  primary: string | null,
): Snapshot["paired"] {
  if (baseline === null || primary === null) return { baseline: null, previous: null };
  const reserved: Paired = {
    ...placeOf(id, baseline),
    n_pairs: 0,
    delta: null,
    ci95: null,
    test: null,
    p_value: null,
    alpha,
    minimal_detectable_change: null,
    verdict: null,
    exploratory: false,
  };
  return { baseline: { [primary]: reserved }, previous: null };
}

/** Where the snapshot compared with lies, as a comparison tells it. */
function placeOf(
  ofId: string,
  { snapshot, earlier }: Baseline,
): Pick<Paired, "phase" | "step" | "id" | "run"> {
  const { phase, step, id } = snapshot;
  return {
    phase,
    step,
    ...(id !== ofId && { id }),
    ...(earlier !== null && { run: earlier.path }),
  };
}

export async function pairedOf(
  run: Run,
  key: SnapshotKey,
  metrics: Readonly<Record<string, Metric<Row>>>,
  rows: readonly Row[],
  look: Look,
): Promise<Snapshot["paired"]> {
  const { records, seed } = run;
  const { familywise = "primary" } = run.options;
  const primary = primaryMetric(metrics);
  const against = async (then: Baseline | null, alpha: number | null) => {
    if (then === null) return null;
    const { earlier } = then;
    // Gradings of one id run in turn; one without the adapter has another.
    if (earlier === null && then.snapshot.id !== key.id) await run.gradings.get(then.snapshot.id);
    // Since the look was taken, grading may have ended it either way.
    const now = earlier === null ? records.get(then.snapshot) : then.snapshot;
    if (now === null || now.status === "failed" || now.status === "grading") return null;
    let thenRows: readonly Row[];
    try {
      thenRows = await (earlier === null ? rowsOf(run, now) : earlier.rows(now));
    } catch (error) {
      const told = `${keyText(key)} is not compared with ${keyText(now)}, whose rows cannot be read`;
      run.telling.warn("comparison", `${told}: ${errorMessage(error)}`);
      return null;
    }
    const drawn = seedOf(seed, key.phase, key.id, key.step, "compare", now.phase, now.step);
    return withSeededRandom(drawn, () =>
      compareMeasurements(
        metrics,
        rows,
        { rows: thenRows, ...placeOf(key.id, then) },
        { seed: drawn, primary, alpha, familywise },
      ),
    );
  };
  const previous = look.previous && { snapshot: look.previous, earlier: null };
  return { baseline: await against(look.baseline, look.alpha), previous: await against(previous, null) };
}
