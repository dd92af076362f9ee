import { PeriodicEvalError } from "@periodic-eval/contracts";

/** Returns the error for a file that does not follow the format. */
export function damaged(where: string, got: string, expected: string, cause?: unknown): PeriodicEvalError {
  const fix = "Download or write the file again: it is truncated, damaged or not a safetensors file.";
  return new PeriodicEvalError({ code: "model", where, got, expected, fix, cause });
}

/** Cuts a name for an error message: a file may contain names of any length. */
export function shortName(name: string): string {
  return name.length > 120 ? `${name.slice(0, 120)}…` : name;
}
