/** Who may write to the bot, decided as at the console: the first person approved becomes the owner if there is none. */
import { z } from 'zod';
import { parleyCommand } from '#channel-kit/own-commands.ts';
import { isRef, readRequestName } from '../commands/pair.ts';
import { stripText } from '../logging/redaction.ts';
import { approveOnConsole, readAccess, revokeOnConsole } from '../store/access/operate-access.ts';
import type { Decider } from '../store/access/sender-roles.ts';
import type { ChatTexts } from '../texts/chat-texts.ts';
import { type Caller, type ChangeDeps, operation, Refusal, type StoreDeps } from './operation.ts';

export type PairDeps = ChangeDeps & {
  readonly texts: ChatTexts;
  readonly policy: {
    /** Owners named in the configuration, except this machine's user: `channel:peer`. */
    readonly namedOwners: readonly string[];
    readonly access: { readonly owners: ReadonlySet<string>; readonly allowFrom: ReadonlySet<string> };
  };
};

const role = z.enum(['owner', 'user']);
const listed = 1000;

export const listAccess = operation({
  name: 'pair',
  method: 'GET',
  right: 'operator',
  summary: 'Lists who asks for access and who was approved, newest first',
  answer: z.object({
    requests: z
      .array(
        z.object({
          ref: z.string(),
          name: z.string(),
          code: z.string(),
          account: z.string(),
          createdAt: z.int(),
          expiresAt: z.int(),
        }),
      )
      .readonly(),
    people: z
      .array(
        z.object({
          ref: z.string(),
          name: z.string(),
          account: z.string(),
          role,
          approvedAt: z.int(),
          approvedBy: z.string(),
        }),
      )
      .readonly(),
  }),
  run: ({ store }: StoreDeps) => store.read(readAccess, { limit: listed }),
});

export const approvePerson = operation({
  name: 'pair/approve',
  method: 'POST',
  right: 'operator',
  summary: 'Approves the person with this code or id; the first becomes the owner if there is none',
  input: z.strictObject({ which: z.string().min(1).max(300).describe('Their code, or `channel:id`') }),
  answer: z.object({ ref: z.string(), name: z.string(), role }),
  refusals: ['invalid_input', 'not_found', 'too_many_tries'],
  run: async (deps: PairDeps, { which }, caller) => {
    const of = readRequestName(which)?.of;
    if (of === undefined)
      return new Refusal(
        'invalid_input',
        `“${which}” isn't a code of 8 letters and digits, nor an id of the form channel:id.`,
      );
    const approved = await deps.store.write(approveOnConsole, { of, by: deciderOf(deps, caller) });
    switch (approved.kind) {
      case 'approved':
        return { ref: approved.ref, name: approved.name, role: approved.role };
      case 'unknown':
        return new Refusal(
          'not_found',
          'There is no such pending request. If it expired, their next message makes a new one.',
        );
      case 'limited':
        return new Refusal('too_many_tries', 'Too many codes. Please try again in a minute.');
      default:
        return approved satisfies never;
    }
  },
});

export const revokePerson = operation({
  name: 'pair/revoke',
  method: 'POST',
  right: 'operator',
  summary: 'Revokes an approval, or declines a request',
  input: z.strictObject({ ref: z.string().min(1).max(300).describe('`channel:id`') }),
  answer: z.object({
    ref: z.string(),
    isStillNamed: z.boolean().describe('The configuration gives them access, too'),
  }),
  refusals: ['invalid_input', 'not_found'],
  run: async (deps: PairDeps, { ref }, caller) => {
    if (!isRef(ref))
      return new Refusal(
        'invalid_input',
        `“${ref}” isn't in the form channel:id. See: ${parleyCommand} pair list`,
      );
    const { owners, allowFrom } = deps.policy.access;
    const revoked = await deps.store.write(revokeOnConsole, { ref, by: deciderOf(deps, caller) });
    deps.start(revoked.effects);
    const isStillNamed = owners.has(ref) || allowFrom.has(ref);
    if (revoked.people + revoked.requests > 0) return { ref, isStillNamed };
    const still = isStillNamed ? ` ${stillNamed}` : '';
    return new Refusal('not_found', `${stripText(ref)} has no approval or pending request.${still}`);
  },
});

/** Said of a person whose access doesn't depend on an approval. */
export const stillNamed = 'They still have access through the configuration: remove them there.';

function deciderOf({ texts, policy }: PairDeps, { by }: Caller): Decider {
  const role = policy.namedOwners.length > 0 ? 'user' : 'owner-if-none';
  return { ref: by, label: texts.whoAtConsole, isOwner: true, role };
}
