import { PeriodicEvalError } from "@periodic-eval/core";
import { writeFileAtomic } from "@periodic-eval/core/snapshots";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { trainingTemplate } from "./template.ts";

/** The schema that the build writes into the package. */
const schemaPath = fileURLToPath(new URL("../../../dist/train.schema.json", import.meta.url));

/**
 * Writes a commented training file.
 *
 * @param force Replaces a file that exists.
 * @throws PeriodicEvalError `config` for a file that exists, or a path that is a folder or no YAML file.
 */
export async function writeTemplate(file: string, force: boolean): Promise<void> {
  const refuse = (got: string, expected: string, fix: string) =>
    new PeriodicEvalError({ code: "config", where: file, path: ["file"], got, expected, fix });
  if (!/\.ya?ml$/.test(file))
    throw refuse("a name that does not end in .yaml", "a YAML file", "Write train.yaml, for example.");
  if (existsSync(file) && !force)
    throw refuse("a file that exists", "a new file", "Choose another name, or pass --force to replace it.");
  const folder = dirname(resolve(file));
  await mkdir(folder, { recursive: true });
  const schema = relative(folder, schemaPath).split(sep).join("/");
  await writeFileAtomic(file, trainingTemplate(schema.startsWith(".") ? schema : `./${schema}`));
}
