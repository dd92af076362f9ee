import { formatInterval, formatSeconds, formatValue } from "@periodic-eval/dashboard";
import type { CapabilityResult } from "./capability.ts";
import { plainTable } from "../../terminal/plain-table.ts";
import type { Colours } from "../../terminal/terminal.ts";

/** Returns a table with one row per method. */
export function capabilityTable(results: readonly CapabilityResult[], colours: Colours): string {
  const rows = results.map(({ method, engine, snapshot }) => {
    const { accuracy, gold_prob: gold } = snapshot.metrics;
    return [
      method,
      formatValue(accuracy?.value, "share"),
      formatInterval(accuracy?.ci95, "share"),
      count(snapshot["total"]),
      formatValue(gold?.value, "probability"),
      count(snapshot["truncated"]),
      count(snapshot["template_failures"]),
      count(snapshot["label_collisions"]),
      formatSeconds(snapshot.timing.measure_seconds),
      engine,
    ];
  });
  return plainTable(columns, rows, colours);
}

const columns = [
  { words: "method" },
  "accuracy",
  "95 % interval",
  "n",
  "p(gold)",
  "truncated",
  "template failures",
  "label collisions",
  "time",
  { words: "engine" },
];

export function capabilityJson(results: readonly CapabilityResult[]): string {
  return JSON.stringify(
    results.map(({ method, snapshot }) => ({ method, ...snapshot })),
    null,
    2,
  );
}

const count = (value: unknown): string => (typeof value === "number" ? String(value) : "–");
