import { buildPeriodicCallbacks, withSession } from "@periodic-eval/core";
import { fileStore, readRun } from "@periodic-eval/store";
import { fakeModel } from "@periodic-eval/testing";
import { afterEach, expect, it, vi } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { renderPage } from "./run-page.ts";

afterEach(() => void vi.unstubAllEnvs());

it("says why capability is disabled that is only on by default", async () => {
  vi.stubEnv("HF_HUB_OFFLINE", "1");
  vi.stubEnv("HF_HUB_CACHE", temporaryFolder());
  const folder = temporaryFolder();
  const callbacks = await buildPeriodicCallbacks({}, { phase: "em" });
  const session = {
    run: fileStore(folder),
    phase: "em",
    maxSteps: 1,
    model: fakeModel(),
    callbacks,
    loggers: [],
  };
  await withSession(session, (open) => open.stepEnd());
  expect(renderPage(await readRun(folder))).toContain(
    "nobody asked for capability by name, and its questions could not be downloaded",
  );
});
