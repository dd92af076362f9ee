import { metricKit, primaryMetric, summarize } from "../evaluation/metric-kit.ts";
import type { AnyEvaluation, Metric, Row } from "../evaluation/types.ts";
import { withSeededRandom } from "../guard/randomness.ts";
import type { Json } from "../json.ts";
import { messageOf } from "../message-of.ts";
import { canonicalJson } from "../random/hash.ts";
import { seedOf } from "../random/streams.ts";
import { keyText } from "../snapshots/order.ts";
import type { Paired, Snapshot, SnapshotKey } from "../snapshots/schema.ts";
import { compareLooks } from "../statistics/compare.ts";
import { alphaOfLook } from "../statistics/looks.ts";
import { rowsOf } from "./commit.ts";
import type { Records } from "./known-records.ts";
import type { Run } from "./run.ts";

/** What a firing is compared with, and what its comparison with the baseline may spend. */
export interface Look {
  readonly baseline: Snapshot | null;
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
 * The baseline is the start of this phase (or of the first phase), the previous snapshot the last one before in this
 * phase; both of the same id and asked alike. What earlier looks of the phase spent is read from their snapshots.
 */
export function lookOf(
  {
    records,
    options,
    telling,
    toldIncomparable,
  }: Pick<Run, "records" | "options" | "telling" | "toldIncomparable">,
  now: Snapshot,
  plannedLooks: number | null,
): Look {
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
  const baselinePhase = options.baseline === "run_start" ? firstPhase(records, now) : phase;
  const start = (baselinePhase === phase ? own : measured(baselinePhase)).find(isStart) ?? null;
  const earlier = own.filter((snapshot) => isAskedAlike(snapshot, now));
  const baseline = start !== null && isAskedAlike(start, now) ? start : null;
  if (start !== null && baseline === null && !toldIncomparable.has(id)) {
    toldIncomparable.add(id);
    telling.warn(
      "comparison",
      `${keyText(now)} is not compared with ${keyText(start)}: its version, options, tokenizer or model (on) are others`,
    );
  }
  const spent = own.map(spentBy).filter((alpha) => alpha !== null);
  const alpha = baseline === null ? null : alphaOfLook({ spent, planned: plannedLooks });
  return { baseline, previous: earlier.at(-1) ?? null, alpha };
}

/** Otherwise a verdict would blame training for what was asked another way. */
function isAskedAlike(a: Snapshot, b: Snapshot): boolean {
  return (
    a.evaluation_version === b.evaluation_version &&
    a.on === b.on &&
    a.provenance.tokenizer === b.provenance.tokenizer &&
    canonicalJson(howAsked(a)) === canonicalJson(howAsked(b))
  );
}

/** Provenance without what only chooses or shows items: pairs are made of those that both have. */
function howAsked({ provenance }: Snapshot): Json {
  const { evaluation } = provenance;
  if (typeof evaluation !== "object" || evaluation === null || Array.isArray(evaluation)) return evaluation;
  const { subsample: _, example_prompt: __, ...how } = evaluation as { readonly [key: string]: Json };
  return how;
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
export function reservedPaired({ baseline, alpha }: Look, primary: string | null): Snapshot["paired"] {
  if (baseline === null || primary === null) return { baseline: null, previous: null };
  const reserved: Paired = {
    phase: baseline.phase,
    step: baseline.step,
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
  const against = async (then: Snapshot | null, alpha: number | null) => {
    // Since the look was taken, grading may have ended it either way.
    const now = then === null ? null : records.get(then);
    if (now === null || now.status === "failed" || now.status === "grading") return null;
    let thenRows: readonly Row[];
    try {
      thenRows = await rowsOf(run, now);
    } catch (error) {
      const told = `${keyText(key)} is not compared with ${keyText(now)}, whose rows cannot be read`;
      run.telling.warn("comparison", `${told}: ${messageOf(error)}`);
      return null;
    }
    const drawn = seedOf(seed, key.phase, key.id, key.step, "compare", now.phase, now.step);
    return withSeededRandom(drawn, () =>
      compareLooks(
        metrics,
        rows,
        { rows: thenRows, phase: now.phase, step: now.step },
        { seed: drawn, primary, alpha, familywise },
      ),
    );
  };
  return { baseline: await against(look.baseline, look.alpha), previous: await against(look.previous, null) };
}
