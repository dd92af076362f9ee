import {
  describePaired,
  formatDelta,
  formatInterval,
  formatValue,
  overPairs,
  missingValueText,
  humanizeName,
} from "../html/format.ts";
import type { MetricSummary } from "../run/phase-summary.ts";
import type { Look, Track } from "./metric-curves.ts";

/** A look's value, and its status where it is not complete: `83.0 % (partial)`, `– (failed)`. */
export function formatLook({ value, status }: Look, unit: string): string {
  return `${formatValue(value, unit)}${status === "complete" ? "" : ` (${status})`}`;
}

/** The change of a metric, and what it is over where that is not all: `+96.9 points over 24 paired items`. */
export function formatChange({
  change,
  isOverPairs,
  unit,
}: Pick<MetricSummary, "change" | "isOverPairs" | "unit">): string {
  const delta = formatDelta(change?.delta, unit);
  return change !== null && isOverPairs ? `${delta} ${overPairs(change)}` : delta;
}

/** What hovering over a point says. */
export function lookTitle(look: Look, { metric, unit }: Track): string {
  const at = `${look.phase}, step ${look.step}${look.pct === null ? "" : ` (${Math.round(look.pct)} %)`}`;
  const lines = [
    at,
    `${humanizeName(metric)} ${formatValue(look.value, unit)} ${look.ci95 ? formatInterval(look.ci95, unit) : ""}`.trim(),
    `n = ${look.n ?? missingValueText}${look.status === "complete" ? "" : `, ${look.status}`}`,
  ];
  return [...lines, ...(look.baseline ? [describePaired(look.baseline, unit)] : [])].join("\n");
}

/** What a chart shows, in one sentence per phase. */
export function trackDescription({ metric, unit, looks }: Track): string {
  const phases = [...new Set(looks.map(({ phase }) => phase))];
  const sentences = phases.flatMap((phase) => {
    const seen = looks.filter((look) => look.phase === phase && look.value !== null);
    const [first, last] = [seen.at(0), seen.at(-1)];
    if (!first || !last) return [];
    const verdict = last.baseline?.verdict ? `, ${last.baseline.verdict}` : "";
    return [
      `in ${phase} from ${formatValue(first.value, unit)} to ${formatValue(last.value, unit)}${verdict}`,
    ];
  });
  return `${humanizeName(metric)} with 95 % intervals: ${sentences.join("; ")}.`;
}
