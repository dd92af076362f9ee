/** Returns an Error's message, or any other thrown value as a string. Never throws, whatever the value is. */
export function errorMessage(error: unknown): string {
  try {
    const message: unknown = error instanceof Error ? error.message : error;
    return typeof message === "string" ? message : String(message);
  } catch {
    return kindOf(error);
  }
}

/** Describes a value that has no string, such as an object without a prototype. */
function kindOf(value: unknown): string {
  try {
    return `an object that cannot be shown as a string: ${JSON.stringify(value)}`;
  } catch {
    return "an object that cannot be shown as a string";
  }
}
