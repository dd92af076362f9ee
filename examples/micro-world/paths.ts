import { fileURLToPath } from "node:url";

/** A file of the embedded model's folder, or the folder itself. */
export function world(file = ""): string {
  return fileURLToPath(new URL(`../../packages/cli/assets/micro-world/${file}`, import.meta.url));
}

/** Where an example writes: a folder of its own under `runs/`, or under `PERIODIC_EVAL_RUNS`. */
export function runDir(name: string): string {
  return `${process.env["PERIODIC_EVAL_RUNS"] ?? "runs"}/examples/${name}`;
}

/** `PERIODIC_EVAL_SHORT=1` makes every example a matter of seconds; tests set it. */
export const short = process.env["PERIODIC_EVAL_SHORT"] === "1";

/** Data beside the repository. */
export const shared = (file: string): string => `../shared/data/${file}`;

/** SmolLM2-135M-Instruct, 270 MB, as `../shared/tools/get-smollm2.sh FOLDER` fetches it. */
export const smollm2 = process.env["PERIODIC_EVAL_SMOLLM2"] ?? ".cache/smollm2-135m-instruct";
