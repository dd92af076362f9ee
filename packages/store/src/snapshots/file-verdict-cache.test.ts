import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import type { Verdict } from "@periodic-eval/contracts";
import { fileVerdictCache } from "./file-verdict-cache.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

let folder: string;
beforeEach(() => void (folder = temporaryFolder()));

const key = "pe128:00112233445566778899aabbccddeeff";
const verdict: Verdict = { status: "graded", scores: { aligned: 1.5 }, raw: "é\n", model: "m" };

describe("fileVerdictCache", () => {
  it("returns stored verdicts, also to another instance", async () => {
    expect(await fileVerdictCache(folder).get(key)).toBeNull();
    await fileVerdictCache(folder).set(key, verdict);
    expect(await fileVerdictCache(folder).get(key)).toEqual(verdict);
    await fileVerdictCache(folder).set(key, { status: "refusal", raw: null });
    expect(await fileVerdictCache(folder).get(key)).toEqual({ status: "refusal", raw: null });
  });

  it.each([
    ["cut off", (text: string) => text.slice(0, -9)],
    ["empty", () => ""],
    ["about another key", (text: string) => text.replace("0011", "0012")],
    ["an error verdict", (text: string) => text.replace('"graded"', '"error"')],
    ["with a score that is not a number", (text: string) => text.replace("1.5", '"1.5"')],
  ])("treats a file that is %s as absent", async (_, spoil) => {
    const cache = fileVerdictCache(folder);
    await cache.set(key, verdict);
    const [shard] = readdirSync(folder);
    const [name] = readdirSync(join(folder, shard!));
    const path = join(folder, shard!, name!);
    writeFileSync(path, spoil(`${JSON.stringify({ key, verdict })}\n`));
    expect(await cache.get(key)).toBeNull();
    await cache.set(key, verdict);
    expect(await cache.get(key)).toEqual(verdict);
  });

  it("throws a store error when the folder cannot be written", async () => {
    writeFileSync(join(folder, "file"), "");
    await expect(fileVerdictCache(join(folder, "file")).set(key, verdict)).rejects.toMatchObject({
      code: "store",
    });
  });
});
