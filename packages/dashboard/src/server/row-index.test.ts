import { expect, it } from "vitest";
import { linesOf } from "./row-index.ts";

async function* chunks(...sizes: readonly number[]): AsyncGenerator<Uint8Array, void> {
  for (const size of sizes) yield Buffer.alloc(size, "x");
}

it("names the file of a line of more than 64 MiB", async () => {
  const first = linesOf("run/samples.jsonl", chunks(64 * 2 ** 20, 1)).next();
  await expect(first).rejects.toThrow("run/samples.jsonl: got a line of more than 64 MiB, expected rows of");
});
