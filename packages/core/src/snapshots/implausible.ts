import type { MetricValue, Paired, Snapshot } from "../contracts/snapshot.ts";

/** A value of a snapshot that contradicts another one. */
export interface Contradiction {
  readonly got: string;
  readonly expected: string;
}

/** Returns the values of a snapshot that cannot be true, in the order of the file. Unknown values are plausible. */
export function contradictionsOf(snapshot: Snapshot): readonly Contradiction[] {
  return [
    ...Object.entries(snapshot.metrics).flatMap(([name, metric]) => ofMetric(name, metric)),
    ...Object.entries(snapshot.paired).flatMap(([to, comparisons]) =>
      Object.entries(comparisons ?? {}).flatMap(([name, paired]) => ofChange(name, to, paired)),
    ),
    ...ofCounts(snapshot),
  ];
}

function ofChange(name: string, to: string, { delta, ci95, p_value }: Paired): readonly Contradiction[] {
  const found: Contradiction[] = [];
  if (delta !== null && ci95 !== null && !isWithin(delta, ci95))
    found.push({
      got: `a change of ${name} from its ${to} of ${delta}`,
      expected: `a change in its interval, ${ci95[0]} to ${ci95[1]}`,
    });
  if (p_value !== null && !isWithin(p_value, [0, 1]))
    found.push({ got: `a p-value of ${name} of ${p_value}`, expected: "a value from 0 to 1" });
  return found;
}

function ofMetric(name: string, { value, ci95, range, stderr }: MetricValue): readonly Contradiction[] {
  const found: Contradiction[] = [];
  if (stderr !== null && stderr < 0)
    found.push({ got: `a standard error of ${stderr} of ${name}`, expected: "0 or more" });
  if (ci95 !== null && ci95[0] > ci95[1])
    found.push({ got: `an interval of ${name} from ${ci95[0]} to ${ci95[1]}`, expected: "ascending bounds" });
  if (value === null) return found;
  if (ci95 !== null && !isWithin(value, ci95))
    found.push({ got: `${name} ${value}`, expected: `a value in its interval, ${ci95[0]} to ${ci95[1]}` });
  const [least, most] = range ?? [null, null];
  if (!isWithin(value, [least ?? -Infinity, most ?? Infinity]))
    found.push({
      got: `${name} ${value}`,
      expected: `a value in its range, ${least ?? "−∞"} to ${most ?? "∞"}`,
    });
  return found;
}

/** Checks the plain keys of capability, which other scripts read. */
function ofCounts(snapshot: Snapshot): readonly Contradiction[] {
  const { correct, total, accuracy } = snapshot;
  if (typeof correct !== "number" || typeof total !== "number") return [];
  if (correct < 0 || total < 0 || correct > total)
    return [{ got: `${correct} correct of ${total}`, expected: "0 to all of them" }];
  const isSame = typeof accuracy !== "number" || total === 0 || Math.abs(accuracy - correct / total) <= 1e-9;
  return isSame ? [] : [{ got: `accuracy ${accuracy}`, expected: `${correct} of ${total}` }];
}

/** Float32 log-probabilities are often slightly beyond a bound. */
function isWithin(value: number, [low, high]: readonly [number, number]): boolean {
  const span = high - low;
  const rounding = 1e-3 * (Number.isFinite(span) ? span : Math.max(1, Math.abs(value))) + 1e-12;
  return value >= low - rounding && value <= high + rounding;
}
