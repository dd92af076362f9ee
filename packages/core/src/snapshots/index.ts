export { fileStore, type FileStoreOptions } from "./file-store.ts";
export { errnoOf, nodeFiles, syncFolder, type FileReader, type FileSystem, type OpenFile } from "./files.ts";
export { snapshotJsonSchema } from "./json-schema.ts";
export type { Layout } from "./layout.ts";
export { keptRows } from "./kept-rows.ts";
export { takeLock, withLock, writerAt, type LockHolder, type LockOwner, type Writer } from "./lock.ts";
export { parseSnapshot, parseSnapshotText } from "./parse-snapshot.ts";
export { readRun, type PhaseRecord, type RunRecord, type Series, type SeriesPoint } from "./read-run.ts";
export { summarizeReceipt, type ReceiptSummary } from "./receipt.ts";
export type { RunProblem } from "./scan.ts";
export { snapshotSchema } from "./schema.ts";
export { csvLine, tidyColumns, tidyLook, tidyRows, type TidyRow } from "./tidy.ts";
export { fileVerdictCache } from "./verdict-files.ts";
export {
  appendLines,
  readIfPresent,
  readLines,
  readTextFile,
  removeDrafts,
  storeError,
  writeWhole,
  type Content,
} from "./whole-file.ts";
