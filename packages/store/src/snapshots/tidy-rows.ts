import type { RunRecord, Snapshot } from "@periodic-eval/contracts";

/** A row of a tidy table: one metric of one measurement of one run. */
export interface TidyRow {
  readonly run: string;
  readonly seed: string;
  /** The experimental condition of the run; null if none was given. */
  readonly condition: string | null;
  readonly phase: string;
  readonly step: number;
  readonly run_step: number;
  /** Percent of the phase; null if its length was unknown. */
  readonly pct: number | null;
  /** The callback's id. */
  readonly id: string;
  readonly evaluation: string;
  readonly status: Snapshot["status"];
  readonly metric: string;
  /** The persona, if the metric is about a group that is one; else null. */
  readonly persona: string | null;
  /** The name of the group, if the metric is about a group that is not a persona; else null. */
  readonly group: string | null;
  readonly value: number | null;
  /** Limits of the 95 % interval. */
  readonly lo: number | null;
  readonly hi: number | null;
  readonly n: number;
  readonly unit: string;
  /**
   * This measurement minus the baseline, over the items that both observed. It differs from `value` minus the baseline's
   * `value` if their items differ. Null without a comparison, as are its 95 % interval and its number of items.
   */
  readonly delta: number | null;
  readonly delta_lo: number | null;
  readonly delta_hi: number | null;
  readonly n_pairs: number | null;
}

/** The columns of a tidy table, in order. */
export const tidyColumns = [
  "run",
  "seed",
  "condition",
  "phase",
  "step",
  "run_step",
  "pct",
  "id",
  "evaluation",
  "status",
  "metric",
  "persona",
  "group",
  "value",
  "lo",
  "hi",
  "n",
  "unit",
  "delta",
  "delta_lo",
  "delta_hi",
  "n_pairs",
] as const satisfies readonly (keyof TidyRow)[];

/** Returns the rows of all snapshots of a run, by phase, step and id. Snapshots without metrics have no rows. */
export function tidyRows(run: RunRecord, condition: string | null): readonly TidyRow[] {
  return run.phases
    .flatMap(({ snapshots }) => snapshots)
    .flatMap((snapshot) => {
      const { seed } = snapshot.provenance;
      return tidySnapshotRows(snapshot).map((row) => ({ run: run.runDir, seed, condition, ...row }));
    });
}

/** The columns of a tidy row that its snapshot contains. */
export type TidySnapshotRow = Omit<TidyRow, "run" | "seed" | "condition">;

/** Returns one row per metric of a snapshot. */
export function tidySnapshotRows(snapshot: Snapshot): readonly TidySnapshotRow[] {
  const personas = personasOf(snapshot);
  return Object.entries(snapshot.metrics).map(([name, { value, ci95, n, unit }]) => {
    const { metric, group } = splitName(name);
    const change = snapshot.paired.baseline?.[name];
    const isPersona = group !== null && personas.has(group);
    return {
      phase: snapshot.phase,
      step: snapshot.step,
      run_step: snapshot.run_step,
      pct: snapshot.pct,
      id: snapshot.id,
      evaluation: snapshot.evaluation,
      status: snapshot.status,
      metric,
      persona: isPersona ? group : null,
      group: isPersona ? null : group,
      value,
      lo: ci95?.[0] ?? null,
      hi: ci95?.[1] ?? null,
      n,
      unit,
      delta: change?.delta ?? null,
      delta_lo: change?.ci95?.[0] ?? null,
      delta_hi: change?.ci95?.[1] ?? null,
      n_pairs: change?.n_pairs ?? null,
    };
  });
}

/** Returns a line of a CSV table (RFC 4180) without its line end. A null cell is empty. */
export const csvLine = (cells: readonly (string | number | null)[]): string => cells.map(csvCell).join(",");

function csvCell(value: string | number | null): string {
  // A spreadsheet runs a string that begins like a formula.
  const isFormula = typeof value === "string" && /^[=+\-@\t\r]/.test(value);
  const text = isFormula ? `'${value}` : String(value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Splits `leakage_rate/doctor` into `leakage_rate` and `doctor`. */
function splitName(name: string): { readonly metric: string; readonly group: string | null } {
  const at = name.indexOf("/");
  return at === -1 ? { metric: name, group: null } : { metric: name.slice(0, at), group: name.slice(at + 1) };
}

/** Returns the ids of the personas that the evaluation used, from `personas` in its provenance. */
function personasOf({ provenance: { evaluation } }: Snapshot): ReadonlySet<string> {
  const personas = (evaluation as { readonly personas?: unknown } | null)?.personas;
  if (!Array.isArray(personas)) return new Set();
  const ids = personas.map((persona: unknown) =>
    typeof persona === "string" ? persona : (persona as { id?: unknown } | null)?.id,
  );
  return new Set(ids.filter((id) => typeof id === "string"));
}
