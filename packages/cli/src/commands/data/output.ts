import { plainTable } from "../../terminal/plain-table.ts";
import type { Colours } from "../../terminal/terminal.ts";
import type { Download, ListedDataset } from "./run.ts";

const columns = [
  { words: "name" },
  { words: "source" },
  "rows",
  "examples",
  { words: "licence" },
  { words: "read by" },
  { words: "cached" },
  { words: "where" },
];

export const datasetsTable = (listed: readonly ListedDataset[], colours: Colours): string =>
  plainTable(
    columns,
    listed.map(({ name, source, documents, examples, licence, usedBy, files, cachedFiles, folder }) => [
      name,
      source,
      count(documents),
      examples === 0 ? "–" : count(examples),
      licence,
      usedBy.join(", "),
      cachedFiles === 0
        ? "no"
        : cachedFiles === files.length
          ? "yes"
          : `${cachedFiles} of ${files.length} files`,
      folder ?? "–",
    ]),
    colours,
  );

export const datasetsJson = (listed: readonly ListedDataset[]): string =>
  JSON.stringify(
    listed.map(({ usedBy, cachedFiles, files, ...dataset }) => ({
      ...dataset,
      used_by: usedBy,
      files: files.length,
      cached_files: cachedFiles,
    })),
    null,
    2,
  );

/** Files that are listed one by one. */
const listedFiles = 4;

export function downloadText({ name, licence, files }: Download): string {
  const rows = files.reduce((sum, one) => sum + one.rows, 0);
  const first = `${name}: ${count(rows)} rows${licence === null ? "" : `, ${licence}`}`;
  const shown = files.slice(0, listedFiles).map((one) => `${one.path}  ${count(one.rows)} rows`);
  const rest = files.length - shown.length;
  return [first, ...shown, ...(rest > 0 ? [`and ${rest} more: --json`] : [])].join("\n");
}

export const downloadJson = (download: Download): string => JSON.stringify(download, null, 2);

const count = (value: number): string => value.toLocaleString("en");
