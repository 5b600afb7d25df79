export const nodeFlags: readonly string[];
export function nodeEnvironment(root: string): Readonly<Record<string, string>>;
