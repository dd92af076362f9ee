import { gunzip } from "@periodic-eval/store/platform";
import { dataError, errorMessage } from "@periodic-eval/contracts/options";

/** The first bytes of files that are no text, with their names and remedies. */
const refused: readonly (readonly [bytes: string, name: string, fix: string])[] = [
  ["PAR1", "a Parquet file with another ending", "Let its name end in .parquet."],
  ["ARROW1", "an Arrow file", "Write Parquet or JSON Lines: datasets.Dataset.from_file(path).to_parquet(…)."],
  ["PK\u0003\u0004", "a zip archive", "Unpack it, or compress the rows with gzip."],
  [
    "\u0028\u00b5\u002f\u00fd",
    "a file compressed with zstd",
    "Decompress it with `zstd -d`, or compress it with gzip.",
  ],
  ["BZh", "a file compressed with bzip2", "Decompress it with `bunzip2`, or compress it with gzip."],
  ["\u00fd7zXZ\u0000", "a file compressed with xz", "Decompress it with `unxz`, or compress it with gzip."],
  [
    "\u0004\u0022\u004d\u0018",
    "a file compressed with lz4",
    "Decompress it with `lz4 -d`, or compress it with gzip.",
  ],
];

/**
 * Returns the content of a text file, decompressed if it is a gzip file, by its first bytes as in `datasets`.
 *
 * @param chunks The bytes of the file.
 * @param name Names the file in errors.
 * @throws PeriodicEvalError `data` for a file of another format that is known, and for damaged gzip data.
 */
export async function* unpack(
  chunks: AsyncIterable<Uint8Array>,
  name: string,
): AsyncGenerator<Uint8Array, void> {
  const iterator = chunks[Symbol.asyncIterator]();
  try {
    const first = await iterator.next();
    if (first.done === true) return;
    const head = String.fromCharCode(...first.value.subarray(0, 8));
    const known = refused.find(([bytes]) => head.startsWith(bytes));
    if (known !== undefined)
      throw dataError(
        name,
        known[1],
        "JSON, JSON Lines or Parquet, or one of the text formats in gzip",
        known[2],
      );
    const all = chain(first.value, iterator);
    yield* head.startsWith("\u001f\u008b") ? gunzip(all) : all;
  } catch (cause) {
    if (!String((cause as { readonly code?: unknown }).code).startsWith("Z_")) throw cause;
    const got = `gzip data that is damaged or cut off (${errorMessage(cause)})`;
    throw dataError(name, got, "a complete gzip file", "Copy or compress the file again.", cause);
  } finally {
    await iterator.return?.();
  }
}

async function* chain(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  yield first;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
}
