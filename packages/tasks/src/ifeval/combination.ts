import type { InstructionKind } from "./instruction.ts";
import { strip } from "./text/python-strings.ts";

/** Two that differ, between `******`; one more before or behind them may be blank. */
export const twoResponses: InstructionKind = () => (response) => {
  const parts = response.split("******").map((part) => strip(part));
  if (parts.slice(1, -1).includes("")) return false;
  const filled = parts.filter((part) => part !== "");
  return filled.length === 2 && filled[0] !== filled[1];
};

/** The response begins with `prompt_to_repeat`, in any case. */
export const repeatPrompt: InstructionKind = (kwargs) => {
  const prompt = strip(kwargs.text("prompt_to_repeat")).toLowerCase();
  return (response) => strip(response).toLowerCase().startsWith(prompt);
};
