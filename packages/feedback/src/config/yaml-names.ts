import { existsSync, readdirSync } from "node:fs";

const ending = /\.ya?ml$/;

/** Returns the names of the YAML files of a folder, without their endings. Empty if the folder does not exist. */
export function namesIn(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => ending.test(file))
    .map((file) => file.replace(ending, ""));
}
