import pc from "picocolors";
import type { Terminal } from "./terminal.ts";

/** A terminal that nobody watches and that keeps what it was told, in order. */
export function keptTerminal(): Terminal & { readonly said: string[]; readonly complained: string[] } {
  const [said, complained]: [string[], string[]] = [[], []];
  return {
    said,
    complained,
    out: (text) => void said.push(text),
    err: (text) => void complained.push(text),
    isInteractive: false,
    colours: pc.createColors(false),
  };
}
