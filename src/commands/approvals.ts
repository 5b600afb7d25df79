/** Lists what waits for a person's approval and what is allowed for longer, and takes such a permission back. */
import { readOpenCallApprovals } from '../store/approvals/call-approval.ts';
import { endGrant, type Grant, readGrants } from '../store/approvals/grant.ts';
import { type ChatTexts, fillText } from '../texts/chat-texts.ts';
import { stripControls } from '../texts/untrusted-text.ts';
import { deciderOf } from './approve.ts';
import { adminsInGroups, anyone, chatCommand } from './chat-command.ts';

type Request = { readonly kind: 'list' } | { readonly kind: 'revoke'; readonly id: string };

type ListedCall = { readonly id: string; readonly tool: string; readonly shown: string };
type Found =
  | { readonly kind: 'list'; readonly open: readonly ListedCall[]; readonly grants: readonly Grant[] }
  | {
      readonly kind: 'revoke';
      readonly id: string;
      readonly by: string;
      /** The only lane whose permissions may be taken back; absent: any. */
      readonly laneKey?: string;
    };
type Facts = Found | { readonly kind: 'revoked' | 'unknown'; readonly id: string };

const listed = 20;
const shownLength = 120;

export const approvals = chatCommand<Request, Found, Facts>({
  name: 'approvals',
  usage: '[revoke id]',
  menu: 'approvalsMenu',
  parse: (words) => {
    const [, id] = /^revoke ([a-z0-9]{1,32})$/.exec(words.trim().toLowerCase()) ?? [];
    if (id !== undefined) return { kind: 'revoke', id };
    return words.trim() === '' ? { kind: 'list' } : { problem: 'approvalsUsage' };
  },
  right: (asker, request) => (request?.kind === 'revoke' ? adminsInGroups(asker) : anyone()),
  load: async ({ store }, call, request) => {
    const { lane, envelope, authority } = call;
    // An owner decides about everything, but reads it in private.
    const seesAll = authority === 'owner' && envelope.chat.kind === 'dm';
    const within = seesAll ? {} : { laneKey: lane.key };
    if (request.kind === 'revoke') return { ...request, ...within, by: deciderOf(call).label };
    const open = await store.read(readOpenCallApprovals, { limit: 200, isDue: false });
    const grants = await store.read(readGrants, within);
    const isListed = ({ grantLane }: { readonly grantLane: string }) => seesAll || grantLane === lane.key;
    const calls = open.filter(isListed).map(({ id, tool, shown }) => ({ id, tool, shown }));
    return { kind: 'list', open: calls.slice(0, listed), grants: grants.slice(0, listed) };
  },
  apply: async (tx, _, input) => {
    if (input.kind === 'list') return input;
    const { id } = input;
    return { kind: (await endGrant(tx, input)) ? 'revoked' : 'unknown', id };
  },
  say: (facts, texts) => {
    switch (facts.kind) {
      case 'list':
        return sayList(facts, texts);
      case 'revoked':
        return fillText(texts.approvalsRevoked, { id: facts.id });
      case 'unknown':
      case 'revoke':
        return fillText(texts.approvalsUnknown, { id: facts.id });
      default:
        return facts satisfies never;
    }
  },
});

function sayList({ open, grants }: Extract<Found, { readonly kind: 'list' }>, texts: ChatTexts): string {
  const waiting = open.map((each) => fillText(texts.approvalsOpen, valuesFor(each)));
  const allowed = grants.map(({ grantedBy: by, expiresAt, ...each }) =>
    fillText(texts.approvalsGrant, {
      ...valuesFor(each),
      by,
      until: new Date(expiresAt).toISOString().slice(0, 10),
    }),
  );
  const lines = [...waiting, ...allowed];
  return lines.length === 0 ? texts.approvalsNone : lines.join('\n');
}

function valuesFor({ id, tool, shown }: ListedCall) {
  const line = stripControls(shown.replaceAll('\n', ' '));
  return { id, tool, call: line.length > shownLength ? `${line.slice(0, shownLength)}…` : line };
}
