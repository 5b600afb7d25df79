/** `/link`: what it asks the store for, and every text that may come of it. */
import { agentId } from '#contracts/ids.ts';
import { cleanLabel } from '../replies/clean-untrusted.ts';
import type { Identities } from '../sessions/identities.ts';
import { platformRef } from '../sessions/platform-ref.ts';
import { sessionKeyOf } from '../sessions/session-key-of.ts';
import { personLabel } from '../store/access/person-label.ts';
import type { CommandEffect, Decision } from '../store/intake/proposal.ts';
import type { AskForCode, JoinByCode, LinkStep, RemoveAccount } from '../store/links/link-step.ts';
import type { Rights } from '../store/links/trust-line.ts';
import { fillNotice, type Notices } from '../texts/notices.ts';
import type { AccessPolicy } from './access-policy.ts';
import type { Gate } from './gate.ts';
import type { LinkRequest } from './link-request.ts';
import { hashOneTimeCode, newOneTimeCode } from './one-time-code.ts';
import { type CommandArrival, identitiesOf } from './propose.ts';

const codeMinutes = 10;
/** Keeps a link code from being of use for anything else. */
const purpose = 'link';

/** Either a change of links, or an answer that changes nothing. */
export type LinkDecision =
  | Extract<Decision, { kind: 'link' }>
  | { readonly kind: 'answer'; readonly text: string };

type Stop = Extract<CommandEffect, { kind: 'stop' }>;

export function decideLink(gate: Gate, command: CommandArrival, request: LinkRequest): LinkDecision {
  const { lane, arrival } = command;
  const { route, chat } = arrival.envelope;
  const change = (step: LinkStep) => ({ kind: 'link', step, lane, route }) as const;
  if (chat.kind === 'group') {
    const codeHash = 'code' in request ? hashOneTimeCode(purpose, request.code) : undefined;
    const text = gate.notices.linkOnlyDirect;
    return change({ kind: 'void', text, ...(codeHash !== undefined && { codeHash }) });
  }
  const linking = linkingOf(gate, command);
  switch (request.kind) {
    case 'ask':
      return change(askStep(gate, linking));
    case 'join':
    case 'confirm':
      return change(joinStep(gate, linking, request));
    case 'list':
      return { kind: 'answer', text: describeAccounts(linking, gate.notices) };
    case 'remove':
      return (
        decideRemoval(gate, linking, request.target) ?? change(removeStep(gate, linking, request.target))
      );
    default:
      return request satisfies never;
  }
}

type Linking = {
  readonly command: CommandArrival;
  readonly identities: Identities;
  readonly own: string;
  /** What the sender is called; no proof of anything. */
  readonly name: string;
  /** Where the configuration has put the account: there the store has nothing to say. */
  readonly configured: { readonly identity?: string };
};

function linkingOf(gate: Gate, command: CommandArrival): Linking {
  const { route, sender } = command.arrival.envelope;
  const own = platformRef(route.channel, sender.id);
  const identity = gate.identityLinks.get(own);
  const configured = identity === undefined ? {} : { identity };
  const name = cleanLabel(sender.name);
  return { command, identities: identitiesOf(gate, command.arrival), own, name, configured };
}

function askStep(gate: Gate, linking: Linking): AskForCode {
  const { own, name, configured } = linking;
  const code = newOneTimeCode();
  const newIdentity = nameIdentity();
  const alias = aliasFor(gate, linking, newIdentity);
  return {
    ...{ kind: 'ask', peer: own, name, newIdentity, ...configured },
    codeHash: hashOneTimeCode(purpose, code),
    ttlMs: codeMinutes * 60_000,
    ...(alias && { alias }),
    texts: {
      asked: fillNotice(gate.notices.linkCode, { code, minutes: codeMinutes }),
      used: gate.notices.linkCodeGone,
    },
  };
}

/** Configured names hold no dot, so that no person can be made one with those the owner has named. */
function nameIdentity(): string {
  return `link.${crypto.randomUUID()}`;
}

/** Where the conversation of the account stands so far, for the session key that it would have when linked. */
function aliasFor(gate: Gate, { identities, own, command }: Linking, identity: string): AskForCode['alias'] {
  if (identities.get(own) !== undefined) return undefined;
  const { route, chat, sender } = command.arrival.envelope;
  const { thread: _, ...place } = route;
  const keyWith = (identityLinks: Pick<Identities, 'get'>) =>
    sessionKeyOf(
      { route: place, chat, sender },
      { agent: agentId(command.lane.agentId), dmScope: gate.dmScope, identityLinks },
    );
  const [key, laneKey] = [keyWith({ get: () => identity }), keyWith(identities)];
  return key === laneKey ? undefined : { key, laneKey };
}

