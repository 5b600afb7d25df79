/** Questions to the owner with buttons: who is let in, and which group is answered. From press to stored result. */
import { Readable } from 'node:stream';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/channel-kit/system-clock.ts';
import type { MediaAbility } from '../../src/contracts/channel-abilities.ts';
import { type MessageId, messageId } from '../../src/contracts/ids.ts';
import type { Button } from '../../src/contracts/outbound.ts';
import { noProbe } from '../../src/contracts/probe.ts';
import { releaseLeftFiles } from '../../src/inbound/media-retention.ts';
import { emptyMessage } from '../../src/inbound/stored-content.ts';
import { createOwnerQuestions } from '../../src/outbox/owner-questions.ts';
import { expireQuestion } from '../../src/store/access/decide-approval.ts';
import { revokeOnConsole } from '../../src/store/access/operate-access.ts';
import { readButton } from '../../src/store/approvals/approval.ts';
import type { Store, StoreQuery } from '../../src/store/base/command.ts';
import { json } from '../../src/store/base/json.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { readPendingContent } from '../store/access-builders.ts';
import { unique } from '../store/builders.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { holdRow } from '../store/hold-row.ts';
import { silentLog } from '../support/silent-log.ts';
import {
  type Account,
  anAccount,
  createIntakeFixture,
  type IntakeFixtureSettings,
  labelOf,
  refOf,
} from './support/intake-fixture.ts';

/** Returns a fixture with an owner on each of two networks, the first of whom has written; all others are strangers. */
async function aTown(store: Store, more: Partial<Parameters<typeof createIntakeFixture>[1]> = {}) {
  const owner = anAccount('alpha');
  const twin = anAccount('gamma');
  const settings = {
    config: { owners: [refOf(owner), refOf(twin)] },
    access: { dmPolicy: 'pairing', groupPolicy: 'allowlist' },
    ...more,
  } as const;
  const town = createIntakeFixture(store, settings);
  await town.send(owner, 'Good morning');
  return { ...town, owner, twin, settings };
}

const aPhoto = { ref: 'photo', kind: 'image' } as const;

const press = (data: string) => ({ kind: 'button', messageId: messageId('m1'), data }) as const;

/** Reads the newest open question in a conversation. */
async function questionIn(store: Store, { channel, peer, bot = 'bot' }: Account) {
  const asked = await store.read(questions, { conversationKey: `${channel}/${bot}/${peer}` });
  const last = asked.at(-1);
  if (!last) throw new Error('nothing was asked');
  return last;
}

const questions: StoreQuery<
  { readonly conversationKey: string },
  readonly { readonly text: string; readonly buttons: readonly Button[] }[]
> = {
  query: 'questions',
  run: async (tx, { conversationKey }) => {
    const rows = await tx.db
      .selectFrom('outbox')
      .select('content')
      .where('conversationKey', '=', conversationKey)
      .orderBy('place')
      .execute();
    return rows.flatMap((row) => {
      const content = json.outbound(row.content);
      return content.kind === 'text' && content.buttons
        ? [{ text: content.text.text, buttons: content.buttons }]
        : [];
    });
  },
};

