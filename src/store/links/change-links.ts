/**
 * `/link`: proof from both sides makes two accounts one person. A code that was asked for from one
 * account and typed from the other links both, in the transaction that uses the code up. Nothing of
 * either conversation is moved: the session key of the person leads to the lane of the account that
 * asked, where its transcript, its run and what waits go on; what waits in the other conversation's lane
 * is answered there, and its transcript stays readable. Rights are not touched here: they hang on the
 * accounts (`src/inbound/authorise.ts`).
 */
import type { ReplyRoute } from '#contracts/route.ts';
import { personLabel } from '../access/person-label.ts';
import type { Tx } from '../base/command.ts';
import type { EventStep } from '../base/event-step.ts';
import type { LaneSpec } from '../base/lane-spec.ts';
import { insertPart } from '../delivery/insert-part.ts';
import { ensureLane, lockLane, takeSeq } from '../rows/lane-row.ts';
import { countGuess, lockLinks, mayGuess } from './guess-limit.ts';
import type { Asked, AskForCode, JoinByCode, LinkStep, RemoveAccount, VoidCode } from './link-step.ts';
import { crossesTrustLine } from './trust-line.ts';

export type Linking = {
  readonly step: LinkStep;
  readonly lane: LaneSpec;
  readonly route: ReplyRoute;
};

/** Safe to repeat as every event is: by its key in the ledger. */
export async function changeLinks(tx: Tx, accepting: EventStep, linking: Linking): Promise<void> {
  await lockLinks(tx);
  await blankExpired(tx);
  const answer = (text: string) =>
    say(tx, accepting, { name: 'answer', text, ...linking, laneKey: linking.lane.key });
  const { step } = linking;
  switch (step.kind) {
    case 'ask':
      await ensureLane(tx, linking.lane);
      await ask(tx, accepting, { step, linking });
      return answer(step.texts.asked);
    case 'join':
      return join(tx, accepting, { step, linking, answer });
    case 'remove':
      return remove(tx, accepting, { step, linking, answer });
    case 'void':
      await ensureLane(tx, linking.lane);
      await voidCode(tx, step);
      return answer(step.text);
    default:
      return step satisfies never;
  }
}

async function ask(
  tx: Tx,
  { input, proposal }: EventStep,
  { step, linking }: { step: AskForCode; linking: Linking },
): Promise<void> {
  const { peer, name, identity, newIdentity, alias, codeHash, ttlMs, texts } = step;
  await takeCode(tx, { peer });
  const asked: Asked = {
    ...{ peer, name, newIdentity, route: linking.route, laneKey: linking.lane.key, used: texts.used },
    ...(identity !== undefined && { identity }),
    ...(alias && { alias }),
  };
  const answerKey = keyOf({ input, proposal }, 'answer');
  const expiresAt = tx.now + ttlMs;
  await tx.db
    .insertInto('linkCodes')
    .values({ peer, codeHash, asked: JSON.stringify(asked), answerKey, expiresAt })
    .execute();
}

type Answering<Step> = {
  readonly step: Step;
  readonly linking: Linking;
  answer(text: string): Promise<void>;
};

