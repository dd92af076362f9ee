/** Cleanups that helpers registered while the current test file ran. */
const cleanups: (() => Promise<void>)[] = [];

/**
 * Registers a cleanup for the end of the current test file. Helpers use it in place of a top-level `afterAll`: test files
 * share a process and its modules, and a module registers its hooks for the first file only.
 */
export function afterFile(cleanup: () => Promise<void>): void {
  cleanups.push(cleanup);
}

export async function cleanUp(): Promise<void> {
  await Promise.all(cleanups.splice(0).map((cleanup) => cleanup()));
}