describeEachDatabase('a question to the owner', (open, beside) => {
  it('lets a stranger in by a press, answers their first message, and says who decided', async () => {
    const town = await aTown(open());
    const eve = anAccount('beta');
    expect(await town.send(eve, 'Can you help me?', { eventKey: 'first' })).toMatchObject({
      kind: 'refused',
    });
    await town.send(eve, 'Hello?');
    const [told] = await town.said(eve);
    const code = /code ([A-Z2-9]{8})/.exec(told ?? '')?.[1] ?? 'none';
    const question = await questionIn(open(), town.owner);
    expect(question.text).toBe(
      `${labelOf(eve)} is asking to write to me at beta/bot. Their code: ${code} (valid for 60 min)`,
    );
    expect(question.buttons.map(({ label }) => label)).toEqual(['Approve', 'Refuse']);
    const [yes] = question.buttons;
    expect(await town.send(town.owner, press(yes?.id ?? ''))).toEqual({
      kind: 'pressed',
      result: 'approved',
      text: `${labelOf(eve)} may write to me now. Approved by ${labelOf(town.owner)}.`,
    });
    // It hadn't been sent yet, so it goes out with the decision already in it.
    expect((await town.said(town.owner)).at(-1)).toMatch(/may write to me now\. Approved by/);
    expect((await town.said(eve)).at(-1)).toBe('My owner has let you in. I’m answering your message now.');
    const { content, ledger } = await open().read(readPendingContent, { senderId: eve.peer });
    expect(content).toEqual(['Can you help me?']);
    expect(ledger).toEqual(['accepted null', 'refused dm-not-paired']);
    expect((await town.send(eve, 'And this?')).kind).toBe('accepted');
    expect(await town.send(town.owner, press(yes?.id ?? ''))).toEqual({
      kind: 'pressed',
      result: 'late',
      text: `Already approved by ${labelOf(town.owner)}.`,
    });
  });

  it.each([
    ['edited', ['Could you help me?'], 'My owner has let you in. I’m answering your message now.'],
    ['deleted', [], 'My owner has let you in. Just write to me.'],
  ] as const)('lets a stranger in whose message was %s meanwhile', async (change, answered, told) => {
    const town = await aTown(open());
    const eve = anAccount('beta');
    const id = messageId(crypto.randomUUID());
    const typed = { messageId: id, provenance: 'typed' } as const;
    const asked = { ...typed, text: 'Can you help me?', mentionsBot: false, repliesToBot: false } as const;
    await town.send(eve, { kind: 'message', attachments: [], ...asked });
    const edit = { kind: 'edit', ...typed, text: 'Could you help me?' } as const;
    const changed = await town.send(eve, change === 'edited' ? edit : { kind: 'delete', messageId: id });
    expect(changed).toEqual({ kind: 'refused', reason: 'dm-not-paired' });
    const [yes] = (await questionIn(open(), town.owner)).buttons;
    await town.send(town.owner, press(yes?.id ?? ''));
    expect((await open().read(readPendingContent, { senderId: eve.peer })).content).toEqual(answered);
    expect((await town.said(eve)).at(-1)).toBe(told);
  });

  it('decides a question once, even if two owners press at once in two processes', async () => {
    const second = await beside.open();
    onTestFinished(() => second.close());
    const town = await aTown(open());
    const other = createIntakeFixture(second, { ...town.settings, holder: 'boot-2' });
    for (let n = 0; n < 4; n++) {
      const eve = anAccount('alpha');
      await town.send(eve, 'Hi');
      const [yes, no] = (await questionIn(open(), town.owner)).buttons;
      const results = await Promise.all([
        town.send(town.owner, press(yes?.id ?? '')),
        other.send(town.twin, press(no?.id ?? '')),
      ]);
      const kinds = results.map((one) => (one.kind === 'pressed' ? one.result : one.kind));
      expect(kinds.filter((kind) => kind === 'late')).toHaveLength(1);
      const isIn = kinds.includes('approved');
      expect((await town.send(eve, 'Am I in?')).kind).toBe(isIn ? 'accepted' : 'refused');
      expect((await town.said(eve)).filter((text) => text.startsWith('My owner has let'))).toHaveLength(
        isIn ? 1 : 0,
      );
    }
  });

  it('lets nobody else decide a question, and treats a redelivered press as a duplicate', async () => {
    const town = await aTown(open());
    const [eve, ann] = [anAccount('alpha'), anAccount('alpha')];
    await town.send(eve, 'Hi');
    const [yes, no] = (await questionIn(open(), town.owner)).buttons;
    for (const who of [eve, ann])
      expect(await town.send(who, press(yes?.id ?? ''))).toEqual({
        kind: 'pressed',
        result: 'foreign',
        text: 'Only my owner may decide that.',
      });
    expect(await town.send(town.owner, press('a:zzzzzzzzzz:y'))).toMatchObject({ result: 'unknown' });
    expect(await town.send(town.owner, press('anything'))).toMatchObject({ result: 'unknown' });
    const refusal = press(no?.id ?? '');
    expect(await town.send(town.owner, refusal, { eventKey: 'p' })).toMatchObject({ result: 'denied' });
    expect(await town.send(town.owner, refusal, { eventKey: 'p' })).toEqual({
      kind: 'duplicate',
      of: { outcome: 'pressed', reason: 'denied' },
    });
    expect(await town.send(ann, refusal)).toMatchObject({
      result: 'foreign',
      text: `Already refused by ${labelOf(town.owner)}.`,
    });
    expect((await town.send(eve, 'Am I in?')).kind).toBe('refused');
  });

  it("forgets the stranger's message when nobody answers in time, and says so", async () => {
    const town = await aTown(open());
    const eve = anAccount('alpha');
    await town.send(eve, 'A secret');
    const [yes] = (await questionIn(open(), town.owner)).buttons;
    const kept = () => open().read(readKept, { peerId: eve.peer });
    expect(await kept()).toEqual([expect.stringContaining('A secret')]);
    await beside.sql(`update "approvals" set "expiresAt" = 1 where "state" = 'open'`);
    expect(await town.send(town.owner, press(yes?.id ?? ''))).toMatchObject({
      result: 'late',
      text: 'That question has expired.',
    });
    const { id = '' } = readButton(yes?.id ?? '') ?? {};
    await open().write(expireQuestion, { id });
    expect(await kept()).toEqual([null]);
    expect((await town.said(town.owner)).at(-1)).toBe(
      `${labelOf(eve)} asked to write to me, and nobody answered in time.`,
    );
  });

  it('says on the page that the first approval makes the owner, before and after it', async () => {
    const access = { dmPolicy: 'pairing', groupPolicy: 'allowlist' } as const;
    const town = createIntakeFixture(open(), { config: { owners: [] }, access });
    const [ann, bob] = [anAccount('alpha'), anAccount('alpha')];
    await town.send(ann, 'Hi');
    await town.send(bob, 'Hi');
    const list = createOwnerQuestions({
      ...{ store: open(), clock: systemClock, log: silentLog, probe: noProbe, texts: textsFor('en') },
      ...{ owners: [], start: () => undefined },
    });
    onTestFinished(() => list.stop());
    const questionOf = async (person: Account) =>
      (await list.questions()).find(({ text }) => text.startsWith(labelOf(person)));
    const first = await questionOf(ann);
    expect(first?.text).toMatch(/\nI have no owner yet: the first person approved becomes my owner/);
    expect(first?.choices.map(({ label }) => label)).toEqual(['Approve as owner', 'Refuse']);
    expect(await list.answer(first?.id ?? '', 'approve')).toMatchObject({
      text: expect.stringContaining(`${labelOf(ann)} is my owner now and may do everything.`),
    });
    const by = { ref: 'console', label: 'console', isOwner: true, role: 'user' } as const;
    onTestFinished(async () => void (await open().write(revokeOnConsole, { ref: refOf(ann), by })));
    expect((await town.said(ann)).at(-1)).toBe('You’re my owner now, so you may do everything here.');
    const second = await questionOf(bob);
    expect(second?.text).not.toContain('owner');
    expect(second?.choices.map(({ label }) => label)).toEqual(['Approve', 'Refuse']);
    const answered = await list.answer(second?.id ?? '', 'approve');
    expect(answered.text).toContain(`${labelOf(bob)} may write to me now.`);
  });

  it.runIf(beside.dialect === 'postgres')(
    'expires questions one by one, so that a locked account delays only its own',
    async () => {
      const town = await aTown(open());
      const [older, newer] = [anAccount('alpha'), anAccount('beta')];
      await town.send(older, 'Hi');
      await town.send(newer, 'Hi');
      await beside.sql(`update "approvals" set "expiresAt" = 1 where "state" = 'open'`);
      const release = await holdRow(beside, 'accounts', 'alpha/bot');
      const questions = createOwnerQuestions({
        ...{ store: open(), clock: systemClock, log: silentLog, probe: noProbe, texts: textsFor('en') },
        ...{ owners: [], start: () => undefined },
      });
      onTestFinished(() => questions.stop());
      const kept = ({ peer }: Account) => open().read(readKept, { peerId: peer });
      await expect.poll(() => kept(newer)).toEqual([null]);
      expect(await kept(older)).toEqual([expect.stringContaining('Hi')]);
      await release();
      await expect.poll(() => kept(older)).toEqual([null]);
    },
  );

  it('keeps only the files of the message that is answered once its sender is let in', async () => {
    const town = await aTown(open());
    const eve = anAccount('alpha');
    const shows = (text: string) =>
      town.send(eve, { ...emptyMessage, messageId: messageId(text), text, attachments: [aPhoto] });
    const refused = { kind: 'refused', reason: 'dm-not-paired' };
    expect(await shows('Look')).toEqual({ ...refused, keepsFiles: true });
    expect(await shows('And this')).toEqual(refused);
    const [yes] = (await questionIn(open(), town.owner)).buttons;
    await town.send(town.owner, press(yes?.id ?? ''));
    const { content } = await open().read(readPendingContent, { senderId: eve.peer });
    expect(content).toEqual(['Look']);

    // Files of people who are refused or delete their message: the network is retried until it answers, for 30 days.
    const [ann, bob] = [anAccount('alpha'), anAccount('alpha')];
    const shown = (ref: string) => ({
      ...{ ...emptyMessage, messageId: messageId(ref), text: 'Look' },
      attachments: [{ ref, kind: 'image' } as const],
    });
    await town.send(ann, shown('of ann'));
    const [, no] = (await questionIn(open(), town.owner)).buttons;
    await town.send(town.owner, press(no?.id ?? ''));
    const takesBack = async (who: Account, ref: string) => {
      await town.send(who, shown(ref));
      await town.send(who, { kind: 'delete', messageId: messageId(ref) });
    };
    await takesBack(bob, 'of bob');
    const asked: string[] = [];
    let media: MediaAbility | undefined;
    const release = (days = 0) => {
      const channelFor = () => media && { adapter: { media } };
      const clock = { ...systemClock, now: () => systemClock.now() + days * 86_400_000 };
      const deps = { store: open(), clock, log: silentLog, channelFor };
      return releaseLeftFiles(deps, new AbortController().signal);
    };
    await release();
    media = { fetch: () => Readable.from([]), release: () => Promise.reject(new Error('away')) };
    await release();
    const answers: MediaAbility = { ...media, release: async ({ ref }) => void asked.push(ref) };
    media = answers;
    await release();
    await release();
    expect(asked).toEqual(['of ann', 'of bob']);
    await takesBack(bob, 'of bob again');
    media = { ...media, release: () => Promise.reject(new Error('away')) };
    await release(30);
    media = answers;
    await release();
    expect(asked).toHaveLength(2);
  });

  it('accepts an answer by its id without a button, and a pairing also by the person', async () => {
    const town = await aTown(open());
    const [eve, ann] = [anAccount('alpha'), anAccount('alpha')];
    await town.send(eve, 'Hi');
    const [, no] = (await questionIn(open(), town.owner)).buttons;
    expect(no?.command).toMatch(/^\/deny [a-z2-9]{10}$/);
    expect(await town.send(town.owner, no?.command ?? '')).toEqual({ kind: 'command', command: 'deny' });
    expect((await town.said(town.owner)).at(-1)).toMatch(/may not write to me\. Refused by/);
    await town.send(ann, 'Hi');
    await town.send(town.owner, `/pair approve ${refOf(ann)}`);
    expect((await town.said(town.owner)).at(-1)).toContain(`send: /pair confirm ${refOf(ann)}`);
    await town.send(town.owner, `/pair confirm ${refOf(ann)}`);
    expect((await town.send(ann, 'Am I in?')).kind).toBe('accepted');
  });

  it('asks an owner who has only sent a command, and later in the chat where they wrote last', async () => {
    const [owner, eve, ann] = [anAccount('alpha'), anAccount('beta'), anAccount('beta')];
    const town = createIntakeFixture(open(), {
      config: { owners: [refOf(owner)] },
      access: { dmPolicy: 'pairing', groupPolicy: 'allowlist' },
    });
    await town.send(owner, '/whoami');
    await town.send(eve, 'Hello?');
    expect((await questionIn(open(), owner)).text).toContain(labelOf(eve));
    await town.send(owner, 'Good morning');
    await town.send(ann, 'Me too?');
    expect((await questionIn(open(), owner)).text).toContain(labelOf(ann));
  });

  it('never leaves /start without an answer', async () => {
    const town = await aTown(open(), { config: { owners: [] } });
    const eve = anAccount('alpha');
    for (const text of ['/start', '/start', 'Hello', '/start']) await town.send(eve, text);
    const said = await town.said(eve);
    expect(said[0]).toMatch(
      /run this on the machine I run on.*\n\.\/bin\/parley\.mjs pair approve [A-Z2-9]{8}$/,
    );
    expect(said.slice(1)).toEqual(Array(2).fill('I’m still waiting for my owner to let you in.'));
  });

  it("lets the owner's press enable a group until /activation off, even under the group's new id", async () => {
    const town = await aTown(open());
    const [{ owner }, ann] = [town, anAccount('alpha')];
    const group = `-${ann.peer}`;
    const place = { channel: 'alpha', peer: group };
    const asking = { group, mentionsBot: true };
    const refused = { kind: 'refused', reason: 'group-not-allowed' };
    expect(await town.send(ann, 'Hello bot', asking)).toEqual(refused);
    expect(await town.said(place)).toEqual([]);
    expect(await town.send(owner, 'Hello bot', asking)).toEqual(refused);
    await town.send(owner, 'Hello?', asking);
    expect(await town.said(place)).toEqual(['I don’t answer in this group yet.']);
    const [here] = (await questionIn(open(), place)).buttons;
    expect(here?.label).toBe('Answer here');
    expect(await town.send(ann, press(here?.id ?? ''), { group })).toMatchObject({ result: 'foreign' });
    expect(await town.send(owner, press(here?.id ?? ''), { group })).toMatchObject({ result: 'approved' });
    expect((await town.said(place)).at(-1)).toMatch(/^I now answer here when I’m mentioned\./);
    expect((await town.send(ann, 'Hello bot', asking)).kind).toBe('accepted');
    const grown = `${group}-grown`;
    await town.send(owner, { kind: 'migrated', to: grown as never }, { group });
    const there = { group: grown, mentionsBot: true };
    expect((await town.send(ann, 'Still there?', there)).kind).toBe('accepted');
    expect(await town.send(owner, '/activation off', there)).toMatchObject({ kind: 'command' });
    expect(await town.send(ann, 'Hello bot', there)).toEqual(refused);
    await town.send(owner, 'Come back', there);
    const again = await questionIn(open(), { channel: 'alpha', peer: grown });
    expect(await town.send(owner, again.buttons[0]?.command ?? '', { group: grown })).toEqual({
      kind: 'command',
      command: 'approve',
    });
    expect((await town.send(ann, 'Hello bot', there)).kind).toBe('accepted');
  });

  it('answers the mention that led to the question, in its present wording, once the group is enabled', async () => {
    const town = await aTown(open());
    const asked = async (change?: (group: string, messageId: MessageId) => Promise<unknown>) => {
      const group = `-${anAccount('alpha').peer}`;
      const messageId = unique('m') as MessageId;
      await town.send(town.owner, { kind: 'membership', isMember: true }, { group });
      await town.send(town.owner, '/status', { group, mentionsBot: true });
      const mention = { ...emptyMessage, messageId, text: 'What is new?', mentionsBot: true };
      await town.send(town.owner, mention, { group });
      await town.send(town.owner, 'And what else?', { group, mentionsBot: true });
      await change?.(group, messageId);
      const [here] = (await questionIn(open(), { channel: 'alpha', peer: group })).buttons;
      for (const _ of [1, 2]) await town.send(town.owner, press(here?.id ?? ''), { group });
      return open().read(readItems, { group });
    };
    expect(await asked()).toEqual([{ text: 'What is new?', state: 'waiting', authority: 'owner' }]);
    const edit = { kind: 'edit', text: 'What is old?', provenance: 'typed' } as const;
    const edited = await asked((group, messageId) =>
      town.send(town.owner, { ...edit, messageId }, { group }),
    );
    expect(edited).toMatchObject([{ text: 'What is old?' }]);
    const deleted = await asked((group, messageId) =>
      town.send(town.owner, { kind: 'delete', messageId }, { group }),
    );
    expect(deleted).toEqual([]);
  });

  it("says which setting lets a group in that /activation off can't disable", async () => {
    const [owner, group] = [anAccount('alpha'), `-${anAccount('alpha').peer}`];
    const off = async (access: NonNullable<IntakeFixtureSettings['access']>) => {
      const town = createIntakeFixture(open(), { config: { owners: [refOf(owner)] }, access });
      await town.send(owner, '/activation off', { group, mentionsBot: true });
      return (await town.said({ channel: 'alpha', peer: group })).at(-1);
    };
    expect(await off({ groupPolicy: 'open' })).toMatch(/^I answer in every group \(access\.groupPolicy\)\./);
    expect(await off({ groupPolicy: 'allowlist', allowGroups: [`alpha:${group}`] })).toMatch(
      /^This group is enabled in parley\.config\.json/,
    );
  });

  it('asks when the owner adds the bot to a group, but not when somebody else does', async () => {
    const town = await aTown(open());
    const ann = anAccount('alpha');
    const group = `-${ann.peer}`;
    const joined = { kind: 'membership', isMember: true } as const;
    await town.send(ann, joined, { group });
    expect(await town.said({ channel: 'alpha', peer: group })).toEqual([]);
    await town.send(town.owner, joined, { group });
    expect(await town.said({ channel: 'alpha', peer: group })).toEqual(['I don’t answer in this group yet.']);
  });
});

const readKept: StoreQuery<{ readonly peerId: string }, readonly (string | null)[]> = {
  query: 'readKept',
  run: async (tx, { peerId }) => {
    const rows = await tx.db.selectFrom('pairings').select('kept').where('peerId', '=', peerId).execute();
    return rows.map(({ kept }) => kept);
  },
};

const readItems: StoreQuery<{ readonly group: string }, readonly unknown[]> = {
  query: 'readItemsOfGroup',
  run: async (tx, { group }) => {
    const rows = await tx.db
      .selectFrom('inbox')
      .select(['content', 'state', 'authority'])
      .where('conversationKey', 'like', `%/${group}`)
      .execute();
    return rows.map(({ content, ...row }) => ({ text: JSON.parse(content).text, ...row }));
  },
};
