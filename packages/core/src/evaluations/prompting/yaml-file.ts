import { PeriodicEvalError } from "../../errors.ts";
import { errorMessage } from "../../internal/error-message.ts";

/**
 * Reads a YAML or JSON file and returns its parsed value and its text. A key that occurs twice in an object is an error.
 *
 * @param where Names the option that holds the path, for the error of an unreadable file.
 * @throws PeriodicEvalError `data`, with the line of the syntax error; the error of `readTextFile` for an unreadable file.
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
      fix: "Correct the file at that line, and quote strings that contain a colon, a dash or a hash.",
      cause,
    });
  }
}
