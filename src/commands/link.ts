/** Links several accounts as one person, after a code has proved that both belong to that person. */
import { agentId } from '#contracts/ids.ts';
import { type LinkedAccount, platformRef } from '../sessions/identities.ts';
import { sessionKeyOf } from '../sessions/session-key-of.ts';
import { personLabel } from '../store/access/sender-roles.ts';
import type { CommandScene, StepTx } from '../store/base/command.ts';
import { insertNotice } from '../store/delivery/part.ts';
import {
  beginLinkStep,
  issueCode,
  lockLinkStep,
  type NewCode,
  nameIdentity,
  type RedeemInput,
  type Rights,
  redeemCode,
  removeAccount,
  voidCode,
} from '../store/links/change-links.ts';
import { type ChatTexts, fillText, type TextKey } from '../texts/chat-texts.ts';
import { cleanLabel } from '../texts/untrusted-text.ts';
import {
  anyone,
  type CommandCall,
  type CommandDeps,
  type CommandPolicy,
  chatCommand,
  type Problem,
} from './chat-command.ts';
import { hashLinkCode, newOneTimeCode, readOneTimeCode } from './one-time-code.ts';
import { isRef } from './pair.ts';

type LinkRequest =
  | { readonly kind: 'ask' }
  | { readonly kind: 'list' }
  | { readonly kind: 'join' | 'confirm'; readonly code: string }
  /** `channel:peer`. */
  | { readonly kind: 'remove'; readonly target: string };

const codeMinutes = 10;

export const link = chatCommand({
  name: 'link',
  usage: '[code|confirm code|list|remove channel:id]',
  menu: 'linkMenu',
  mayHaveCode: true,
  parse,
  right: anyone,
  load,
  lock: async (tx, place, input) => {
    const changesLinks = input.kind !== 'list' && input.kind !== 'not-removable';
    if (changesLinks) await lockLinkStep(tx, place, input.kind === 'join' ? input.redeeming : undefined);
    return input;
  },
  apply,
  say,
});

function parse(words: string): LinkRequest | Problem {
  if (words === '') return { kind: 'ask' };
  const [word = '', target, ...more] = words.split(/\s+/);
  if (word.toLowerCase() === 'list' && target === undefined) return { kind: 'list' };
  if (word.toLowerCase() === 'remove') {
    const isAccount = target !== undefined && more.length === 0 && isRef(target);
    return isAccount ? { kind: 'remove', target } : { problem: 'linkRemoveUsage' };
  }
  const isConfirming = word.toLowerCase() === 'confirm';
  const code = readOneTimeCode(isConfirming ? words.slice(word.length) : words);
  return code === undefined ? { problem: 'linkUsage' } : { kind: isConfirming ? 'confirm' : 'join', code };
}

type LinkInput =
  | { readonly kind: 'ask'; readonly code: string; readonly newCode: NewCode }
  | { readonly kind: 'join'; readonly code: string; readonly name: string; readonly redeeming: RedeemInput }
  | {
      readonly kind: 'remove';
      readonly own: string;
      readonly target: string;
      readonly identity: string | undefined;
      readonly newIdentity: string;
    }
  /** A code that a group has seen no longer proves anything. */
  | { readonly kind: 'void'; readonly codeHash: string | undefined }
  | { readonly kind: 'list'; readonly own: string; readonly accounts: readonly LinkedAccount[] }
  | { readonly kind: 'not-removable'; readonly other: string; readonly isConfigured: boolean };

function load({ policy }: CommandDeps, call: CommandCall, request: LinkRequest): LinkInput {
  const { route, chat, sender } = call.envelope;
  if (chat.kind === 'group')
    return { kind: 'void', codeHash: 'code' in request ? hashLinkCode(request.code) : undefined };
  const own = platformRef(route.channel, sender.id);
  // An identity from the configuration takes precedence over the store's.
  const identity = policy.identityLinks.get(own);
  const name = cleanLabel(sender.name);
  switch (request.kind) {
    case 'ask': {
      const [code, newIdentity] = [newOneTimeCode(), nameIdentity()];
      const alias = aliasFor(policy, call, newIdentity);
      const ttlMs = codeMinutes * 60_000;
      const newCode = { peer: own, name, identity, newIdentity, alias, codeHash: hashLinkCode(code), ttlMs };
      return { kind: 'ask', code, newCode };
    }
    case 'list':
      return { kind: 'list', own, accounts: accountsOf(call, own) };
    case 'remove': {
      const { target } = request;
      const accounts = accountsOf(call, own);
      const found = accounts.find(({ ref }) => ref === target);
      const isConfigured = found?.source === 'configuration';
      if (found === undefined || accounts.length < 2 || isConfigured)
        return {
          kind: 'not-removable',
          other: target,
          isConfigured: isConfigured && accounts.length >= 2,
        };
      return { kind: 'remove', own, target, identity, newIdentity: nameIdentity() };
    }
    default: {
      const { code } = request;
      const isConfirmed = request.kind === 'confirm';
      const redeeming = {
        ...{ peer: own, isConfirmed, identity },
        codeHash: hashLinkCode(code),
        rights: rightsOf(policy),
      };
      return { kind: 'join', code, name, redeeming };
    }
  }
}

function accountsOf({ identities }: CommandCall, own: string): readonly LinkedAccount[] {
  const identity = identities.get(own);
  return identity === undefined ? [] : identities.accountsOf(identity);
}

