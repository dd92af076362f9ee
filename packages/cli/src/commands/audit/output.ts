import { auditText, type TaskAudit } from "@periodic-eval/tasks";
import type { Colours } from "../../terminal/terminal.ts";

/** Returns the report of an audit in colours. */
export function auditOutput(report: TaskAudit, { bold, dim, magenta, green, yellow, cyan }: Colours): string {
  return auditText(report, {
    title: bold,
    dim,
    special: magenta,
    right: green,
    warning: yellow,
    note: cyan,
    good: green,
  });
}