async function join(
  tx: Tx,
  accepting: EventStep,
  { step, linking, answer }: Answering<JoinByCode>,
): Promise<void> {
  const { proposal } = accepting;
  const { peer, texts } = step;
  const isTried = await mayGuess(tx, peer);
  const asked = isTried ? await findCode(tx, step, proposal.conversationKey) : undefined;
  await lockBoth(tx, { lane: linking.lane, otherKey: asked?.laneKey });
  if (isTried) await countGuess(tx, { peer, isWrong: asked === undefined });
  if (!isTried) return answer(texts.tooMany);
  if (!asked) return answer(texts.wrong);
  const other = personLabel({ ref: asked.peer, name: asked.name });
  const named = (text: string) => text.replaceAll('{other}', () => other);
  const mine = step.identity ?? (await identityOf(tx, peer));
  const theirs = asked.identity ?? (await identityOf(tx, asked.peer));
  const hindrance = hindranceOf({ step, asked, mine, theirs });
  const identities = [mine, theirs].filter((one) => one !== undefined);
  const isUneven = await crossesTrustLine(tx, { peers: [peer, asked.peer], identities, rights: step.rights });
  const isSure = step.stage === 'confirmed' || (step.stage === 'typed' && !isUneven);
  if (hindrance === undefined && !isSure) {
    await offerCode(tx, step, proposal.conversationKey);
    return answer(named(texts.confirm));
  }
  await takeCode(tx, { codeHash: step.codeHash });
  if (hindrance !== undefined) return answer(named(hindrance));
  const identity = theirs ?? mine ?? asked.newIdentity;
  if (step.identity === undefined) await enter(tx, { peer, identity, route: linking.route });
  if (asked.identity === undefined) await enter(tx, { peer: asked.peer, identity, route: asked.route });
  if (theirs === undefined && mine === undefined && asked.alias) {
    await tx.db
      .insertInto('laneAliases')
      .values({ ...asked.alias, identity, peer: asked.peer })
      .execute();
  }
  const lowered = isUneven ? `\n${texts.lowered}` : '';
  const told = { name: 'told', route: asked.route, laneKey: asked.laneKey };
  await say(tx, accepting, { ...told, text: texts.told + lowered });
  return answer(named(texts.linked) + lowered);
}

type Meeting = {
  readonly step: JoinByCode;
  readonly asked: Asked;
  readonly mine: string | undefined;
  readonly theirs: string | undefined;
};

/** Why the two cannot be linked, with or without a second step. */
function hindranceOf({ step, asked, mine, theirs }: Meeting): string | undefined {
  const { peer, texts } = step;
  if (asked.peer === peer) return texts.self;
  if (mine === undefined || theirs === undefined) return undefined;
  return mine === theirs ? texts.already : texts.elsewhere;
}

/**
 * An account must not return to a lane that the others continue to use: it would read their messages. It starts
 * again in its own identity. Any other account finds its own conversation as it was before the link.
 */
async function remove(
  tx: Tx,
  accepting: EventStep,
  { step, linking, answer }: Answering<RemoveAccount>,
): Promise<void> {
  const { peer, target, texts } = step;
  await ensureLane(tx, linking.lane);
  const mine = step.identity ?? (await identityOf(tx, peer));
  const link = await tx.db.selectFrom('links').selectAll().where('peer', '=', target).executeTakeFirst();
  if (!link || link.identity !== mine) return answer(texts.notLinked);
  const lent = await tx.db
    .selectFrom('laneAliases')
    .select('key')
    .where('peer', '=', target)
    .executeTakeFirst();
  await (lent
    ? tx.db.updateTable('links').set({ identity: step.newIdentity }).where('peer', '=', target).execute()
    : tx.db.deleteFrom('links').where('peer', '=', target).execute());
  await takeCode(tx, { peer: target });
  if (target !== peer) {
    const route = JSON.parse(link.route) as ReplyRoute;
    await say(tx, accepting, { name: 'told', route, text: texts.told });
  }
  return answer(texts.removed);
}

async function voidCode(tx: Tx, { codeHash }: VoidCode): Promise<void> {
  if (codeHash !== undefined) await takeCode(tx, { codeHash });
}

/** In key order, as everybody locks several lanes. */
async function lockBoth(
  tx: Tx,
  { lane, otherKey }: { lane: LaneSpec; otherKey: string | undefined },
): Promise<void> {
  if (otherKey !== undefined && otherKey < lane.key) await lockLane(tx, otherKey);
  await ensureLane(tx, lane);
  if (otherKey !== undefined && otherKey > lane.key) await lockLane(tx, otherKey);
}

/**
 * Who asked with this code. One that was offered to somebody is good for nobody else; one that is confirmed
 * must have been offered to this account, in this conversation. The caller holds the lock of all links.
 */
