import { spawn } from "node:child_process";

export interface ChildEnd {
  readonly isKilled: boolean;
  /** From its first word on. */
  readonly milliseconds: number;
}

/**
 * Runs a TypeScript file in a process of its own to its end, or kills it some milliseconds after its first word on stdout,
 * with which it says that it begins.
 *
 * @throws Error with what it complained of, where it fails by itself.
 */
export function runChild(file: string, args: readonly string[], killAfter?: number): Promise<ChildEnd> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--import", "tsx", "-C", "@periodic-eval/source", file, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stderr = "";
    let began = performance.now();
    let timer: NodeJS.Timeout | undefined;
    child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
    child.stdout.once("data", () => {
      began = performance.now();
      if (killAfter !== undefined) timer = setTimeout(() => child.kill("SIGKILL"), killAfter);
    });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      if (signal === null && code !== 0) reject(new Error(stderr));
      else resolve({ isKilled: signal !== null, milliseconds: performance.now() - began });
    });
  });
}
