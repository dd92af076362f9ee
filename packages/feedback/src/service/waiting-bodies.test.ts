import { Server } from "node:net";
import { Hono } from "hono";
import { useBackend } from "@periodic-eval/models";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { microWorldParts } from "../engine/micro-world.test-data.ts";
import { ask, microWorldService } from "./service-client.test-data.ts";
import { serveFeedback } from "./index.ts";
import { waitingBodies } from "./waiting-bodies.ts";
import { temporaryFolder } from "../../../core/src/testing/temporary-folder.test-data.ts";

const root = temporaryFolder(afterAll);
const failures: Error[] = [];
beforeAll(async () => {
  await useBackend({ backend: "wasm" });
});

it("answers 503 with Retry-After if waiting bodies exceed four times maxBodyBytes", async () => {
  let release = () => {};
  const released = new Promise<void>((done) => void (release = done));
  const service = await serveFeedback({
    ...microWorldService(root, failures),
    maxBodyBytes: 1000,
    async openModel(adapter) {
      await released;
      return microWorldParts.openModel(adapter);
    },
  });
  const body = JSON.stringify({ model: "micro-world", prompt: "The sky", completion: " is" }).padEnd(900);
  const send = () =>
    fetch(`${service.url}/v1/score`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
  const refused: (string | null)[] = [];
  const all = Array.from({ length: 6 }, async () => {
    const reply = await send();
    if (reply.status === 503) refused.push(reply.headers.get("retry-after"));
    return reply.status;
  });
  try {
    await vi.waitFor(() => expect(refused).toEqual(["5", "5"]), { timeout: 10_000 });
    expect((await ask(service.url, "/v1/health")).status).toBe(200);
  } finally {
    release();
  }
  expect((await Promise.all(all)).toSorted((one, other) => one - other)).toEqual([
    200, 200, 200, 200, 503, 503,
  ]);
  expect((await send()).status).toBe(200);
  await service.close();
  expect(failures.splice(0)).toHaveLength(0);
});

it("reports an error of the listening server and keeps serving", async () => {
  const listen = vi.spyOn(Server.prototype, "listen");
  const service = await serveFeedback(microWorldService(root, failures));
  const server = listen.mock.contexts[0] as Server;
  listen.mockRestore();
  const error = new Error("too many open files");
  server.emit("error", error);
  expect(failures.splice(0)).toEqual([error]);
  expect((await ask(service.url, "/v1/health")).status).toBe(200);
  await service.close();
});

it("refuses a body whose connection ends, as an error of the client", async () => {
  const app = new Hono();
  app.use(waitingBodies({ maxBodyBytes: 1000 }));
  const refused: unknown[] = [];
  app.onError((error, context) => {
    refused.push(error);
    return context.text("");
  });
  const body = new ReadableStream({ pull: (controller) => controller.error(new Error("aborted")) });
  await app.request("/", { method: "POST", body, duplex: "half" } as RequestInit);
  expect(refused).toMatchObject([{ status: 400, message: "incomplete_body" }]);
});
