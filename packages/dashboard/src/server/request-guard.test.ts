import { expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { resultsServer } from "./results-server.ts";

const token = "größe:and-more";
const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;

it.each([
  ["none", {}, 401],
  ["another", { authorization: "Bearer other" }, 401],
  ["a part", { authorization: "Bearer and-more" }, 401],
  ["no scheme", { authorization: "and-more" }, 401],
  ["a bearer token", { authorization: "Bearer secret-1" }, 200],
  ["a password", { authorization: basic("me:secret-1") }, 200],
  ["a password without a user", { authorization: basic(":secret-1") }, 200],
  ["a wrong password", { authorization: basic("secret-1:other") }, 401],
])("replies to %s (%j) with status %i", async (_, headers, status) => {
  const server = resultsServer({ root: temporaryFolder(), token: "secret-1" });
  for (const path of ["/v1/eval", "/v1/eval?results_dir=a", "/", "/nothing"]) {
    const reply = await server.request(path, { headers: headers as Record<string, string> });
    const expected = { "/": 302, "/v1/eval": 200 }[path] ?? 404;
    expect([path, reply.status]).toEqual([path, status === 200 ? expected : 401]);
    expect(reply.headers.get("www-authenticate")).toBe(
      status === 200 ? null : 'Basic realm="periodic-eval", charset="UTF-8"',
    );
    expect(await reply.text()).not.toContain("secret-1");
  }
});

it("accepts a password with a colon and other characters", async () => {
  const server = resultsServer({ root: temporaryFolder(), token });
  const reply = await server.request("/v1/eval", { headers: { authorization: basic(`me:${token}`) } });
  expect(reply.status).toBe(200);
});

it.each(["latin1", "utf8"] as const)(
  "accepts a bearer token with other characters as %s",
  async (encoding) => {
    const server = resultsServer({ root: temporaryFolder(), token });
    // Node reads the bytes of a header as Latin-1.
    const sent = Buffer.from(`Bearer ${token}`, encoding).toString("latin1");
    const reply = await server.request("/v1/eval", { headers: { authorization: sent } });
    expect(reply.status).toBe(200);
  },
);

it("rejects an empty token", () => {
  expect(() => resultsServer({ root: temporaryFolder(), token: "" })).toThrow(
    expect.objectContaining({ code: "config", path: ["token"] }) as Error,
  );
});
