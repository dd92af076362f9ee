import { basename, join, resolve } from "node:path";
import type { Logger } from "@periodic-eval/core";
import { configError, numberFromZero, parseOptions } from "@periodic-eval/contracts/options";
import { resolvesWithin } from "@periodic-eval/store";
import * as z from "zod";
import { clockOption, pathOption, wallClock } from "../options.ts";
import { startDelivery, type Delivery } from "./delivery.ts";
import { showOnDesktop } from "./desktop.ts";
import {
  endMessage,
  formOf,
  forms,
  snapshotMessage,
  withoutSecrets,
  type Form,
  type Message,
} from "./messages.ts";
import { openQueue } from "./queue.ts";

export interface NotifyOptions {
  /** The run's folder. Messages to be sent are kept in its `loggers/`. */
  readonly runDir: string;
  /** Address of a webhook, http or https. It is a secret: no file and no message contains it. */
  readonly url?: string;
  /** Name of the environment variable that has the address. */
  readonly urlEnv?: string;
  /** What the webhook receives. Default: `slack` or `discord` by the address, otherwise `json`. */
  readonly form?: Form;
  /** Whether this machine's desktop shows each message. Default false. */
  readonly desktop?: boolean;
  /** Seconds for which `close` waits for the webhook. Default: 5. */
  readonly closeSeconds?: number;
  /** Returns milliseconds since 1970. For tests. */
  readonly now?: () => number;
}

const where = "notifyLogger options";

const schema = z.strictObject({
  runDir: pathOption,
  url: z.string("the URL of a webhook").optional(),
  urlEnv: z.string("the name of an environment variable").optional(),
  form: z.enum(forms).optional(),
  desktop: z.boolean("true or false").optional(),
  closeSeconds: numberFromZero("seconds, 0 or more").optional(),
  now: clockOption,
} satisfies Record<keyof NotifyOptions, z.ZodType>);

/**
 * Sends a message on each verdict, stop and failed measurement, and at the end of each phase: to a webhook, to the desktop, or to
 * both. Training never waits for it, and no message is sent twice, also after a kill and a resume: a message whose delivery is
 * unknown is not repeated. Messages that a server refuses with 429, 500 or 503, or that reach no server, are sent again until `close`,
 * and when the run resumes. `close` reports the others.
 *
 * @throws PeriodicEvalError `config` for a wrong option or address, without quoting the address.
 */
export function notifyLogger(options: NotifyOptions): Logger {
  parseOptions(where, schema, options);
  const { runDir, desktop = false, closeSeconds = 5, now = wallClock } = options;
  const run = basename(resolve(runDir));
  const url = addressOf(options, desktop);
  const form = options.form ?? (url === null ? "json" : formOf(url));
  let delivery: Delivery | null = null;

  function notify(message: Message | null): void {
    if (message === null || delivery === null) return;
    const masked = { ...message, text: withoutSecrets(message.text) };
    if (!delivery.add({ ...masked, at: new Date(now()).toISOString() })) return;
    if (desktop) showOnDesktop(masked);
  }

  let phase = "";
  return {
    name: "notify",
    patienceSeconds: closeSeconds + 60,
    async begin(at) {
      ({ phase } = at);
      if (delivery !== null) return;
      const queue = await openQueue(join(runDir, "loggers", "notify.jsonl"));
      delivery = startDelivery(queue, url === null ? null : { url, form });
      // In a run without a queue, earlier snapshots are not news.
      for (const snapshot of at.standing) {
        const message = snapshotMessage(snapshot, run);
        if (message !== null && !queue.isNew) notify(message);
        else if (message !== null) queue.skip(message.key);
      }
    },
    snapshot: (snapshot) => notify(snapshotMessage(snapshot, run)),
    event(event) {
      if (event.kind !== "stop") return;
      const { step, message } = event;
      notify({
        key: `stop/${phase}/${step}`,
        event: "stop",
        run,
        phase,
        step,
        text: `training stops: ${message}`,
      });
    },
    end: (at) => notify(endMessage(at, run)),
    async close() {
      if (delivery === null) return;
      const closing = delivery;
      delivery = null;
      await resolvesWithin(closing.finish(), closeSeconds).catch(() => undefined);
      const problem = closing.close();
      if (problem !== null) throw new Error(problem);
    },
  };
}

function addressOf({ url, urlEnv }: NotifyOptions, desktop: boolean): URL | null {
  // A wrong value may be the address, so no message quotes it.
  const wrong = (option: string, got: string, expected: string, fix: string) =>
    configError({ where, path: [option], got, expected, fix });
  if (url === undefined && urlEnv === undefined) {
    if (desktop) return null;
    throw wrong(
      "url",
      "nothing",
      "a webhook or `desktop: true`",
      "Name the variable that has the address of a webhook, or set `desktop`.",
    );
  }
  if (urlEnv !== undefined && !/^[A-Za-z_]\w*$/.test(urlEnv))
    throw wrong(
      "urlEnv",
      "a value that is no name of a variable",
      "the name of an environment variable",
      "Put the address into a variable, and write its name.",
    );
  const address = url ?? process.env[urlEnv!];
  if (address !== undefined && /^https?:\/\//.test(address) && URL.canParse(address)) return new URL(address);
  const option = url === undefined ? "urlEnv" : "url";
  const of = url === undefined ? `${urlEnv}, which ` : "a value that ";
  throw wrong(
    option,
    `${of}${address === undefined ? "is not set" : "is no address of a webhook"}`,
    "an address that begins with https:// or http://",
    "Copy the address from the settings of the webhook.",
  );
}
