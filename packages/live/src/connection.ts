import type { Readable, Writable } from "node:stream";
import { createInterface } from "node:readline";
import { PeriodicEvalError, type CallOptions, type ErrorCode } from "@periodic-eval/contracts";
import { describeZodIssue, errorMessage, pathText, quoteValue } from "@periodic-eval/contracts/options";
import type * as z from "zod";
import {
  hostCalls,
  maximumLine,
  messageSchema,
  trainerCalls,
  type HostMethod,
  type ParamsOf,
  type ResultOf,
  type RowMethod,
  type RowOf,
  type TrainerMethod,
  type TrainerParams,
  type WireError,
  type WireMessage,
} from "./protocol.ts";

/** What the host does with the trainer's messages. */
export interface TrainerHandlers {
  /** Answers a call. What it throws becomes the error of the answer. */
  call<M extends TrainerMethod>(method: M, params: TrainerParams[M]): Promise<unknown>;
  warn(message: string): void;
}

/** A call to the trainer that waits for its answer. */
interface Pending {
  readonly method: HostMethod;
  readonly rows: unknown[];
  readonly expected: number | null;
  readonly countTokens: ((tokens: number) => void) | null;
  tokens: number;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export interface ConnectionOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** Names the trainer in errors. */
  readonly where: string;
}

/**
 * One end of the live protocol: the host's. Calls of the trainer are handled in order, one at a time; calls of the host are answered
 * by the trainer while its own call waits.
 */
export class Connection {
  readonly where: string;
  readonly #output: Writable;
  readonly #input: Readable;
  readonly #pending = new Map<number, Pending>();
  #last = 0;
  #isEnded: Error | null = null;

