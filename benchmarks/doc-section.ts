import { existsSync, readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { cpus } from "node:os";

/**
 * Replaces what stands between `<!-- NAME -->` and `<!-- /NAME -->` in a Markdown file.
 *
 * @throws Error if the file lacks one of the markers.
 */
export async function writeSection(file: string, name: string, content: string): Promise<void> {
  const text = await readFile(file, "utf8");
  const [opening, closing] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const [begin, end] = [text.indexOf(opening), text.indexOf(closing)];
  if (begin === -1 || end < begin)
    throw new Error(
      `${file}: got no section ${name}, expected ${opening} before ${closing}. Add both lines.`,
    );
  await writeFile(file, `${text.slice(0, begin)}${opening}\n\n${content}\n\n${text.slice(end)}`);
}

/** Returns a table as Markdown; the first row is its head. */
export function markdownTable(rows: readonly (readonly string[])[]): string {
  const [head, ...body] = rows.map((cells) => `| ${cells.join(" | ")} |`);
  return [head!, `|${"---|".repeat(rows[0]!.length)}`, ...body].join("\n");
}

/** Returns the cores, the version of Node.js and the backend that a benchmark ran on. */
export const machineLine = (backend: string): string =>
  `${cpus().length} cores of ${cpus()[0]?.model.trim() ?? "an unknown CPU"}${vectorInstructions()}, Node ${process.versions.node}, ${backend}`;

/** Names the widest vector instructions of an x86 CPU on Linux: CPUs of one model name differ in them, and in speed by half. */
function vectorInstructions(): string {
  const file = "/proc/cpuinfo";
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  return / avx512f /.test(text) ? " with AVX-512" : / avx2 /.test(text) ? " with AVX2" : "";
}