type Joining = Extract<LinkRequest, { readonly kind: 'join' | 'confirm' }>;

function joinStep(
  { notices, access }: Gate,
  { own, name, configured }: Linking,
  request: Joining,
): JoinByCode {
  const { kind, code } = request;
  const stage = kind === 'confirm' ? 'confirmed' : request.isFromLink ? 'unsure' : 'typed';
  return {
    ...{ kind: 'join', peer: own, stage, rights: rightsOf(access), ...configured },
    codeHash: hashOneTimeCode(purpose, code),
    texts: {
      confirm: fillNotice(notices.linkConfirm, { code }),
      linked: notices.linkDone,
      told: fillNotice(notices.linkTold, { other: personLabel({ ref: own, name }), ref: own }),
      lowered: notices.linkLowered,
      wrong: kind === 'confirm' ? notices.linkUnasked : notices.linkWrong,
      tooMany: notices.linkTooMany,
      self: notices.linkSelf,
      already: notices.linkAlready,
      elsewhere: notices.linkElsewhere,
    },
  };
}

/** As `authorityOf` sees it, for the store, which knows who is linked and approved at the moment of the link. */
function rightsOf({ owners, allowFrom, dmPolicy }: AccessPolicy): Rights {
  const named = [
    ...[...allowFrom].map((ref) => [ref, 'member'] as const),
    ...[...owners].map((ref) => [ref, 'owner'] as const),
  ];
  return { named: Object.fromEntries(named), approved: dmPolicy === 'pairing' ? 'member' : 'guest' };
}

/** What needs no look at the store; undefined when it does. */
function decideRemoval(gate: Gate, { identities, own }: Linking, target: string): LinkDecision | undefined {
  const { notices } = gate;
  const identity = identities.get(own);
  const accounts = identity === undefined ? [] : identities.accountsOf(identity);
  const found = accounts.find(({ ref }) => ref === target);
  if (found === undefined || accounts.length < 2)
    return { kind: 'answer', text: fillNotice(notices.linkNotLinked, { other: target }) };
  if (found.source === 'configuration')
    return { kind: 'answer', text: fillNotice(notices.linkConfigured, { other: target }) };
  return undefined;
}

function removeStep({ notices }: Gate, { own, configured }: Linking, target: string): RemoveAccount {
  const isSelf = target === own;
  return {
    ...{ kind: 'remove', peer: own, target, newIdentity: nameIdentity(), ...configured },
    texts: {
      removed: isSelf ? notices.linkLeft : fillNotice(notices.linkRemoved, { other: target }),
      told: fillNotice(notices.linkCutOff, { other: own }),
      notLinked: fillNotice(notices.linkNotLinked, { other: target }),
    },
  };
}

function describeAccounts({ identities, own }: Linking, notices: Notices): string {
  const identity = identities.get(own);
  const accounts = identity === undefined ? [] : identities.accountsOf(identity);
  if (accounts.length < 2) return notices.linkNone;
  const lines = accounts.map(({ ref, source }) => {
    const marks = [
      ...(ref === own ? ['this one'] : []),
      ...(source === 'configuration' ? ['by the configuration'] : []),
    ];
    return marks.length === 0 ? ref : `${ref} (${marks.join(', ')})`;
  });
  return [notices.linkList, ...lines].join('\n');
}

/** For `/stop`: every account of the person, and where this one wrote before it was linked. */
export function reachOfStop(gate: Gate, command: CommandArrival): Stop['linked'] {
  const { route, chat, sender } = command.arrival.envelope;
  const identities = identitiesOf(gate, command.arrival);
  const identity = chat.kind === 'dm' ? identities.get(platformRef(route.channel, sender.id)) : undefined;
  if (identity === undefined) return undefined;
  const settings = { agent: agentId(command.lane.agentId), dmScope: gate.dmScope };
  const formerLane = sessionKeyOf({ route, chat, sender }, { ...settings, identityLinks: new Map() });
  return { people: identities.accountsOf(identity).map(({ ref }) => ref), formerLane };
}
