import { z } from 'zod';

/** `channel:peer` with the platform's immutable id. Names can change hands, so they are never accepted. */
export const peer = z.string().check(({ value, issues }) => {
  const problem = findPeerProblem(value);
  if (problem !== undefined) issues.push({ code: 'custom', message: problem, input: value });
});

function findPeerProblem(value: string): string | undefined {
  const [, id] = /^[a-z][a-z0-9-]*:(\S+)$/.exec(value) ?? [];
  if (id === undefined) return `"${value}" isn't in the form channel:id, for example telegram:123456789`;
  if (id.startsWith('@')) return `"${value}" is a name, and names can change hands; use the permanent id`;
  if (id.includes('*')) return `"${value}" contains a wildcard; to admit everyone, set the policy to "open"`;
  return undefined;
}

/** Ids that a network never issues: in a list they would silently match nobody. */
const impossible: ReadonlyMap<string, { readonly form: RegExp; readonly instead: string }> = new Map([
  ['telegram', { form: /^(?!(?:chat:)?-?\d+$)/, instead: "Telegram's ids are numbers" }],
  ['discord', { form: /^(?!\d+$)/, instead: "Discord's ids are numbers" }],
  [
    'signal',
    {
      form: /^\+\d+$|^group\.|^(?=.*[A-F])[\dA-Fa-f]{8}(?:-[\dA-Fa-f]{4}){3}-/,
      instead: 'Signal identifies people by their ACI in lower case, and groups by their internal_id',
    },
  ],
]);

/** Says why a `channel:id` can't match anyone; undefined if it may. */
export function findImpossibleId(channel: string, id: string): string | undefined {
  const { form, instead } = impossible.get(channel) ?? {};
  return form?.test(id)
    ? `"${channel}:${id}" matches nobody: ${instead}, and /whoami shows yours`
    : undefined;
}
