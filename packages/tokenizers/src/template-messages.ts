import type { Json, TemplateKwargs, TemplateMessage } from "@periodic-eval/contracts";
import { configError } from "@periodic-eval/contracts/options";
import type { Render } from "./answers.ts";

/**
 * Returns messages as transformers 5.24 passes them to a template: without null fields, and with the reasoning under the names
 * `reasoning_content` and `thinking`. A content in text parts stays an array for a template that reads parts; for other
 * templates, which would write it as Python prints a list or omit it, it becomes one string.
 */
export function templateMessages(
  messages: readonly TemplateMessage[],
  render: Render,
): readonly TemplateMessage[] {
  const plain = messages.map(plainMessage);
  if (!plain.some(({ content }) => Array.isArray(content)) || readsParts(render)) return plain;
  return plain.map((message) =>
    Array.isArray(message.content) ? { ...message, content: joinParts(message.content) } : message,
  );
}

/** Returns a message without null fields, and with the reasoning under the names that templates read. */
export function plainMessage<T extends object>(message: T): T {
  const fields = Object.fromEntries(Object.entries(message).filter(([, value]) => value != null)) as Record<
    string,
    unknown
  >;
  const reasoning = fields["reasoning_content"] ?? fields["thinking"] ?? fields["reasoning"];
  const both =
    reasoning === undefined ? fields : { thinking: reasoning, ...fields, reasoning_content: reasoning };
  return both as T;
}

/**
 * Checks the names of the variables that a chat adds to its template.
 *
 * @throws PeriodicEvalError `config` for a name in `reserved`, and for one that no variable can have.
 */
export function checkTemplateKwargs(kwargs: TemplateKwargs, reserved: readonly string[]): void {
  const name = Object.keys(kwargs).find((key) => reserved.includes(key) || !/^[A-Za-z_]\w*$/.test(key));
  if (name === undefined) return;
  throw configError({
    where: "templateKwargs",
    path: [name],
    got: `the name ${JSON.stringify(name)}`,
    expected: `the name of a template variable other than ${reserved.join(", ")}`,
    fix: "Rename or remove it.",
  });
}

/** Joins the texts of a content's parts. */
export const joinParts = (parts: readonly Json[]): string =>
  parts.map((part) => (part as { readonly text: string }).text).join("");

function readsParts(render: Render): boolean {
  const text = "PERIODIC_EVAL_PROBE";
  const write = (content: Json): string | null => {
    try {
      return render([{ role: "user", content }], false).text;
    } catch {
      return null;
    }
  };
  const [parts, string] = [write([{ type: "text", text }]), write(text)];
  return parts?.includes(text) === true && (parts === string || string?.includes(text) !== true);
}
