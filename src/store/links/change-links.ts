/**
 * `/link`: proof from both sides makes two accounts one person. A code that is issued to one account and sent from the
 * other links both, in the transaction that uses up the code. Neither conversation is moved: the identity's session key
 * leads to the lane of the account that asked for the code, where its transcript, run and waiting messages continue.
 * Messages waiting in the other conversation's lane are answered there, and its transcript remains readable. Rights
 * aren't changed here: they belong to the accounts (`src/inbound/authorize.ts`).
 */

import type { Authority } from '#contracts/outcome.ts';
import { type ReplyRoute, withoutQuote } from '#contracts/route.ts';
import { lockCommand, personLabel, readRolesOf } from '../access/sender-roles.ts';
import type { CommandPlace, CommandScene, StepTx, StoreCommand, StoreQuery, Tx } from '../base/command.ts';
import { type Effects, noEffects } from '../base/effects.ts';
import type { QueryParams } from '../base/prepared.ts';
import { changeRow, ensureRow, locking } from '../base/row-access.ts';
import { insertNotice } from '../delivery/part.ts';

/** A code to issue. Accounts are named `<channel>:<peer>`. */
export type NewCode = {
  readonly peer: string;
  /** The account's own name for itself, cleaned. */
  readonly name: string;
  /** The identity that the configuration assigns to the account. */
  readonly identity: string | undefined;
  /** Name for a new identity, if one begins. */
  readonly newIdentity: string;
  /** Leads the new identity's session key to the lane of the existing conversation. */
  readonly alias: { readonly key: string; readonly laneKey: string } | undefined;
  readonly codeHash: string;
  readonly ttlMs: number;
};

/** A link code that an account sends in chat. */
export type RedeemInput = {
  readonly peer: string;
  /**
   * True for the second step, from the same account in the same conversation. The first step only names the account
   * that the code would link, since the code may be somebody else's message, passed on over a network that doesn't mark
   * forwards.
   */
  readonly isConfirmed: boolean;
  readonly codeHash: string;
  readonly identity: string | undefined;
  readonly rights: Rights;
};

export type RedeemResult =
  | { readonly kind: 'limited' | 'wrong' | 'self' }
  /** `other`: label of the account that asked for the code. */
  | { readonly kind: 'already' | 'elsewhere' | 'unsure'; readonly other: string }
  | {
      readonly kind: 'linked';
      readonly other: string;
      /** The accounts have different rights. */
      readonly isUneven: boolean;
      /** Where the code was requested. */
      readonly asker: { readonly route: ReplyRoute; readonly laneKey: string };
    };

export type RemoveResult =
  | { readonly kind: 'not-linked' }
  /** `route`: where the account was linked. */
  | { readonly kind: 'removed'; readonly route: ReplyRoute };

/** Stored with a code until it is used. */
type StoredLinkRequest = Omit<NewCode, 'codeHash' | 'ttlMs'> & {
  readonly route: ReplyRoute;
  readonly laneKey: string;
};

const madeInChat = 'link.';

/** Returns a new identity's name. Configured names contain no dot, so it never matches one that the owner chose. */
export function nameIdentity(): string {
  return `${madeInChat}${crypto.randomUUID()}`;
}

/**
 * Locks all changes of links, and the command's account and lane. If it redeems a code, it also locks the lane in which
 * the code was requested.
 */
export async function lockLinkStep(tx: StepTx, place: CommandPlace, redeeming?: RedeemInput): Promise<void> {
  if (tx.dialect !== 'postgres') return;
  await lockLinks(tx);
  const isTried = redeeming !== undefined && (await hasAttemptLeft(tx, redeeming.peer));
  const asked = isTried ? await findCode(tx, redeeming, place.conversationKey) : undefined;
  await lockCommand(tx, place, { lanes: asked ? [{ key: asked.laneKey }] : [] });
}

/** Redacts expired codes. Call it after `lockLinkStep` and before every other step in this file. */
export async function beginLinkStep(tx: StepTx): Promise<void> {
  const expired = await tx.db
    .deleteFrom('linkCodes')
    .where('expiresAt', '<=', tx.now)
    .returning(['answerKey', 'offerKey'])
    .execute();
  for (const shown of expired) await redactCode(tx, shown);
}

/** Stores a code, replacing the account's earlier one. The scene's answer shows the code. */
export async function issueCode(tx: StepTx, scene: CommandScene, newCode: NewCode): Promise<void> {
  const { codeHash, ttlMs, ...account } = newCode;
  const { peer } = account;
  await takeCode(tx, { peer });
  const asked: StoredLinkRequest = { ...account, route: scene.route, laneKey: scene.laneKey };
  const [answerKey, expiresAt] = [scene.partKey('answer'), tx.now + ttlMs];
  await tx.db
    .insertInto('linkCodes')
    .values({ peer, codeHash, asked: JSON.stringify(asked), answerKey, expiresAt })
    .execute();
}

