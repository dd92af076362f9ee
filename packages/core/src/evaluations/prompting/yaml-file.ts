import { PeriodicEvalError } from "../../errors.ts";
import { errorMessage } from "../../internal/error-message.ts";

/**
 * What a YAML or JSON file holds, and its text; a key that stands twice in a map is an error.
 *
 * @throws PeriodicEvalError `data` with the line of what is no YAML; of `where` for a file that cannot be read.
 */
export async function readYaml(
  path: string,
  where: string,
): Promise<{ readonly value: unknown; readonly text: string }> {
  const { readTextFile } = await import("../../snapshots/storage/read-file.ts");
  const text = await readTextFile(path, where);
  const { parse } = await import("yaml");
  try {
    return { value: parse(text) as unknown, text };
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "data",
      where: path,
      got: errorMessage(cause).split("\n")[0]!.replace(/:$/, ""),
      expected: "YAML or JSON",
      fix: "Mend the file at that line; texts with a colon, a dash or a hash in them want quotes.",
      cause,
    });
  }
}
