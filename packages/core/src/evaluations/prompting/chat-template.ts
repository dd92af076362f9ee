import { checkKeys } from "../../internal/check-keys.ts";
import { quoteValue } from "../../internal/quote-value.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { jsonFault } from "../../internal/json.ts";
import type { TemplateKwargs } from "../../contracts/model.ts";

/** What the chat template is given besides the chat. */
export interface ChatTemplateOptions {
  readonly kwargs: TemplateKwargs;
}

/** @throws PeriodicEvalError `config` at `where` for anything else. */
export function checkChatTemplate(where: string, chatTemplate: ChatTemplateOptions): void {
  checkKeys(where, chatTemplate, ["kwargs"]);
  const { kwargs } = chatTemplate;
  const fault = jsonFault(kwargs);
  if (fault === null && typeof kwargs === "object" && kwargs !== null && !Array.isArray(kwargs)) return;
  throw new PeriodicEvalError({
    code: "config",
    where: `${where}.kwargs`,
    got: fault === null ? quoteValue(kwargs) : `${fault.what} at kwargs${fault.path}`,
    expected: "an object of names and JSON values",
    fix: "Write { name: value }.",
  });
}
