import type { RunRecord } from "./read-run.ts";
import type { Snapshot } from "../../contracts/snapshot.ts";

/** One value of one metric at one look of one run: the row of a tidy table. */
export interface TidyRow {
  readonly run: string;
  readonly seed: string;
  /** What the run stands for among others; null where it was not told. */
  readonly condition: string | null;
  readonly phase: string;
  readonly step: number;
  readonly run_step: number;
  /** Percent of the phase; null where its length was not known. */
  readonly pct: number | null;
  /** The callback's id. */
  readonly id: string;
  readonly evaluation: string;
  readonly status: Snapshot["status"];
  readonly metric: string;
  /** Of a metric's group: the persona where it is one; else null. */
  readonly persona: string | null;
  /** Of a metric's group that is no persona: its name; else null. */
  readonly group: string | null;
  readonly value: number | null;
  /** The 95 % interval. */
  readonly lo: number | null;
  readonly hi: number | null;
  readonly n: number;
  readonly unit: string;
  /**
   * This minus the baseline, over the items that both observed; not `value` minus the baseline's where their items are not the
   * same. Null where there is no comparison; so are its 95 % interval and the number of items.
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

/** Every metric of every snapshot of a run, by phase, step and id; snapshots without metrics have no rows. */
export function tidyRows(run: RunRecord, condition: string | null): readonly TidyRow[] {
  return run.phases
    .flatMap(({ snapshots }) => snapshots)
    .flatMap((snapshot) => {
      const { seed } = snapshot.provenance;
      return tidyLook(snapshot).map((row) => ({ run: run.runDir, seed, condition, ...row }));
    });
}

/** The part of a tidy row that its snapshot tells. */
export type TidyLookRow = Omit<TidyRow, "run" | "seed" | "condition">;

/** Every metric of one snapshot. */
export function tidyLook(snapshot: Snapshot): readonly TidyLookRow[] {
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

/** One line of a CSV table (RFC 4180) without its end; empty for null. */
export const csvLine = (cells: readonly (string | number | null)[]): string => cells.map(csvCell).join(",");

function csvCell(value: string | number | null): string {
  const text = value === null ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** `leakage_rate/doctor` → `leakage_rate` and `doctor`. */
function splitName(name: string): { readonly metric: string; readonly group: string | null } {
  const at = name.indexOf("/");
  return at === -1 ? { metric: name, group: null } : { metric: name.slice(0, at), group: name.slice(at + 1) };
}

/** Ids of the personas that an evaluation says it asked (`personas` of its provenance). */
function personasOf({ provenance: { evaluation } }: Snapshot): ReadonlySet<string> {
  const told = (evaluation as { readonly personas?: unknown } | null)?.personas;
  if (!Array.isArray(told)) return new Set();
  const ids = told.map((one: unknown) =>
    typeof one === "string" ? one : (one as { id?: unknown } | null)?.id,
  );
  return new Set(ids.filter((id) => typeof id === "string"));
}
