import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { needsPython, python, pythonHas } from "../../../models/src/testing/python.test-data.ts";
import { temporaryFolder } from "../testing/tiny-run.test-data.ts";
import { isBadRow } from "./bad-row.ts";
import { readRows } from "./read-rows.ts";

const isAvailable = pythonHas("datasets", "pyarrow");
const title = isAvailable ? "readRows" : `readRows (${needsPython("datasets")})`;

describe.skipIf(!isAvailable)(title, () => {
  let folder = "";
  let expected: Readonly<Record<string, readonly unknown[] | null>> = {};
  beforeAll(async () => {
    folder = await temporaryFolder();
    const script = fileURLToPath(new URL("../testing/datasets-files.test-data.py", import.meta.url));
    const input = JSON.stringify({ folder, cache: await temporaryFolder() });
    expected = JSON.parse(
      execFileSync(python, [script], { input, encoding: "utf8", maxBuffer: 2 ** 28 }),
    ) as typeof expected;
  }, 300_000);

  it("returns the rows that datasets 5.2 reads from JSON, gzip and Parquet in every codec, or throws where it fails", async () => {
    expect(Object.keys(expected)).toHaveLength(45);
    for (const [name, rows] of Object.entries(expected)) {
      expect.soft(await rowsOf(`${folder}/${name}`), name).toEqual(rows);
    }
    // The decoder refuses lists in pages of version 2, which pyarrow writes on request only.
    expect(await rowsOf(`${folder}/lists-2.0.parquet`)).toBe(null);
  }, 300_000);
});

/** Returns the rows of a file, with null for NaN and infinite numbers; null if there are none or the file is refused. */
async function rowsOf(path: string): Promise<readonly unknown[] | null> {
  const rows: unknown[] = [];
  try {
    for await (const row of readRows(path)) rows.push(isBadRow(row) ? row : row.value);
  } catch (error) {
    expect(error).toMatchObject({ code: "data", where: path });
    return null;
  }
  // JSON.stringify makes NaN null.
  return rows.length === 0 ? null : (JSON.parse(JSON.stringify(rows)) as readonly unknown[]);
}
