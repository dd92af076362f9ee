import { existsSync, readdirSync } from "node:fs";

const extension = /\.ya?ml$/;

/** Returns the names of a folder's YAML files without their extensions; an empty array if the folder does not exist. */
export function namesIn(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => extension.test(file))
    .map((file) => file.replace(extension, ""));
}