/** Links the account with the one that asked for the code, or says why it can't. */
export async function redeemCode(tx: StepTx, scene: CommandScene, input: RedeemInput): Promise<RedeemResult> {
  const { peer } = input;
  const isTried = await hasAttemptLeft(tx, peer);
  const asked = isTried ? await findCode(tx, input, scene.conversationKey) : undefined;
  if (isTried) await countGuess(tx, { peer, isWrong: asked === undefined });
  if (!isTried) return { kind: 'limited' };
  if (!asked) return { kind: 'wrong' };
  const other = personLabel({ ref: asked.peer, name: asked.name });
  const mine = input.identity ?? (await identityOf(tx, peer));
  const theirs = asked.identity ?? (await identityOf(tx, asked.peer));
  const meeting = await meet(tx, { peer, asked, mine, theirs });
  const identities = [mine, theirs].filter((one) => one !== undefined);
  const isUneven = await crossesTrustLine(tx, {
    peers: [peer, asked.peer],
    identities,
    rights: input.rights,
  });
  if (meeting.kind === 'joined' && !input.isConfirmed) {
    await offerCode(tx, scene, input);
    return { kind: 'unsure', other };
  }
  await takeCode(tx, { codeHash: input.codeHash });
  if (meeting.kind !== 'joined') return { kind: meeting.kind, other };
  const { identity } = meeting;
  if (input.identity === undefined) await addAccount(tx, { peer, identity, route: scene.route });
  if (asked.identity === undefined) await addAccount(tx, { peer: asked.peer, identity, route: asked.route });
  if (theirs === undefined && mine === undefined && asked.alias) {
    await tx.db
      .insertInto('laneAliases')
      .values({ ...asked.alias, identity, peer: asked.peer })
      .execute();
  }
  const { route, laneKey } = asked;
  return { kind: 'linked', other, isUneven, asker: { route, laneKey } };
}

type MeetingPeers = {
  readonly peer: string;
  readonly asked: StoredLinkRequest;
  readonly mine: string | undefined;
  readonly theirs: string | undefined;
};

type MeetResult =
  | { readonly kind: 'joined'; readonly identity: string }
  | { readonly kind: 'self' | 'already' | 'elsewhere' };

/** Returns the identity that both accounts would have, or why they can't be linked, for either step. */
async function meet(tx: Tx, { peer, asked, mine, theirs }: MeetingPeers): Promise<MeetResult> {
  if (asked.peer === peer) return { kind: 'self' };
  if (mine === undefined || theirs === undefined)
    return { kind: 'joined', identity: theirs ?? mine ?? asked.newIdentity };
  if (mine === theirs) return { kind: 'already' };
  if (await isAlone(tx, mine)) return { kind: 'joined', identity: theirs };
  return (await isAlone(tx, theirs)) ? { kind: 'joined', identity: mine } : { kind: 'elsewhere' };
}

/** Says whether the identity has a single account left, because the others have left: it may then move to another. */
async function isAlone(tx: Tx, identity: string): Promise<boolean> {
  if (!identity.startsWith(madeInChat)) return false;
  const accounts = tx.db.selectFrom('links').select('peer').where('identity', '=', identity).limit(2);
  return (await accounts.execute()).length < 2;
}

/**
 * Removes an account from its identity. If the others continue to use its lane, it must not return there, where it
 * would read their messages, so it starts over in its own identity. Any other account finds its own conversation as it
 * was before the link.
 */
export async function removeAccount(
  tx: StepTx,
  input: {
    readonly own: string;
    readonly target: string;
    readonly identity: string | undefined;
    /** Name for an identity with only this account, if it needs one. */
    readonly newIdentity: string;
  },
): Promise<RemoveResult> {
  const { own, target, identity, newIdentity } = input;
  const mine = identity ?? (await identityOf(tx, own));
  const link = await tx.db.selectFrom('links').selectAll().where('peer', '=', target).executeTakeFirst();
  if (!link || link.identity !== mine) return { kind: 'not-linked' };
  const lent = await tx.db
    .selectFrom('laneAliases')
    .select('key')
    .where('peer', '=', target)
    .executeTakeFirst();
  await (lent
    ? tx.db.updateTable('links').set({ identity: newIdentity }).where('peer', '=', target).execute()
    : tx.db.deleteFrom('links').where('peer', '=', target).execute());
  await takeCode(tx, { peer: target });
  return { kind: 'removed', route: JSON.parse(link.route) as ReplyRoute };
}

