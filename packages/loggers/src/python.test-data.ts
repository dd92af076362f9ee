import { execFileSync } from "node:child_process";

export const python = process.env["PERIODIC_EVAL_PEERS_PYTHON"] ?? "python3";

/** Whether Python is installed with this module. */
export function pythonHas(module: string): boolean {
  try {
    execFileSync(
      python,
      ["-c", `import importlib.util as u, sys; sys.exit(u.find_spec("${module}") is None)`],
      {
        stdio: "ignore",
      },
    );
    return true;
  } catch {
    return false;
  }
}