  constructor({ input, output, where }: ConnectionOptions) {
    this.where = where;
    this.#input = input;
    this.#output = output;
    output.on("error", (error) => this.#end(error));
  }

  /** Handles messages until the trainer's end of the connection closes. Rejects for a line that is no message. */
  async serve(handlers: TrainerHandlers): Promise<void> {
    let handling: Promise<void> = Promise.resolve();
    try {
      for await (const line of createInterface({ input: this.#input, crlfDelay: Infinity })) {
        if (line.trim() === "") continue;
        const message = this.#parse(line);
        if ("method" in message && "id" in message)
          handling = handling.then(() => this.#handle(message, handlers));
        else if ("method" in message) {
          if (message.method === "warn") handlers.warn(quoteValue(message.params["message"]));
        } else this.#settle(message);
      }
    } finally {
      this.#end(new Error("the trainer's process has closed the connection"));
    }
    await handling;
  }

  /** Asks the trainer for rows; they arrive in order, in several messages if they are many. */
  async rows<M extends RowMethod>(
    method: M,
    params: ParamsOf<M>,
    count: number,
    options: Partial<Pick<CallOptions, "signal" | "countTokens">> = {},
  ): Promise<readonly RowOf<M>[]> {
    if (count === 0) return [];
    const rows = (await this.#call(method, params, count, options)) as readonly unknown[];
    return rows as readonly RowOf<M>[];
  }

  /** Asks the trainer for one result. */
  async ask<M extends Exclude<HostMethod, RowMethod>>(method: M, params: ParamsOf<M>): Promise<ResultOf<M>> {
    const result = await this.#call(method, params, null, {});
    const schema = (hostCalls[method] as { readonly result: z.ZodType }).result;
    return this.#checked(method, schema, result) as ResultOf<M>;
  }

  notify(method: "wake" | "ping" | "warn", params: Readonly<Record<string, unknown>> = {}): void {
    this.#send({ method, params });
  }

  #call(
    method: HostMethod,
    params: object,
    expected: number | null,
    { signal, countTokens }: Partial<Pick<CallOptions, "signal" | "countTokens">>,
  ): Promise<unknown> {
    signal?.throwIfAborted();
    if (this.#isEnded !== null) return Promise.reject(this.#lost());
    const id = ++this.#last;
    return new Promise<unknown>((resolve, reject) => {
      const cancel = () => this.#send({ method: "cancel", params: { call: id } });
      const settle =
        <T>(end: (value: T) => void) =>
        (value: T) => {
          signal?.removeEventListener("abort", cancel);
          this.#pending.delete(id);
          end(value);
        };
      this.#pending.set(id, {
        method,
        rows: [],
        expected,
        countTokens: countTokens ?? null,
        tokens: 0,
        resolve: settle(resolve),
        // The reason of the abort, not that the trainer says so.
        reject: settle((error: unknown) =>
          reject(signal?.aborted === true ? (signal.reason as Error) : (error as Error)),
        ),
      });
      signal?.addEventListener("abort", cancel);
      this.#send({ id, method, params });
    });
  }

  #settle(message: Exclude<WireMessage, { readonly method: string }>): void {
    const pending = this.#pending.get(message.id);
    if (pending === undefined) return;
    try {
      if ("progress" in message) {
        const { tokens } = message.progress;
        if (tokens > pending.tokens) pending.countTokens?.(tokens - pending.tokens);
        pending.tokens = Math.max(tokens, pending.tokens);
      } else if ("rows" in message) {
        const schema = (hostCalls[pending.method] as { readonly row: z.ZodType }).row;
        for (const row of message.rows) pending.rows.push(this.#checked(pending.method, schema, row));
      } else if ("error" in message) pending.reject(this.#errorOf(pending.method, message.error));
      else if (pending.expected === null) pending.resolve(message.result);
      else if (pending.rows.length === pending.expected) pending.resolve(pending.rows);
      else
        throw this.#wrong(
          pending.method,
          `${pending.rows.length} rows`,
          `${pending.expected}, one for each row of the call`,
        );
    } catch (error) {
      pending.reject(error);
    }
  }

  async #handle(
    { id, method, params }: Extract<WireMessage, { readonly id: number; readonly method: string }>,
    handlers: TrainerHandlers,
  ): Promise<void> {
    try {
      if (!Object.hasOwn(trainerCalls, method))
        throw this.#wrong(
          method,
          "a call that this host does not know",
          Object.keys(trainerCalls).join(", "),
        );
      const known = method as TrainerMethod;
      const checked = this.#checked(known, trainerCalls[known], params) as TrainerParams[typeof known];
      this.#send({ id, result: await handlers.call(known, checked) });
    } catch (error) {
      this.#send({ id, error: wireError(error, `live ${method}`) });
    }
  }

  #parse(line: string): WireMessage {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      throw this.#wrong(
        "message",
        `a line that is not JSON: ${quoteValue(line)}`,
        "one JSON object per line",
      );
    }
    return this.#checked("message", messageSchema, value) as WireMessage;
  }

  #checked(what: string, schema: z.ZodType, value: unknown): unknown {
    const { success, data, error } = schema.safeParse(value);
    if (success) return data;
    const issue = describeZodIssue(error, value);
    throw this.#wrong(`${what}${pathText(issue.path)}`, quoteValue(issue.value), issue.expected);
  }

  #wrong(what: string, got: string, expected: string): PeriodicEvalError {
    return new PeriodicEvalError({
      code: "model",
      where: `${this.where} ${what}`,
      got,
      expected,
      fix: "Check that trainer and host have versions that belong together.",
    });
  }

  #errorOf(method: string, { code, where, got, expected, fix }: WireError): PeriodicEvalError {
    const known: readonly string[] = ["config", "data", "model", "memory"];
    return new PeriodicEvalError({
      code: (known.includes(code) ? code : "model") as ErrorCode,
      where: where === "" ? `${this.where} ${method}` : where,
      got,
      expected: expected === "" ? "an answer" : expected,
      fix: fix === "" ? "See the trainer's own output." : fix,
    });
  }

  #send(message: object): void {
    if (this.#isEnded !== null) return;
    const line = JSON.stringify(message);
    if (line.length > maximumLine)
      throw this.#wrong("message", `${line.length} bytes`, `at most ${maximumLine}`);
    this.#output.write(`${line}\n`);
  }

  #lost(): PeriodicEvalError {
    return new PeriodicEvalError({
      code: "model",
      where: this.where,
      got: errorMessage(this.#isEnded),
      expected: "a trainer that answers",
      fix: "Start training again: it resumes from its last checkpoint.",
      cause: this.#isEnded,
    });
  }

  #end(error: Error): void {
    this.#isEnded ??= error;
    for (const pending of this.#pending.values()) pending.reject(this.#lost());
  }
}

export function wireError(error: unknown, where: string): WireError {
  if (PeriodicEvalError.is(error)) {
    const { code, where: place, got, expected, fix } = error;
    return { code, where: place, got, expected, fix };
  }
  return { code: "bug", where, got: errorMessage(error), expected: "", fix: "" };
}
