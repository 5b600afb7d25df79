import { readFileSync } from 'node:fs';

/** A row of the table in docs/commands.md: a command, and who may use it in groups, as people read it there. */
export type DocumentedCommand = { readonly name: string; readonly inGroupsFor: string };

/** Reads what docs/commands.md promises, which is also what the tests expect. */
export function readDocumentedCommands(): readonly DocumentedCommand[] {
  const rows = readFileSync('docs/commands.md', 'utf8').matchAll(/^\| `\/([a-z]+)[^`]*` \| ([^|]+) \|/gm);
  return [...rows].map(([, name = '', inGroupsFor = '']) => ({ name, inGroupsFor }));
}
