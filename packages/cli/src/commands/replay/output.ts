import { formatDelta, formatValue } from "@periodic-eval/dashboard";
import { plainTable } from "../../terminal/plain-table.ts";
import type { Colours } from "../../terminal/terminal.ts";
import { toleranceText, type ReplayResult } from "./run.ts";

const columns = [{ words: "metric" }, "before", "now", "difference", { words: "" }];

export function replayTable({ weights, metrics, otherwise }: ReplayResult, colours: Colours): string {
  const rows = metrics.map(({ name, unit, before, now, isSame }) => [
    name,
    formatValue(before, unit),
    formatValue(now, unit),
    formatDelta(before === null || now === null ? null : now - before, unit),
    isSame ? "same" : "differs",
  ]);
  return [
    plainTable(columns, rows, colours),
    "",
    `measured again from ${weights}; same: ${toleranceText}`,
    ...(otherwise.length === 0 ? [] : [`also changed: ${otherwise.join(", ")}`]),
  ].join("\n");
}

export function replayJson({ snapshot, weights, metrics, otherwise }: ReplayResult): string {
  const { phase, id, step } = snapshot;
  return JSON.stringify(
    {
      phase,
      id,
      step,
      weights,
      same: metrics.every(({ isSame }) => isSame),
      otherwise,
      metrics: Object.fromEntries(
        metrics.map(({ name, before, now, tolerance, isSame }) => [
          name,
          { before, now, tolerance, same: isSame },
        ]),
      ),
    },
    null,
    2,
  );
}
