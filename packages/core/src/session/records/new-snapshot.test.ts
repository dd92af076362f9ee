import { expect, it } from "vitest";
import { version } from "./new-snapshot.ts";

import manifest from "../../../package.json" with { type: "json" };

it("equals the version in package.json", () => {
  expect(version).toBe(manifest.version);
});
