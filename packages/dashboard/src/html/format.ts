import { isRecord, errorMessage } from "@periodic-eval/contracts/options";
import type { Paired, Json } from "@periodic-eval/core";
import {
  formatDelta,
  formatInterval,
  formatP,
  formatValue,
  missingValueText,
  humanizeName,
} from "@periodic-eval/core/statistics";

export { formatDelta, formatInterval, formatP, formatValue, humanizeName, missingValueText };

/** Returns the factor from a value to the displayed number: 100 for shares, which are shown in percent. */
export const scaleOf = (unit: string): number => (unit === "share" ? 100 : 1);

/** Formats a duration. Rounds before splitting into units: 119.6 s is `2 min 0 s`, not `1 min 60 s`. */
export function formatSeconds(seconds: number | null): string {
  if (seconds === null) return missingValueText;
  if (seconds < 9.995) return `${seconds.toFixed(2)} s`;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const rounded = Math.round(seconds);
  if (rounded < 3600) return `${Math.floor(rounded / 60)} min ${rounded % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function formatPercent(percent: number | null): string {
  return percent === null
    ? missingValueText
    : `${percent < 0.1 && percent > 0 ? percent.toFixed(3) : percent.toFixed(1)} %`;
}

/** Formats `2026-01-05T10:20:30.123Z` as `2026-01-05 10:20:30 UTC`. Returns other strings unchanged. */
export function formatTime(iso: string): string {
  const parts = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z$/.exec(iso);
  return parts ? `${parts[1]} ${parts[2]} UTC` : iso;
}

/** Formats a number of any size in about six characters: `3.122`, `29000`, `1.56e12`, `1.0e-5`. */
export function formatNumber(value: number): string {
  const size = Math.abs(value);
  if (value === 0 || (size >= 1e-3 && size < 1e6)) return String(Number(value.toPrecision(4)));
  return value.toExponential(2).replace("0e", "e").replace("e+", "e");
}

export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Returns `over 96 paired items`: the items that both measurements observed. */
export const overPairs = ({ n_pairs: pairs }: Paired): string => `over ${plural(pairs, "paired item")}`;

/** Describes a comparison in one line, for a tooltip. */
export function describePaired(paired: Paired, unit: string): string {
  const facts = [
    [
      formatDelta(paired.delta, unit),
      ...(paired.ci95 ? [formatInterval(paired.ci95, unit)] : []),
      overPairs(paired),
    ].join(" "),
    paired.p_value === null ? null : formatP(paired.p_value),
    paired.verdict,
    paired.exploratory ? "exploratory" : null,
  ];
  return `against ${placeOf(paired)}: ${facts.filter((fact) => fact !== null).join(", ")}`;
}

/** Names the measurement that a comparison uses as its baseline: `em step 0 of capability.adapter_off`. */
export const placeOf = ({ phase, step, id, run }: Paired): string =>
  [
    `${phase} step ${step}`,
    ...(id === undefined ? [] : [id]),
    ...(run === undefined ? [] : [`the run ${run}`]),
  ].join(" of ");

export const isMap = (value: Json | undefined): value is { readonly [key: string]: Json } => isRecord(value);

/** Returns the value of an own key. Keys come from files, which may contain one named `constructor`. */
export const ownValue = <T>(map: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(map, key) ? map[key] : undefined;

/** Returns a string field of a JSON object, or null. */
export function jsonField(json: Json | undefined, key: string): string | null {
  const value = isMap(json) ? ownValue(json, key) : null;
  return typeof value === "string" ? value : null;
}

/** Returns the message of an error for a page, without the prefix that names this package in a terminal. */
export const problemText = (error: unknown): string => errorMessage(error).replace(/^\[periodic-eval\] /, "");