/** Maps the session key that the account will have once linked to the lane of its current conversation. */
function aliasFor(
  { dmScope }: CommandPolicy,
  { envelope, identities, lane }: CommandCall,
  identity: string,
): NewCode['alias'] {
  const { route, chat, sender } = envelope;
  if (identities.get(platformRef(route.channel, sender.id)) !== undefined) return undefined;
  const { thread: _, ...place } = route;
  const agent = agentId(lane.agentId);
  const keyWith = (identityLinks: { get(ref: string): string | undefined }) =>
    sessionKeyOf({ route: place, chat, sender }, { agent, dmScope, identityLinks });
  const [key, laneKey] = [keyWith({ get: () => identity }), keyWith(identities)];
  return key === laneKey ? undefined : { key, laneKey };
}

/** Returns the rights as `authorityOf` sees them, for the store, which knows the links and approvals at that moment. */
function rightsOf({ access: { owners, allowFrom, dmPolicy } }: CommandPolicy): Rights {
  const named = [
    ...[...allowFrom].map((ref) => [ref, 'member'] as const),
    ...[...owners].map((ref) => [ref, 'owner'] as const),
  ];
  return { named: Object.fromEntries(named), approved: dmPolicy === 'pairing' ? 'member' : 'guest' };
}

async function apply(tx: StepTx, scene: CommandScene, input: LinkInput) {
  if (input.kind === 'list' || input.kind === 'not-removable') return input;
  await beginLinkStep(tx);
  switch (input.kind) {
    case 'ask':
      await issueCode(tx, scene, input.newCode);
      return input;
    case 'void':
      await voidCode(tx, input.codeHash);
      return input;
    case 'remove': {
      const { own, target } = input;
      const removed = await removeAccount(tx, input);
      if (removed.kind === 'removed' && target !== own)
        await tell(tx, scene, { ...removed, text: fillText(tx.texts.linkCutOff, { other: own }) });
      return { ...input, kind: removed.kind };
    }
    default: {
      const redeemed = await redeemCode(tx, scene, input.redeeming);
      if (redeemed.kind === 'linked') {
        const { peer } = input.redeeming;
        const other = personLabel({ ref: peer, name: input.name });
        const told = fillText(tx.texts.linkTold, { other, ref: peer });
        await tell(tx, scene, { ...redeemed.asker, text: withLowered(told, redeemed, tx.texts) });
      }
      const { isConfirmed } = input.redeeming;
      return { kind: 'join', code: input.code, isConfirmed, redeemed } as const;
    }
  }
}

type LinkNotice = Omit<Parameters<typeof insertNotice>[1], 'key'>;

/** Stores a notice for the other account's conversation. */
async function tell(tx: StepTx, { effects, partKey }: CommandScene, telling: LinkNotice): Promise<void> {
  effects.deliveries.push(await insertNotice(tx, { ...telling, key: partKey('told') }));
}

function withLowered(text: string, { isUneven }: { readonly isUneven: boolean }, texts: ChatTexts): string {
  return isUneven ? `${text}\n${texts.linkLowered}` : text;
}

type LinkFacts = Awaited<ReturnType<typeof apply>>;

function say(facts: LinkFacts, texts: ChatTexts): string {
  switch (facts.kind) {
    case 'ask':
      return fillText(texts.linkCode, { code: facts.code, minutes: codeMinutes });
    case 'void':
      return texts.linkOnlyDirect;
    case 'list':
      return describeAccounts(facts, texts);
    case 'not-removable':
      return fillText(facts.isConfigured ? texts.linkConfigured : texts.linkNotLinked, facts);
    case 'removed':
      return facts.target === facts.own
        ? texts.linkLeft
        : fillText(texts.linkRemoved, { other: facts.target });
    case 'not-linked':
      return fillText(texts.linkNotLinked, { other: facts.target });
    default:
      return sayRedeemed(facts, texts);
  }
}

const redeemTexts = {
  limited: 'linkTooMany',
  self: 'linkSelf',
  already: 'linkAlready',
  elsewhere: 'linkElsewhere',
  unsure: 'linkConfirm',
  linked: 'linkDone',
} as const satisfies Record<string, TextKey>;

function sayRedeemed(
  { code, isConfirmed, redeemed }: Extract<LinkFacts, { readonly kind: 'join' }>,
  texts: ChatTexts,
): string {
  if (redeemed.kind === 'wrong') return isConfirmed ? texts.linkUnasked : texts.linkWrong;
  const text = fillText(texts[redeemTexts[redeemed.kind]], { code, ...redeemed });
  return redeemed.kind === 'linked' ? withLowered(text, redeemed, texts) : text;
}

type ListFacts = { readonly own?: string; readonly accounts: readonly LinkedAccount[] };

/** Lists a person's accounts, each with the origin of its link; `own` is the asking account. */
export function describeAccounts({ own, accounts }: ListFacts, texts: ChatTexts): string {
  if (accounts.length < 2) return texts.linkNone;
  const lines = accounts.map(({ ref, source }) => {
    const marks = [
      ...(ref === own ? [texts.linkThisOne] : []),
      ...(source === 'configuration' ? [texts.linkByConfiguration] : []),
    ];
    return marks.length === 0 ? ref : `${ref} (${marks.join(', ')})`;
  });
  return [texts.linkList, ...lines].join('\n');
}
