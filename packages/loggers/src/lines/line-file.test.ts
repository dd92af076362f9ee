import * as fs from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { lineFile } from "./line-file.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

vi.mock("node:fs", async (load) => {
  const real = await load<typeof fs>();
  return { ...real, appendFileSync: vi.fn(real.appendFileSync) };
});

it("removes a partial line or header after a write to a full disk", async () => {
  const path = join(temporaryFolder(), "run.csv");
  const fillUp = () =>
    vi.mocked(fs.appendFileSync).mockImplementationOnce((file, data) => {
      fs.writeSync(file as number, String(data).slice(0, 3));
      throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
    });
  const file = lineFile(path, {
    header: "phase,step",
    description: "a table",
    hasThisFormat: () => true,
    isCutOff: () => true,
  });
  fillUp();
  expect(() => file.append(["em,1"])).toThrow(path);
  file.append(["em,2"]);
  fillUp();
  expect(() => file.append(["em,3"])).toThrow(path);
  file.append(["em,4"]);
  file.close();
  expect(fs.readFileSync(path, "utf8")).toBe("phase,step\nem,2\nem,4\n");
});
