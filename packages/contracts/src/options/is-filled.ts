/** Whether a value is a string that is not blank. */
export const isFilled = (value: unknown): value is string => typeof value === "string" && value.trim() !== "";

/** Whether a value is a non-empty array of strings that are not blank. */
export const isFilledList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.length > 0 && value.every(isFilled);
