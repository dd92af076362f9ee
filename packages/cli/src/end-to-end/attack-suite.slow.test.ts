// A few cases of some areas of scripts/attack; `.ci/run` attacks for minutes.
import { expect, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

type Attack = ((seed: string) => Promise<void>) & { readonly close?: () => Promise<unknown> };

it.each(["callbacks", "damage"])("finds no broken promise in the first cases of %s", async (area) => {
  // vitest's own listeners fail a run with unhandled rejections, which callbacks leave here.
  const listeners = (process as NodeJS.EventEmitter).listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  onTestFinished(() => {
    for (const listener of listeners) process.on("unhandledRejection", listener as () => void);
  });
  const file = new URL(`../../../../scripts/attack/${area}.mjs`, import.meta.url).href;
  const prepare = ((await import(file)) as Record<string, (folder: string) => Promise<Attack>>)[area]!;
  const attack = await prepare(temporaryFolder(onTestFinished));
  for (const seed of [`test/${area}/0`, `test/${area}/1`])
    await expect(attack(seed), seed).resolves.toBeUndefined();
  await attack.close?.();
});
