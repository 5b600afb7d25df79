/** Manages who may write to the agent; for owners, in a direct chat with the bot. */
import { localTime } from '#channel-kit/time-text.ts';
import {
  type AccessList,
  type ApprovedPerson,
  type PendingRequest,
  readAccess,
} from '../store/access/operate-access.ts';
import { approvePairing, lockPairing, type RequestName, showRequest } from '../store/access/pairing.ts';
import { lockRevocation, type RevokedAccess, revokeAccess } from '../store/access/revoke-access.ts';
import { type Decider, personLabel } from '../store/access/sender-roles.ts';
import type { CommandPlace, CommandScene, StepTx } from '../store/base/command.ts';
import { addEffects } from '../store/base/effects.ts';
import { type ChatTexts, fillText } from '../texts/chat-texts.ts';
import { deciderOf } from './approve.ts';
import { type CommandCall, type CommandDeps, chatCommand, type Problem } from './chat-command.ts';
import { hashPairingCode, readOneTimeCode } from './one-time-code.ts';

type PairRequest =
  | { readonly kind: 'list' }
  /** `approve` names the person the code would admit; `confirm` admits them. */
  | ({ readonly kind: 'approve' | 'confirm' } & NamedRequest)
  /** `channel:peer`. */
  | { readonly kind: 'revoke'; readonly ref: string };

/** A request, named by its code or its person: as typed, and as looked up in the store. */
type NamedRequest = { readonly which: string; readonly of: RequestName };

/** The value of `by` for an approval on the command line; in chat it is the owner's `channel:peer`. */
export const atConsole = 'console';
/** The same for an approval on the page. */
export const atPage = 'page';

/** How many requests, and how many people, `/pair list` shows. */
const shown = 20;

export const pair = chatCommand({
  name: 'pair',
  usage: '[list|approve code|confirm code|revoke channel:id]',
  menu: 'pairMenu',
  mayHaveCode: true,
  denial: 'pairDenied',
  parse,
  right: ({ chat, authority }) => (chat === 'dm' && authority === 'owner' ? 'allowed' : 'denied'),
  load,
  lock,
  apply,
  say,
});

function parse(words: string): PairRequest | Problem {
  const [, word = '', rest = ''] = /^(\S*)\s*([\s\S]*)$/.exec(words) ?? [];
  const verb = word.toLowerCase();
  switch (verb) {
    case '':
    case 'list':
      return rest === '' ? { kind: 'list' } : { problem: 'commandAlone', values: { command: '/pair list' } };
    case 'approve':
    case 'confirm': {
      const named = readRequestName(rest);
      return named ? { kind: verb, ...named } : { problem: 'pairCodeUsage', values: { verb } };
    }
    case 'revoke':
      return isRef(rest) ? { kind: 'revoke', ref: rest } : { problem: 'pairRevokeUsage' };
    default:
      return { problem: 'pairUsage' };
  }
}

/** Parses a code, whatever its case and separators, or `channel:peer`; undefined for anything else. */
export function readRequestName(typed: string): NamedRequest | undefined {
  const code = readOneTimeCode(typed);
  if (code !== undefined) return { which: code, of: { codeHash: hashPairingCode(code) } };
  return isRef(typed) ? { which: typed, of: { ref: typed } } : undefined;
}

/** Whether a text has the form `channel:peer`. */
export function isRef(text: string): boolean {
  return /^[a-z][a-z0-9-]*:\S+$/.test(text);
}

type PairInput =
  | { readonly kind: 'list'; readonly list: AccessList; readonly when: When }
  | ({ readonly kind: 'approve' | 'confirm'; readonly by: Decider } & NamedRequest)
  | {
      readonly kind: 'revoke';
      readonly ref: string;
      readonly isNamed: boolean;
      readonly by: Decider;
      readonly revoked?: RevokedAccess;
    };

