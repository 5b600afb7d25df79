import { z } from 'zod';

/** `channel:peer` by the platform's immutable id. A name can change hands, so it is never accepted. */
export const peer = z.string().check(({ value, issues }) => {
  const problem = findPeerProblem(value);
  if (problem !== undefined) issues.push({ code: 'custom', message: problem, input: value });
});

function findPeerProblem(value: string): string | undefined {
  const [, id] = /^[a-z][a-z0-9-]*:(.+)$/.exec(value) ?? [];
  if (id === undefined) return `"${value}" isn't of the form channel:id, for example telegram:123456789`;
  if (id.startsWith('@')) return `"${value}" is a name, and names can change hands; use the permanent id`;
  if (id.includes('*')) return `"${value}" holds a wildcard; to admit everyone write the policy "open"`;
  return undefined;
}
