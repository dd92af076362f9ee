import { execFileSync } from "node:child_process";
import { resolve } from "node:path";

const python = process.env["PERIODIC_EVAL_PEERS_PYTHON"] ?? "python3";

/** Whether there is a Python with these modules to ask for a reference implementation's numbers. For tests. */
export function pythonHas(...modules: readonly string[]): boolean {
  try {
    execFileSync(python, ["-c", `import ${modules.join(", ")}`], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** What a script of this folder prints, which reads its work from standard input. */
export const askPython = (script: `${string}.py`, work: object): string =>
  execFileSync(python, [resolve(import.meta.dirname, script)], {
    input: JSON.stringify(work),
    encoding: "utf8",
    stdio: "pipe",
  });
