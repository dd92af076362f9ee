import { expect, it, vi } from "vitest";
import { pausedSeconds } from "./pauses.ts";

vi.mock("node:worker_threads", () => ({
  Worker: class {
    constructor() {
      throw Object.assign(new Error("Access to this API has been restricted"), { code: "ERR_ACCESS_DENIED" });
    }
  },
}));

it("sees no pauses where Node allows no threads", () => {
  expect(pausedSeconds()).toBe(0);
});
