import type { RunRecord } from "@periodic-eval/contracts";
import { summarizePhases } from "./phase-summary.ts";

/** Returns the phases of a run as JSON, with each metric at the start and at the end. */
export const phaseData = (run: RunRecord) =>
  summarizePhases(run).map(({ phase, metrics }) => ({
    name: phase.name,
    max_steps: phase.maxSteps,
    state: phase.state,
    closed_at_step: phase.closedAt,
    snapshots: phase.snapshots.length,
    evaluation_seconds: phase.evaluationSeconds,
    overhead_percent: phase.overheadPercent,
    metrics: metrics.map(({ id, metric, unit, isPrimary, start, end, change, against, ...judged }) => ({
      id,
      metric,
      unit,
      primary: isPrimary,
      cannot_be_judged: judged.voidReason,
      warnings: judged.warnings,
      start: start.value,
      start_step: start.step,
      start_status: start.status,
      end: end.value,
      end_step: end.step,
      end_status: end.status,
      delta: change?.delta ?? null,
      ci95: change?.ci95 ?? null,
      n_pairs: change?.n_pairs ?? null,
      p_value: change?.p_value ?? null,
      verdict: change?.verdict ?? null,
      against,
    })),
  }));