/** Voids a code that others have seen; does nothing without a hash. */
export async function voidCode(tx: StepTx, codeHash: string | undefined): Promise<void> {
  if (codeHash !== undefined) await takeCode(tx, { codeHash });
}

/**
 * Finds the request behind a code. A code that was offered to one account is valid for no other; a confirmed code must
 * have been offered to this account in this conversation. The caller must hold the lock of all links.
 */
async function findCode(tx: Tx, step: RedeemInput, place: string): Promise<StoredLinkRequest | undefined> {
  const row = await tx.db
    .selectFrom('linkCodes')
    .select(['asked', 'offeredTo', 'offeredIn'])
    .where('codeHash', '=', step.codeHash)
    .where('expiresAt', '>', tx.now)
    .executeTakeFirst();
  if (!row) return undefined;
  const isOffered = row.offeredTo === step.peer && row.offeredIn === place;
  const isFree = row.offeredTo === null || row.offeredTo === step.peer;
  const isGood = step.isConfirmed ? isOffered : isFree;
  return isGood ? (JSON.parse(row.asked) as StoredLinkRequest) : undefined;
}

/** Offers the code to the account. The scene's answer shows the code, and an earlier offer's text is redacted. */
async function offerCode(
  tx: StepTx,
  { conversationKey, partKey }: CommandScene,
  { codeHash, peer }: RedeemInput,
): Promise<void> {
  const codes = tx.db.selectFrom('linkCodes').select('offerKey').where('codeHash', '=', codeHash);
  const { offerKey } = await codes.executeTakeFirstOrThrow();
  await redactCode(tx, { offerKey });
  await tx.db
    .updateTable('linkCodes')
    .set({ offeredTo: peer, offeredIn: conversationKey, offerKey: partKey('answer') })
    .where('codeHash', '=', codeHash)
    .execute();
}

/** Uses up the code with this hash, or the one issued to this account. */
async function takeCode(
  tx: StepTx,
  which: { readonly codeHash: string } | { readonly peer: string },
): Promise<void> {
  const codes = tx.db.deleteFrom('linkCodes').returning(['answerKey', 'offerKey']);
  const one =
    'peer' in which ? codes.where('peer', '=', which.peer) : codes.where('codeHash', '=', which.codeHash);
  const row = await one.executeTakeFirst();
  if (row) await redactCode(tx, row);
}

type Shown = { readonly answerKey?: string; readonly offerKey: string | null };

/** Replaces the texts that showed the code; one that hasn't been sent yet will say that the code is void. */
async function redactCode(tx: StepTx, { answerKey, offerKey }: Shown): Promise<void> {
  const content = JSON.stringify({ kind: 'text', text: { text: tx.texts.linkCodeGone, spans: [] } });
  for (const key of [answerKey, offerKey]) if (key != null) await changeRow(tx, 'outbox', key, { content });
}

async function identityOf(tx: Tx, peer: string): Promise<string | undefined> {
  const row = await tx.db.selectFrom('links').select('identity').where('peer', '=', peer).executeTakeFirst();
  return row?.identity;
}

type Entry = { readonly peer: string; readonly identity: string; readonly route: ReplyRoute };

/** Adds an account to the identity; if it was alone in another one, it leaves that. */
async function addAccount(tx: Tx, { peer, identity, route }: Entry): Promise<void> {
  await tx.db
    .insertInto('links')
    .values({ peer, identity, route: JSON.stringify(withoutQuote(route)), linkedAt: tx.now })
    .onConflict((conflict) => conflict.column('peer').doUpdateSet({ identity }))
    .execute();
}

/*
 * A counter starts over once its window has passed without an attempt, so that no window of that length, wherever it
 * begins, contains more attempts than this.
 */

/** Wrong codes per account; the window is the lifetime of a code. */
const perPeer = { count: 5, windowMs: 600_000 };
/** Codes looked up in total, across all people. */
const forAll = { count: 10, windowMs: 60_000 };
const everybody = '*';

/**
 * Locks all attempts (and with them every change of links) until the transaction ends, and says whether this account
 * may try a code now. The counters are rows, so neither a restart nor a second process resets them.
 */
async function hasAttemptLeft(tx: Tx, peer: string): Promise<boolean> {
  const together = await readCount(tx, everybody, forAll.windowMs);
  if (together >= forAll.count) return false;
  return (await readCount(tx, peer, perPeer.windowMs)) < perPeer.count;
}

