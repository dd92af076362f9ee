import { PeriodicEvalError } from "@periodic-eval/core";
import { Hono } from "hono";
import { expect, it } from "vitest";
import { errorReply } from "./refusals.ts";

const replyTo = async (got: string) => {
  const app = new Hono();
  app.onError(errorReply);
  app.get("/", () => {
    throw new PeriodicEvalError({ code: "store", where: got, got, expected: "a file", fix: `Move ${got}.` });
  });
  return (await app.request("/")).text();
};

it.each([
  "/srv/secret/adapters/a/adapter.json",
  "C:\\secret\\adapters\\adapter.json",
  "file:///srv/secret/adapter.json",
  "D:/secret/adapter.json",
])("names only the file of %s", async (path) => {
  const text = await replyTo(path);
  expect(text).toContain("adapter.json");
  expect(text).not.toContain("secret");
});

it.each(["POST /v1/lora/init", "http://127.0.0.1:8000/v1/score", "a/b and 3/4", "/v1/health"])(
  "keeps %s",
  async (text) => {
    expect(await replyTo(text)).toContain(text);
  },
);
