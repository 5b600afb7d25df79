import { z } from 'zod';

/** `channel:peer` by the platform's immutable id. A name can change hands, so it is never accepted. */
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

/** Ids that a network never gives: a list with one would silently name nobody. */
const impossible: ReadonlyMap<string, { readonly form: RegExp; readonly instead: string }> = new Map([
  ['telegram', { form: /^(?!(?:chat:)?-?\d+$)/, instead: "Telegram's ids are numbers" }],
  ['discord', { form: /^(?!\d+$)/, instead: "Discord's ids are numbers" }],
  [
    'signal',
    {
      form: /^\+\d+$|^group\.|^(?=.*[A-F])[\dA-Fa-f]{8}(?:-[\dA-Fa-f]{4}){3}-/,
      instead: 'Signal names people by their ACI in small letters, and groups by their internal_id',
    },
  ],
]);

/** Why a `channel:id` can name nobody; undefined where it may name somebody. */
export function findImpossibleId(channel: string, id: string): string | undefined {
  const { form, instead } = impossible.get(channel) ?? {};
  return form?.test(id) ? `"${channel}:${id}" names nobody: ${instead}, and /whoami shows yours` : undefined;
}
