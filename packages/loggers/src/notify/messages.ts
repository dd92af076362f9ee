import type { PhaseEnd, Snapshot } from "@periodic-eval/core";
import { abbreviated, printable } from "@periodic-eval/contracts/options";
import { snapshotText } from "@periodic-eval/core/console";
import { maskSecret } from "@periodic-eval/data";
import { isVoid } from "@periodic-eval/store";
import pc from "picocolors";

/** Something that a person wants to hear of. */
export interface Message {
  /** The same for a message that a resumed training repeats. */
  readonly key: string;
  readonly event: "verdict" | "stop" | "failed" | "end";
  /** The name of the run's folder. */
  readonly run: string;
  readonly phase: string;
  readonly step: number;
  /** The id of the callback. */
  readonly id?: string;
  readonly metric?: string;
  readonly value?: number | null;
  readonly verdict?: string;
  readonly text: string;
}

const noColours = pc.createColors(false);

/** Returns the message about a measurement that failed, or whose primary metric has a verdict other than `no evidence`; else null. */
export function snapshotMessage(snapshot: Snapshot, run: string): Message | null {
  const { phase, step, id, status, metrics, paired, primary_metric: metric } = snapshot;
  const of = { run, phase, step, id, text: snapshotText(snapshot, noColours) };
  if (status === "failed") return { key: `failed/${phase}/${id}/${step}`, event: "failed", ...of };
  const verdict = metric === null ? null : (paired.baseline?.[metric]?.verdict ?? null);
  const isNews = verdict !== null && verdict !== "no evidence";
  if (metric === null || !isNews || status === "grading" || isVoid(snapshot, metric)) return null;
  const { value = null } = metrics[metric] ?? {};
  const key = `verdict/${phase}/${id}/${step}/${verdict}`;
  return { key, event: "verdict", ...of, metric, value, verdict };
}

export function endMessage({ phase, step, maxSteps, finished }: PhaseEnd, run: string): Message {
  const position = maxSteps === null ? `step ${step}` : `step ${step} of ${maxSteps}`;
  const text = `training ${finished ? "finished" : "was interrupted"} at ${position}`;
  return { key: `end/${phase}/${step}/${String(finished)}`, event: "end", run, phase, step, text };
}

/** Forms of a request: fields as JSON, or what Slack or Discord reads. */
export const forms = ["json", "slack", "discord"] as const;
export type Form = (typeof forms)[number];

/** Returns the form of a webhook by its address. */
export function formOf({ hostname, pathname }: URL): Form {
  if (hostname === "hooks.slack.com" || pathname.endsWith("/slack")) return "slack";
  return /^(?:.+\.)?discord(?:app)?\.com$/.test(hostname) ? "discord" : "json";
}

/** Discord's limit is 2,000 characters. */
const longest = 1500;

/**
 * Returns the body of a request. In the forms of chats nobody is mentioned: Slack's control characters are escaped
 * (https://docs.slack.dev/messaging/formatting-message-text), and Discord gets a list of nobody.
 */
export function bodyOf({ key: _key, ...message }: Message, form: Form): string {
  const line = `${message.run}: ${message.phase} step ${message.step}  ${message.text}`;
  if (form === "json") return JSON.stringify(message);
  if (form === "slack") return JSON.stringify({ text: escapeMarkup(shown(line)) });
  return JSON.stringify({ content: shown(line), allowed_mentions: { parse: [] } });
}

const shown = (text: string): string => abbreviated(printable(text), longest);

/** Escapes what Slack and the desktops of Linux read as markup. */
export const escapeMarkup = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** Masks the values of variables that hold secrets: the reason of a failure may quote one. */
export const withoutSecrets = (text: string): string =>
  Object.entries(process.env)
    .filter(([name]) => /(?:KEY|TOKEN|SECRET|PASSWORD)$/i.test(name))
    .reduce((masked, [, secret]) => maskSecret(masked, secret ?? null), text);