/** Counts a code that was looked up; only a wrong one counts against the account. */
async function countGuess(tx: Tx, { peer, isWrong }: { peer: string; isWrong: boolean }): Promise<void> {
  await add(tx, everybody, forAll.windowMs);
  if (isWrong) await add(tx, peer, perPeer.windowMs);
}

/** Locks the row that every change of links locks first. */
async function lockLinks(tx: Tx): Promise<void> {
  await readCount(tx, everybody, forAll.windowMs);
}

async function readCount(tx: Tx, peer: string, windowMs: number): Promise<number> {
  let row = await lockedGuesses.first(tx, { peer });
  if (!row) {
    await ensureRow(tx, 'linkGuesses', { peer, since: 0, count: 0 });
    row = await lockedGuesses.one(tx, { peer });
  }
  return row.since + windowMs > tx.now ? row.count : 0;
}

const lockedGuesses = locking((db, of: QueryParams<{ peer: string }>) =>
  db.selectFrom('linkGuesses').select(['since', 'count']).where('peer', '=', of.peer),
);

async function add(tx: Tx, peer: string, windowMs: number): Promise<void> {
  const count = await readCount(tx, peer, windowMs);
  await tx.db
    .updateTable('linkGuesses')
    .set({ since: tx.now, count: count + 1 })
    .where('peer', '=', peer)
    .execute();
  const forgotten = tx.now - Math.max(perPeer.windowMs, forAll.windowMs);
  await tx.db
    .deleteFrom('linkGuesses')
    .where('since', '<=', forgotten)
    .where('peer', '<>', everybody)
    .execute();
}

/** Rights from the configuration; stored roles are applied on top. */
export type Rights = {
  /** Accounts that the configuration names, `<channel>:<peer>`. */
  readonly named: Readonly<Record<string, Authority>>;
  /** Rights of an approved user. */
  readonly approved: Authority;
};

type JoinedPeers = {
  readonly peers: readonly string[];
  /** Accounts already linked in these identities count too. */
  readonly identities: readonly string[];
  readonly rights: Rights;
};

/** Says whether the accounts that would become one person currently have different rights. */
async function crossesTrustLine(tx: Tx, { peers, identities, rights }: JoinedPeers): Promise<boolean> {
  const linked =
    identities.length === 0
      ? []
      : await tx.db.selectFrom('links').select('peer').where('identity', 'in', identities).execute();
  const refs = [...new Set([...peers, ...linked.map(({ peer }) => peer)])];
  const roles = await readRolesOf.run(tx, { refs });
  const authorityOf = (ref: string): Authority => {
    const role = roles.get(ref);
    if (role === 'owner') return 'owner';
    if (Object.hasOwn(rights.named, ref)) return rights.named[ref] ?? 'guest';
    return role === 'user' ? rights.approved : 'guest';
  };
  return new Set(refs.map(authorityOf)).size > 1;
}

// Links made in chat, for the operator to list and end. The operator never creates one, since a link requires proof
// from both accounts.

/** An account that was linked in chat; `peer`: `<channel>:<peer>`. */
type ChatLink = { readonly peer: string; readonly identity: string; readonly linkedAt: number };

/** Reads the accounts that were linked in chat, grouped by identity, in the order in which they joined. */
export const readChatLinks: StoreQuery<{ readonly limit: number }, readonly ChatLink[]> = {
  query: 'readChatLinks',
  run: (tx, { limit }) =>
    tx.db
      .selectFrom('links')
      .select(['peer', 'identity', 'linkedAt'])
      .orderBy('identity')
      .orderBy('linkedAt')
      .orderBy('peer')
      .limit(limit)
      .execute(),
};

/**
 * Removes an account from its identity, like `/link remove` from another account, and notifies it. Safe to repeat: an
 * account that isn't linked stays as it is.
 */
export const removeLink: StoreCommand<
  {
    readonly peer: string;
    /** Key of the notice to the account. */
    readonly noticeKey: string;
  },
  { readonly isRemoved: boolean; readonly effects: Effects }
> = {
  name: 'removeLink',
  run: async (tx, { peer, noticeKey }) => {
    const effects = noEffects();
    if (tx.dialect === 'postgres') await lockLinks(tx);
    await beginLinkStep(tx);
    const asked = { own: peer, target: peer, identity: undefined, newIdentity: nameIdentity() };
    const removed = await removeAccount(tx, asked);
    if (removed.kind === 'not-linked') return { isRemoved: false, effects };
    const notice = { key: noticeKey, route: removed.route, text: tx.texts.linkEndedByOwner };
    effects.deliveries.push(await insertNotice(tx, notice));
    return { isRemoved: true, effects };
  },
};
