import type { LockOwner } from "@periodic-eval/store";

/** A process that has ended. */
export const theDead: LockOwner = {
  pid: 4_194_305,
  host: "here",
  processStart: null,
  system: "here",
  renewMilliseconds: null,
  nextCheck: async () => undefined,
  stateOf: () => "ended",
};

/** A process that finds the locks of the dead one. */
export const theLiving: LockOwner = { ...theDead, pid: 4_194_306 };
