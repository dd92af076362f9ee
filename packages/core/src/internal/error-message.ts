/** What an error says; what was thrown, where it is none. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
