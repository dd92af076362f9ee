export type * from "../contracts/run-record.ts";
export { snapshotSchema } from "../contracts/snapshot.ts";

export { snapshotJsonSchema } from "./json-schema.ts";
export { parseSnapshot, parseSnapshotText } from "./parse-snapshot.ts";
export { summarizeReceipt } from "./receipt.ts";
export { undisturbed, whyNotUndisturbed } from "./undisturbed.ts";
export { csvLine, tidyColumns, tidyRows, tidySnapshotRows, type TidyRow } from "./tidy-rows.ts";

export { fileStore, type FileStoreOptions } from "./storage/file-store.ts";
export { fileVerdictCache } from "./storage/file-verdict-cache.ts";
export { readRows } from "./storage/read-rows.ts";
export { readRun } from "./storage/read-run.ts";

export { appendLines, removeTemporaryFiles, writeFileAtomic, type Content } from "./storage/atomic-file.ts";
export {
  errnoOf,
  nodeFiles,
  syncFolder,
  type FileReader,
  type FileSystem,
  type OpenFile,
} from "./storage/file-system.ts";
export { readWriter, type LockHolder, type LockOwner } from "./storage/lock-holder.ts";
export { takeLock, withLock } from "./storage/lock.ts";
export { readIfPresent, readLines, readTextFile } from "./storage/read-file.ts";
export { storeError } from "./storage/store-error.ts";
