import { dataError } from "@periodic-eval/contracts/options";
import type { ParquetOptions, ParquetRow } from "./parquet-process.ts";

/** Takes the place of `decodeParquet` in browsers, which cannot decode a damaged file in a process of its own. */
export async function* decodeParquet(
  _path: string,
  name: string,
  _options?: ParquetOptions,
): AsyncGenerator<ParquetRow, void> {
  yield* [];
  throw dataError(name, "a Parquet file in a browser", "JSON Lines", "Convert the file to JSON Lines.");
}
