import { fileURLToPath } from "node:url";

/** The embedded model's folder, or a file in it: a small world of facts that a small model knows. */
export function microWorld(file = ""): string {
  return fileURLToPath(new URL(`../../assets/micro-world/${file}`, import.meta.url));
}
