import { Hono } from "hono";
import { expect, it } from "vitest";
import { errorReply } from "./refusals.ts";
import { waitingBodies, type BodyLimits } from "./waiting-bodies.ts";

function service(limits: Partial<BodyLimits>) {
  const app = new Hono();
  app.onError(errorReply);
  app.use(waitingBodies({ maxBodyBytes: 1000, ...limits }));
  app.post("/", (context) => context.text(context.var.body));
  /** Sends a body that stays unfinished after these bytes. */
  const half = (bytes: number) => {
    let isCancelled = false;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new Uint8Array(bytes).fill(97)),
      cancel: () => void (isCancelled = true),
    });
    const reply = Promise.resolve(app.request("/", { method: "POST", body, duplex: "half" } as RequestInit));
    return { reply, isCancelled: () => isCancelled };
  };
  const whole = async (body: string) => {
    const reply = await app.request("/", { method: "POST", body });
    return [reply.status, await reply.text()];
  };
  return { half, whole };
}

const codeOf = async (reply: Response) => [
  reply.status,
  ((await reply.json()) as { readonly error: { readonly code: string } }).error.code,
];

it("ends a body that does not arrive in time, and closes its connection", async () => {
  const { half, whole } = service({ bodySeconds: 0.02 });
  const { reply, isCancelled } = half(10);
  const late = await reply;
  expect(late.headers.get("connection")).toBe("close");
  expect(await codeOf(late)).toEqual([408, "body_too_slow"]);
  expect(isCancelled()).toBe(true);
  expect(await whole("größe")).toEqual([200, "größe"]);
});

it("drops the oldest unfinished body of a client with too many", async () => {
  const { half, whole } = service({ bodiesPerClient: 4, bodySeconds: 0.2 });
  const slow = Array.from({ length: 4 }, () => half(10));
  expect(await whole("whole")).toEqual([200, "whole"]);
  expect(await codeOf(await slow[0]!.reply)).toEqual([408, "body_too_slow"]);
  expect(slow.map(({ isCancelled }) => isCancelled())).toEqual([true, false, false, false]);
  await Promise.all(slow.map(({ reply }) => reply));
});

it("drops stalled bodies when the memory for bodies is full", async () => {
  const { half, whole } = service({ stalledSeconds: 0, bodySeconds: 0.2 });
  const slow = Array.from({ length: 4 }, () => half(999));
  await new Promise((resolve) => setTimeout(resolve, 20));
  const body = "x".repeat(1000);
  expect(await whole(body)).toEqual([200, body]);
  expect(slow.map(({ isCancelled }) => isCancelled())).toEqual([true, false, false, false]);
  await Promise.all(slow.map(({ reply }) => reply));
});

it("counts bytes that arrive, whatever the request declares", async () => {
  const { half } = service({ bodySeconds: 0.2 });
  expect(await codeOf(await half(1001).reply)).toEqual([413, "body_too_large"]);
});
