export { watchCheckpoints, type Checkpoint, type WatchOptions } from "./watch-checkpoints.ts";
