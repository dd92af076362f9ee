import { expect, it } from "vitest";
import { parseHubId } from "./hub-id.ts";

it("parses names and revisions by the hub's rules", () => {
  expect(parseHubId("HuggingFaceTB/SmolLM2-135M")).toEqual({
    name: "HuggingFaceTB/SmolLM2-135M",
    revision: "main",
  });
  expect(parseHubId("a_b/c.d@refs/pr/3")).toEqual({ name: "a_b/c.d", revision: "refs/pr/3" });
  for (const text of [
    "a",
    "a/b/c",
    "a//b",
    "a/b@",
    "a/b@.x",
    "a/b@x/../y",
    "a--b/c",
    "a/b.",
    "a b/c",
    "a/b\n",
  ])
    expect(parseHubId(text), text).toBe(null);
});
