export { snapshotJsonSchema } from "./snapshots/parse-snapshot.ts";
export { parseSnapshot, parseSnapshotText } from "./snapshots/parse-snapshot.ts";
export { isVoid, voidReason, warningsOf } from "./snapshots/warnings.ts";
export { differencesOf } from "./snapshots/pairing.ts";
export { isOfCheckpoint, undisturbed, whyNotUndisturbed } from "./snapshots/undisturbed.ts";
export { summarizeReceipt } from "./snapshots/read-run.ts";
export { csvLine, tidyColumns, tidyRows, tidySnapshotRows, type TidyRow } from "./snapshots/tidy-rows.ts";

export { fileStore, type FileStoreOptions } from "./snapshots/file-store.ts";
export { fileVerdictCache } from "./snapshots/file-verdict-cache.ts";
export { checkRows, parseVerified, readRows } from "./snapshots/snapshot-file.ts";
export { readRun } from "./snapshots/read-run.ts";
export type { InspectOptions } from "./snapshots/scan-snapshots.ts";

export {
  appendLines,
  makeFolder,
  removeTemporaryFiles,
  writeFileAtomic,
  type Content,
} from "./files/atomic-file.ts";
export {
  filesIn,
  putBackFolders,
  removeLeftovers,
  removeWholeFolder,
  writeWholeFolder,
} from "./files/whole-folder.ts";
export { removeRunLeftovers } from "./files/run-leftovers.ts";
export {
  checkWritable,
  errnoOf,
  makeFolderSync,
  nodeFiles,
  syncFolder,
  type FileReader,
  type FileSystem,
  type OpenFile,
} from "./files/file-system.ts";
export { samplesPath } from "./snapshots/layout.ts";
export { hashFiles, hashWeightFiles } from "./files/hash-files.ts";
export { writeOnce } from "./files/write-once.ts";
export { declarePhases } from "./snapshots/closings.ts";
export { checkFolder } from "./files/held-folders.ts";
export type { Lease } from "./lock/lease.ts";
export { readWriter, takeLock, withLock, type TakeOptions } from "./lock/lock.ts";
export { stateOfProcess, thisProcess, type LockHolder, type LockOwner } from "./lock/lock-owner.ts";
export { readIfPresent, readLines, readTextFile } from "./files/read-file.ts";
export { storeError } from "./files/file-system.ts";
export { unreadable } from "./files/read-file.ts";
export { invalidUtf8, utf8Text } from "./files/utf8.ts";
export { abortable } from "./process/abortable.ts";
export { availableMemory } from "./process/available-memory.ts";
export { endingSignals, exitCodeOf, onEndingSignal, type EndingSignal } from "./process/ending-signals.ts";
export { isRunning } from "./process/is-running.ts";
export { limitedTime, type TimeLimits } from "./process/limited-time.ts";
export { resolvesWithin, startTimeout } from "./process/timeout.ts";
export { workingSeconds } from "./process/working-clock.ts";
export { readEarlierRun, type EarlierRun } from "./snapshots/earlier-run.ts";
export { otherItems } from "./snapshots/pairing.ts";
export { inRunOrder, keyText, keysOfSteps } from "./snapshots/run-order.ts";
export { checkpointEvidence, isOnlyEdges, isWithinGrace, overheadOf } from "./snapshots/undisturbed.ts";
export { addWarnings } from "./snapshots/warnings.ts";
