/** Returns a command of `periodic-eval` as errors name it. A project's own copy is found by npx only. */
export const command = (args: string): string => `\`npx periodic-eval ${args}\``;
