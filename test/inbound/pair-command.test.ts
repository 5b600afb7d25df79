/** `/pair`, `/whoami`, `/help` and `/start`, from the message to the answer that waits to be delivered. */

import { beforeEach, describe, expect, it } from 'vitest';
import { eventKey, messageId, peerId } from '../../src/contracts/ids.ts';
import { sharedFolder } from '../support/own-folder.ts';
import { openOwnStore } from '../support/own-store.ts';
import { type ChatState, envelopeOf, type Policies, type SenderState } from '../threats/access-cells.ts';
import { anAccessFixture, type Door } from '../threats/access-fixture.ts';
import { readDocumentedCommands } from './support/documented-commands.ts';

const network = 'telegram';
const pairing: Policies = { dmPolicy: 'pairing', groupPolicy: 'allowlist' };

describe("the owner's /pair command", () => {
  let door: Door;
  let count = 0;
  const dataDir = sharedFolder();
  const store = openOwnStore(dataDir);
  const open = async (policies = pairing) => {
    return anAccessFixture(store(), { dataDir: dataDir(), network, policies });
  };
  beforeEach(async () => {
    door = await open();
    door.change(`update "pairingTries" set "recent" = '[]'`);
    door.change(`delete from "pairings"`);
  });

  type Said = {
    readonly chat?: ChatState;
    readonly isAdmin?: boolean;
    readonly id?: string;
    readonly name?: string;
  };
  /** Sends the message; returns its outcome and the answer. */
  const say = async (
    sender: SenderState,
    text: string,
    { chat = 'dm', isAdmin = false, id, name = `Name of ${sender}` }: Said = {},
  ) => {
    const mark = `say-${++count}`;
    const cell = { event: 'text', sender, chat } as const;
    const who = { isAdmin, name, ...(id !== undefined && { id: peerId(id) }) };
    const envelope = envelopeOf(cell, { network, bot: door.bot, mark }, who);
    const event = { ...envelope.event, kind: 'message', text, messageId: messageId(mark) } as never;
    const [acceptance] = await door.accept([{ ...envelope, eventKey: eventKey(mark), event }]);
    const answers = door.rows(`select "content" from "outbox" where "key" like @account || ':${mark}:%'`);
    return { acceptance, answer: answers.map(({ content }) => JSON.parse(String(content)).text.text).join() };
  };
  const tries = () =>
    door
      .rows(`select "recent" from "pairingTries" where @account <> ''`)
      .flatMap(({ recent }) => JSON.parse(String(recent)));
  const codeIn = (text: string) => /code:? (\w{8})/.exec(text)?.[1] ?? 'none';

  it('lets a stranger in by the code, lists them and revokes them again', async () => {
    const { acceptance, answer } = await say('stranger', 'Hello?');
    expect(acceptance).toEqual({ kind: 'refused', reason: 'dm-not-paired' });
    const code = codeIn(answer);
    expect(await say('stranger', 'Anybody?')).toEqual({
      acceptance: { kind: 'refused', reason: 'dm-not-paired' },
      answer: '',
    });
    expect((await say('owner', '/pair')).answer).toMatch(
      /^asks: telegram:6 “Name of stranger” at .*, code [A-Z2-9]{8}, minutes left: 60$/m,
    );

    expect(await say('owner', `/pair approve ${code.toLowerCase()}`)).toEqual({
      acceptance: { kind: 'command', command: 'pair' },
      answer: `telegram:6 “Name of stranger” is asking for access. To let them in, send: /pair confirm ${code}`,
    });
    expect((await say('stranger', 'Am I in?')).acceptance?.kind).toBe('refused');
    expect(await say('owner', `/pair confirm ${code.toLowerCase()}`)).toEqual({
      acceptance: { kind: 'command', command: 'pair' },
      answer: 'telegram:6 “Name of stranger” may write to me now.',
    });
    expect((await say('stranger', 'Hello again')).acceptance?.kind).toBe('accepted');
    const inbox = door.rows(
      `select "authority" from "inbox" where "account" = @account and "senderId" = '6'`,
    );
    // Their first message is answered too.
    expect(inbox).toEqual([{ authority: 'member' }, { authority: 'member' }]);
    expect((await say('owner', '/pair list')).answer).toMatch(
      /^user: telegram:6 “Name of stranger” at .* by telegram:1$/m,
    );

    expect((await say('owner', '/pair revoke telegram:6')).answer).toBe(
      'telegram:6 may no longer write to me.',
    );
    expect((await say('stranger', 'And now?')).acceptance).toEqual({
      kind: 'refused',
      reason: 'dm-not-paired',
    });
    const left = door.rows(`select "outcome" from "inbox" where "account" = @account and "senderId" = '6'`);
    expect(left).toEqual([{ outcome: 'refused' }, { outcome: 'refused' }]);
  });

  it('lets an approved owner approve, until they are revoked', async () => {
    const code = codeIn((await say('stranger', 'Hello?')).answer);
    await say('owner', '/pair revoke telegram:2');
    expect((await say('approved as owner', `/pair approve ${code}`)).acceptance?.kind).toBe('refused');
    await say('owner', `/pair approve ${code}`);
    expect((await say('owner', `/pair confirm ${code}`)).answer).toMatch(
      /^telegram:6 .* may write to me now/,
    );
  });

  it('confirms a request only by the owner who was asked, in that conversation, once, and never by a name', async () => {
    const spoof = 'Ann” (telegram:1) “the owner';
    const asked = await say('stranger', 'Hello?', { name: spoof });
    const code = codeIn(asked.answer);
    const unasked = /^There’s nothing to confirm here\./;
    expect((await say('owner', `/pair confirm ${code}`)).answer).toMatch(unasked);
    expect((await say('owner', `/pair approve ${code}`)).answer).toMatch(
      /^telegram:6 “Ann telegram:1 the owner” is asking/,
    );
    expect((await say('approved as owner', `/pair confirm ${code}`)).answer).toMatch(unasked);
    // Only the owner who was shown the request last can confirm it.
    await say('approved as owner', `/pair approve ${code}`);
    expect((await say('owner', `/pair confirm ${code}`)).answer).toMatch(unasked);
    expect((await say('approved as owner', `/pair confirm ${code}`)).answer).toContain('may write');
    expect((await say('approved as owner', `/pair confirm ${code}`)).answer).toMatch(unasked);
  });

  it('says what is wrong with a code, who has no access, and who is named in the configuration', async () => {
    expect((await say('owner', '/pair approve ABCDEFGH')).answer).toMatch(
      /^There’s no such pending request\./,
    );
    expect((await say('owner', '/pair approve you')).answer).toMatch(
      /^Use \/pair approve and the person’s code/,
    );
    expect((await say('owner', '/pair revoke telegram:99')).answer).toBe(
      'telegram:99 has no approval or pending request.',
    );
    expect((await say('owner', '/pair revoke telegram:3')).answer).toBe(
      'telegram:3 has no approval or pending request. telegram:3 still has access through the configuration.',
    );
    for (let n = 0; n < 10; n++) await say('owner', '/pair approve ABCDEFGH');
    expect((await say('owner', '/pair approve ABCDEFGH')).answer).toMatch(/^Too many codes/);
  });

  it('approves nobody who opens a link, and gives no hint to guessers', async () => {
    const code = codeIn((await say('stranger', '/start ABCDEFGH')).answer);
    expect((await say('owner', `/start ${code}`)).answer).toBe(
      `telegram:6 “Name of stranger” is asking for access. To let them in, send: /pair approve ${code}`,
    );
    expect((await say('stranger', 'Am I in?')).acceptance?.kind).toBe('refused');
    expect((await say('owner', '/start ABCDEFGH')).answer).toMatch(/^Hello! .*\n.* \/link ABCDEFGH$/);
    // This tells a member nothing about a code.
    expect((await say('approved', `/start ${code}`)).answer).toMatch(/^Hello! /);
    expect(tries()).toHaveLength(2);
  });

  it.each<[string, SenderState, Said]>([
    ['a stranger', 'stranger', {}],
    ['an approved person', 'approved', {}],
    ['a configured person', 'allowed in DMs', {}],
    ['an admin of a group', 'stranger', { chat: 'listed', isAdmin: true }],
    ['the owner in a group', 'owner', { chat: 'listed', isAdmin: true }],
  ])('refuses an approval from %s', async (_name, sender, where) => {
    const code = codeIn((await say('stranger', 'Hello?', { id: '66' })).answer);
    const { acceptance } = await say(sender, `/pair approve ${code}`, where);
    expect(acceptance?.kind).toBe('refused');
    // No code was looked up for it.
    expect(tries()).toEqual([]);
    expect((await say('stranger', 'Am I in?', { id: '66' })).acceptance?.kind).toBe('refused');
  });

  it('shows the session to the owner only, and each person their id, role and commands', async () => {
    expect((await say('owner', '/whoami')).answer).toBe(
      `You are telegram:1, here as owner.\nAgent: main\nSession: main:${door.bot}:telegram:dm:1`,
    );
    expect((await say('approved', '/whoami')).answer).toBe(
      'You are telegram:4, here as member.\nAgent: main',
    );
    expect((await say('stranger', '/whoami', { chat: 'listed', isAdmin: true })).answer).toBe(
      'You are telegram:6, here as guest and as an administrator of this group.\nAgent: main',
    );
    const commandsOf = async (...said: Parameters<typeof say>) => {
      const { answer } = await say(said[0], '/help', said[2]);
      return answer.split('\n').map((line) => /^\/(\w+)/.exec(line)?.[1]);
    };
    const named = (who: RegExp) =>
      readDocumentedCommands().flatMap(({ name, inGroupsFor }) => (who.test(inGroupsFor) ? [name] : []));
    // Everybody may stop their own run, and ask in a group how to link.
    const everyone = /^everybody|^the sender|^nobody$/;
    const admins = named(new RegExp(`${everyone.source}|^administrators, owners$`));
    const groupAdmins = named(new RegExp(`${everyone.source}|^administrators, owners$|also administrators$`));
    expect(admins.length).toBeGreaterThan(named(everyone).length);
    expect(await commandsOf('stranger', '', { chat: 'listed' })).toEqual(named(everyone));
    expect(await commandsOf('stranger', '', { chat: 'listed', isAdmin: true })).toEqual(groupAdmins);
    expect(await commandsOf('owner', '', { chat: 'listed' })).toEqual(named(/^(?!.*direct chat: owners)/));
    expect(await commandsOf('approved', '')).toEqual(admins);
    expect(await commandsOf('owner', '')).toEqual(named(/./));
  });
});
