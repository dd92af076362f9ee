import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, vi } from "vitest";
import { attemptHeader } from "./skip-waits.test-data.ts";

/** How the server responds to one request. */
export type Act =
  /** `after`: what the server waits for before it answers. */
  | {
      readonly say: string;
      readonly top?: Readonly<Record<string, number>>;
      readonly after?: Promise<unknown>;
    }
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly message?: string;
    }
  /** A malformed body; the server closes the connection after `cutAt` bytes. */
  | { readonly body: string; readonly cutAt?: number }
  | "stall"
  | "stall in the body"
  | "reset";

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>>;
  /** The content of the last message. */
  readonly prompt: string;
}

/**
 * Registers hooks for a test file: each test has `key` as API key and no other settings in the environment, and clients run with
 * debug logging. After each test, closes the servers and expects that nothing was logged.
 *
 * @returns A function that starts a server, which runs until the end of the test.
 */
export function serveInTests(key: string): typeof apiServer {
  const logged: unknown[] = [];
  let closers: (() => void)[] = [];
  beforeEach(() => {
    for (const name of ["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "JUDGE_MODEL"]) vi.stubEnv(name, "");
    for (const name of ["OPENAI_LOG", "ANTHROPIC_LOG"]) vi.stubEnv(name, "debug");
    for (const name of ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"]) vi.stubEnv(name, key);
    for (const level of ["debug", "info", "log", "warn", "error"] as const)
      vi.spyOn(console, level).mockImplementation((...line) => void logged.push(line));
  });
  afterEach(() => {
    for (const close of closers) close();
    closers = [];
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
    expect(logged).toEqual([]);
  });
  return async (script) => {
    const server = await apiServer(script);
    closers.push(server.close);
    return server;
  };
}

/** Starts a server on loopback with OpenAI's and Anthropic's APIs. `script` chooses each response. */
async function apiServer(script: (request: Received, count: number) => Act) {
  const received: Received[] = [];
  const unanswered = new Set<string>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = JSON.parse(Buffer.concat(chunks).toString()) as { messages: { content: string }[] };
      const prompt = body.messages.at(-1)!.content;
      const one = { path: request.url!, headers: request.headers, body, prompt };
      received.push(one);
      const act = script(one, received.length - 1);
      if (act === "stall" || act === "stall in the body")
        unanswered.add(String(request.headers[attemptHeader]));
      perform(act, one, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    /** Ids of the attempts that stall, for `skipWaits`. */
    unanswered,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const isAnthropic = ({ path }: Received) => path.endsWith("/messages");

function perform(act: Act, request: Received, response: ServerResponse): void {
  const json = { "content-type": "application/json" };
  if (act === "reset") return void response.socket!.resetAndDestroy();
  if (act === "stall") return;
  if (act === "stall in the body") {
    response.writeHead(200, json);
    return void response.write('{"choices": [');
  }
  if ("status" in act) {
    response.writeHead(act.status, { ...json, ...act.headers });
    return void response.end(
      JSON.stringify({ error: { message: act.message ?? "no luck", type: "trouble" } }),
    );
  }
  if ("say" in act && act.after !== undefined) {
    const { after, ...answer } = act;
    return void after.then(() => perform(answer, request, response));
  }
  if ("say" in act) {
    response.writeHead(200, json);
    return void response.end(JSON.stringify(isAnthropic(request) ? message(act.say) : completion(act)));
  }
  const { body, cutAt } = act;
  response.writeHead(200, { ...json, "content-length": Buffer.byteLength(body) });
  if (cutAt === undefined) return void response.end(body);
  response.write(body.slice(0, cutAt), () => response.socket!.destroy());
}

/** Source: https://platform.openai.com/docs/api-reference/chat/object */
export const completion = ({ say, top }: { say: string; top?: Readonly<Record<string, number>> }) => ({
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "judge-1-2026-11-01",
  choices: [
    {
      index: 0,
      finish_reason: "stop",
      message: { role: "assistant", content: say, refusal: null },
      logprobs: top && {
        content: [
          {
            token: Object.keys(top)[0],
            logprob: Math.log(Object.values(top)[0]!),
            top_logprobs: Object.entries(top).map(([token, p]) => ({
              token,
              logprob: Math.log(p),
              bytes: null,
            })),
          },
        ],
      },
    },
  ],
  usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
});

/** Source: https://docs.anthropic.com/en/api/messages */
const message = (text: string) => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-judge-2026-11-01",
  content: [{ type: "text", text }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 90, output_tokens: 30 },
});