async function findCode(tx: Tx, step: JoinByCode, place: string): Promise<Asked | undefined> {
  const row = await tx.db
    .selectFrom('linkCodes')
    .select(['asked', 'offeredTo', 'offeredIn'])
    .where('codeHash', '=', step.codeHash)
    .where('expiresAt', '>', tx.now)
    .executeTakeFirst();
  if (!row) return undefined;
  const isOffered = row.offeredTo === step.peer && row.offeredIn === place;
  const isFree = row.offeredTo === null || row.offeredTo === step.peer;
  const isGood = step.stage === 'confirmed' ? isOffered : isFree;
  return isGood ? (JSON.parse(row.asked) as Asked) : undefined;
}

async function offerCode(tx: Tx, { codeHash, peer }: JoinByCode, place: string): Promise<void> {
  await tx.db
    .updateTable('linkCodes')
    .set({ offeredTo: peer, offeredIn: place })
    .where('codeHash', '=', codeHash)
    .execute();
}

/** Uses up the code of this hash, or the one that this account has asked for. */
async function takeCode(
  tx: Tx,
  which: { readonly codeHash: string } | { readonly peer: string },
): Promise<Asked | undefined> {
  const query = tx.db.deleteFrom('linkCodes').where('expiresAt', '>', tx.now);
  const one =
    'peer' in which ? query.where('peer', '=', which.peer) : query.where('codeHash', '=', which.codeHash);
  const row = await one.returning(['asked', 'answerKey']).executeTakeFirst();
  if (!row) return undefined;
  const asked = JSON.parse(row.asked) as Asked;
  await blank(tx, { answerKey: row.answerKey, text: asked.used });
  return asked;
}

async function blankExpired(tx: Tx): Promise<void> {
  const expired = await tx.db
    .deleteFrom('linkCodes')
    .where('expiresAt', '<=', tx.now)
    .returning(['asked', 'answerKey'])
    .execute();
  for (const { asked, answerKey } of expired)
    await blank(tx, { answerKey, text: (JSON.parse(asked) as Asked).used });
}

/** The text that showed the code; one that is still to be sent says at once that the code is void. */
async function blank(tx: Tx, { answerKey, text }: { answerKey: string; text: string }): Promise<void> {
  const content = JSON.stringify({ kind: 'text', text: { text, spans: [] } });
  await tx.db.updateTable('outbox').set({ content }).where('key', '=', answerKey).execute();
}

async function identityOf(tx: Tx, peer: string): Promise<string | undefined> {
  const row = await tx.db.selectFrom('links').select('identity').where('peer', '=', peer).executeTakeFirst();
  return row?.identity;
}

type Entry = { readonly peer: string; readonly identity: string; readonly route: ReplyRoute };

/** An account that is in the identity already stays as it is. */
async function enter(tx: Tx, { peer, identity, route }: Entry): Promise<void> {
  const { replyTo: _, ...place } = route;
  await tx.db
    .insertInto('links')
    .values({ peer, identity, route: JSON.stringify(place), linkedAt: tx.now })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

type Saying = {
  readonly name: string;
  readonly route: ReplyRoute;
  readonly text: string;
  /** The timeline that holds it; its lane is locked. */
  readonly laneKey?: string;
};

async function say(tx: Tx, accepting: EventStep, { name, route, text, laneKey }: Saying): Promise<void> {
  const timeline = laneKey === undefined ? undefined : { laneKey, seq: await takeSeq(tx, laneKey) };
  const content = { kind: 'text', text: { text, spans: [] } } as const;
  const part = {
    key: keyOf(accepting, name),
    route,
    content,
    purpose: 'notice',
    ...(timeline && { timeline }),
  } as const;
  accepting.effects.deliveries.push(await insertPart(tx, part));
}

function keyOf({ input, proposal }: Pick<EventStep, 'input' | 'proposal'>, name: string): string {
  return `${input.account}:${proposal.eventKey}:${name}`;
}
