// A few cases of the areas of scripts/attack that need no built package; `.ci/run` attacks for minutes.
import { expect, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../../../core/src/testing/temporary-folder.test-data.ts";

type Attack = ((seed: string) => Promise<void>) & { readonly close?: () => Promise<unknown> };

it.each([
  ["http", 4],
  ["callbacks", 2],
])("finds no broken promise in the first cases of %s", async (area, cases) => {
  // vitest's own listeners fail a run with unhandled rejections, which callbacks leave here.
  const listeners = (process as NodeJS.EventEmitter).listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  onTestFinished(() => {
    for (const listener of listeners) process.on("unhandledRejection", listener as () => void);
  });
  const file = new URL(`../../../../scripts/attack/${area}.mjs`, import.meta.url).href;
  const { [area]: open } = (await import(file)) as Record<string, (folder: string) => Promise<Attack>>;
  const attack = await open!(temporaryFolder(onTestFinished));
  const seeds = Array.from({ length: cases }, (_, at) => `test/${area}/${at}`);
  for (const seed of seeds) await expect(attack(seed), seed).resolves.toBeUndefined();
  await attack.close?.();
});
