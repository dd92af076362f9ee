import { execFileSync } from "node:child_process";
import { resolve } from "node:path";

const python = process.env["PERIODIC_EVAL_PEERS_PYTHON"] ?? "python3";

/** Whether Python is available with these modules of reference implementations. */
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
  });
