import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Returns the compiled file of a TypeScript file. It starts faster than the source; `npm test` builds first. */
export function compiledChild(source: URL): string {
  const root = new URL("../../../", import.meta.url).href;
  return fileURLToPath(source.href.replace(root, `${root}.build/`).replace(/\.ts$/, ".js"));
}

export interface ChildEnd {
  readonly isKilled: boolean;
  /** Duration from its first output on. */
  readonly milliseconds: number;
}

/**
 * Runs a TypeScript or JavaScript file in a child process to its end, or kills it `killAfter` milliseconds after its first output, with which it
 * reports that it begins. With `pauseMs`, stops the process for so long at half that time.
 *
 * @throws Error with its stderr, if it fails.
 */
export function runChild(
  file: string,
  args: readonly string[],
  killAfter?: number,
  pauseMs = 0,
): Promise<ChildEnd> {
  return new Promise((resolve, reject) => {
    const loader = file.endsWith(".ts") ? ["--import", "tsx", "-C", "@periodic-eval/source"] : [];
    const child = spawn(process.execPath, [...loader, file, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stderr = "";
    let began = performance.now();
    let timer: NodeJS.Timeout | undefined;
    child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
    child.stdout.once("data", () => {
      began = performance.now();
      if (killAfter === undefined) return;
      timer = setTimeout(() => child.kill("SIGKILL"), killAfter + pauseMs);
      if (pauseMs === 0) return;
      setTimeout(() => child.kill("SIGSTOP"), killAfter / 2);
      setTimeout(() => child.kill("SIGCONT"), killAfter / 2 + pauseMs);
    });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      if (signal === null && code !== 0) reject(new Error(stderr));
      else resolve({ isKilled: signal !== null, milliseconds: performance.now() - began });
    });
  });
}
