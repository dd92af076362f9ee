import { PeriodicEvalError } from "@periodic-eval/core";

/** A file that is not as the format says. */
export function damaged(where: string, got: string, expected: string, cause?: unknown): PeriodicEvalError {
  const fix = "Fetch or write the file anew: it is cut short, damaged or no safetensors file.";
  return new PeriodicEvalError({ code: "model", where, got, expected, fix, cause });
}

/** A value of a file as an error shows it: short, whatever the file holds. */
export function shown(value: unknown): string {
  return cut(JSON.stringify(value) ?? "nothing");
}

export function cut(text: string): string {
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}
