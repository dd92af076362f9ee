import { type ParseText, placed } from "@periodic-eval/data";
import { dataError, errorMessage } from "@periodic-eval/contracts/options";

/** Parses RFC 4180 CSV with a header; all values are strings. */
export const parseCsv: ParseText = async (text, file) => {
  const { CsvError, parse } = await import("csv-parse/sync");
  let records: readonly { readonly record: unknown; readonly info: { readonly lines: number } }[];
  let header: readonly string[] = [];
  const columns = (names: readonly string[]) => {
    header = names;
    return [...names];
  };
  try {
    records = parse(text, { columns, skip_empty_lines: true, info: true });
  } catch (cause) {
    const line = cause instanceof CsvError ? `:${String(cause["lines"])}` : "";
    const fix = "Close its quotes, and write as many fields as the header has.";
    throw dataError(`${file}${line}`, errorMessage(cause), "a record of a CSV file", fix, cause);
  }
  const seen = new Set<string>();
  const twice = header.find((name) => seen.size === seen.add(name).size);
  if (twice !== undefined)
    throw dataError(
      `${file}:1`,
      `the column ${JSON.stringify(twice)} twice`,
      "columns that differ",
      "Rename one of them.",
    );
  return records.map(({ record, info }) => placed(`${file}:${info.lines}`, record));
};