async function load(
  { store, policy }: CommandDeps,
  call: CommandCall,
  request: PairRequest,
): Promise<PairInput> {
  switch (request.kind) {
    case 'list':
      return {
        kind: 'list',
        list: await store.read(readAccess, { limit: shown }),
        when: { now: call.now, timeZone: policy.timeZone },
      };
    case 'revoke': {
      const { owners, allowFrom } = policy.access;
      const isNamed = owners.has(request.ref) || allowFrom.has(request.ref);
      return { ...request, isNamed, by: deciderOf(call) };
    }
    default:
      return { ...request, by: deciderOf(call) };
  }
}

async function lock(tx: StepTx, place: CommandPlace, input: PairInput): Promise<PairInput> {
  switch (input.kind) {
    case 'list':
      break;
    case 'approve':
      await lockPairing(tx, place, { of: input.of });
      break;
    case 'confirm':
      await lockPairing(tx, place, input);
      break;
    default:
      return { ...input, revoked: await lockRevocation(tx, input.ref, place) };
  }
  return input;
}

async function apply(tx: StepTx, { conversationKey, effects }: CommandScene, input: PairInput) {
  switch (input.kind) {
    case 'list':
      return input;
    case 'approve': {
      const { by, of } = input;
      const offer = { to: by.ref, in: conversationKey };
      return { ...input, result: await showRequest(tx, { of, offer }) };
    }
    case 'confirm': {
      const { by, of } = input;
      return { ...input, result: await approvePairing(tx, { of, by, offeredIn: conversationKey }, effects) };
    }
    default: {
      const revoked = await revokeAccess(tx, input, input.revoked);
      addEffects(effects, revoked.effects);
      return { ...input, isRevoked: revoked.people + revoked.requests > 0 };
    }
  }
}

function say(facts: Awaited<ReturnType<typeof apply>>, texts: ChatTexts): string {
  if (facts.kind === 'list') return describeAccess(facts.list, facts.when, texts);
  if (facts.kind === 'revoke') {
    const who = facts.ref;
    const revoked = fillText(facts.isRevoked ? texts.pairingRevoked : texts.pairingNobody, { who });
    return facts.isNamed ? `${revoked} ${fillText(texts.pairingStillNamed, { who })}` : revoked;
  }
  const { result } = facts;
  switch (result.kind) {
    case 'asks':
      return fillText(texts.pairingConfirm, { who: personLabel(result), which: facts.which });
    case 'approved':
      return fillText(texts.pairingDone, { who: personLabel(result) });
    case 'limited':
      return texts.pairingLimited;
    default:
      return facts.kind === 'approve' ? texts.pairingUnknown : texts.pairingUnasked;
  }
}

/** Describes for others who approved. */
function whoDecided(by: string, texts: ChatTexts): string {
  if (by === atConsole) return texts.whoAtConsole;
  return by === atPage ? texts.whoAtPage : by;
}

/** When a list is shown, ms since the epoch, and the time zone of its dates; default: this machine's. */
type When = { readonly now: number; readonly timeZone?: string };

/** Describes pending requests and approved people, one line each. */
export function describeAccess(
  { requests, people }: AccessList,
  { now, timeZone }: When,
  texts: ChatTexts,
): string {
  const requestLine = (request: PendingRequest) =>
    fillText(texts.pairListRequest, {
      who: personLabel(request),
      code: request.code,
      account: request.account,
      minutes: Math.max(1, Math.ceil((request.expiresAt - now) / 60_000)),
    });
  const personLine = ({ account, role, approvedAt, approvedBy, ...person }: ApprovedPerson) =>
    fillText(texts.pairListPerson, {
      ...{ account, who: personLabel(person) },
      role: role === 'owner' ? texts.whoIsOwner : texts.whoIsUser,
      by: whoDecided(approvedBy, texts),
      since: localTime(approvedAt, timeZone).slice(0, 10),
    });
  const lines = [...requests.map(requestLine), ...people.map(personLine)];
  return lines.length === 0 ? texts.pairListEmpty : lines.join('\n');
}
