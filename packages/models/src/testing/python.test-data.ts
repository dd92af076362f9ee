import { execFileSync } from "node:child_process";
import { resolve } from "node:path";

export const python = process.env["PERIODIC_EVAL_PEERS_PYTHON"] ?? "python3";

/** Names what a comparison needs, for the title of its tests. */
export const needsPython = (modules: string): string =>
  `needs, in PERIODIC_EVAL_PEERS_PYTHON, a Python with ${modules}`;

/** Whether Python is available with these modules. */
export function pythonHas(...modules: readonly string[]): boolean {
  try {
    execFileSync(python, ["-c", `import ${modules.join(", ")}`], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Runs a script of this folder with `work` as JSON on standard input, and returns its output. */
export const askPython = (script: `${string}.py`, work: object): string =>
  execFileSync(python, [resolve(import.meta.dirname, script)], {
    input: JSON.stringify(work),
    encoding: "utf8",
    stdio: "pipe",
    maxBuffer: 2 ** 30,
  });
