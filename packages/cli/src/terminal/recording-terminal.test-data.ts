import pc from "picocolors";
import type { Terminal } from "./terminal.ts";

/** A non-interactive terminal that records what a command prints, in order. */
export function recordingTerminal(): Terminal & { readonly outputs: string[]; readonly errors: string[] } {
  const [outputs, errors]: [string[], string[]] = [[], []];
  return {
    outputs,
    errors,
    out: (text) => void outputs.push(text),
    err: (text) => void errors.push(text),
    isInteractive: false,
    colours: pc.createColors(false),
  };
}
