import { fileURLToPath } from "node:url";

/** Returns the folder of the embedded model (a tiny model of a small world of facts), or the path of one of its files. */
export function microWorld(file = ""): string {
  return fileURLToPath(new URL(`../../assets/micro-world/${file}`, import.meta.url));
}
