/** A command is never text for the model, whether it is unknown or its sender may not use it. */
import { expect, it } from 'vitest';
import type { StoreQuery } from '../../src/store/base/command.ts';
import { json } from '../../src/store/base/json.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { anAccount, createIntakeFixture } from './support/intake-fixture.ts';

describeEachDatabase('invalid commands', (open) => {
  it.each([
    ['/nwe', 'Unknown command /nwe. Did you mean /new?'],
    ['/frobnicate it', 'Unknown command /frobnicate. /help shows the ones I know.'],
    ['/stop@other_bot', 'Unknown command /stop@other_bot. Did you mean /stop?'],
    [
      '/activation always',
      '/activation is for groups: it sets whether I answer every message there, or only when I’m mentioned. Here I always answer.',
    ],
    ['/pair list', 'Only my owner may use /pair, in a direct chat with me.'],
  ])('answers %j in a direct chat without the model', async (text, answer) => {
    const town = createIntakeFixture(open());
    const ann = anAccount('alpha');
    expect((await town.send(ann, text)).kind).toMatch(/^(command|refused)$/);
    expect(await town.said(ann)).toEqual([answer]);
  });

  it('leaves a path to the model', async () => {
    const town = createIntakeFixture(open());
    expect((await town.send(anAccount('alpha'), '/etc/hosts is wrong')).kind).toBe('accepted');
  });

  it('leaves an unknown command in a group to another bot unless this one is addressed', async () => {
    const town = createIntakeFixture(open());
    const ann = anAccount('alpha');
    const group = `${ann.peer}-group`;
    const place = { channel: 'alpha', peer: group };
    await town.send(ann, '/activation always', { group, isAdmin: true });
    const forOther = { kind: 'ignored', reason: 'for-other-bot' };
    expect(await town.send(ann, '/weather', { group })).toEqual(forOther);
    expect(await town.send(ann, '/new@other_bot', { group, mentionsBot: true })).toEqual(forOther);
    expect((await town.send(ann, '/weather@bot', { group, mentionsBot: true })).kind).toBe('command');
    expect((await town.said(place)).slice(1)).toEqual([
      'Unknown command /weather. /help shows the ones I know.',
    ]);
  });

  it("follows the bot's name when it changes", async () => {
    let botName = 'old_bot';
    const town = createIntakeFixture(open(), { botName: () => botName });
    const ann = anAccount('alpha');
    const scene = { group: `${ann.peer}-group`, mentionsBot: true };
    const toldOf = async (text: string) => (await town.send(ann, text, scene)).kind;
    expect([await toldOf('/status@old_bot'), await toldOf('/status@new_bot')]).toEqual([
      'command',
      'ignored',
    ]);
    botName = 'new_bot';
    expect([await toldOf('/status@old_bot'), await toldOf('/status@new_bot')]).toEqual([
      'ignored',
      'command',
    ]);
  });

  it('says who may use a command that the sender may not use', async () => {
    const town = createIntakeFixture(open());
    const ann = anAccount('alpha');
    const group = `${ann.peer}-group`;
    expect(await town.send(ann, '/new', { group })).toEqual({ kind: 'refused', reason: 'not-permitted' });
    expect(await town.said({ channel: 'alpha', peer: group })).toEqual([
      'Only an admin of this group or my owner may use /new.',
    ]);
  });
});

describeEachDatabase('a command shown again in a direct chat', (open) => {
  it.each([
    ['/status', '/status'],
    ['/queue  collect\ndebounce:2s', '/queue  collect\ndebounce:2s'],
    [`/think ${'x'.repeat(600)}`, `/think ${'x'.repeat(493)}`],
    ['/pair approve ABCD2345', '/pair'],
    ['/link\nABCD2345', '/link'],
    ['/link confirm ABCD2345', '/link'],
    ['/start link_ABCD2345', '/start'],
    ['/start ABCD2345', '/start'],
    ['/piar approve ABCD2345', '/piar'],
  ])('stores a command with its answer, %j as %j, and never with a code', async (text, stored) => {
    const town = createIntakeFixture(open());
    const ann = anAccount('alpha');
    await town.send(ann, text);
    const [asked] = await open().read(askedIn, { conversationKey: `alpha/bot/${ann.peer}` });
    expect(asked).toMatchObject({ name: `Person ${ann.peer}`, text: stored });
  });

  it("doesn't store a command with its answer in a group", async () => {
    const town = createIntakeFixture(open());
    const ann = anAccount('alpha');
    const group = `${ann.peer}-group`;
    await town.send(ann, '/status', { group, isAdmin: true, mentionsBot: true });
    expect(await open().read(askedIn, { conversationKey: `alpha/bot/${group}` })).toEqual([undefined]);
  });
});

const askedIn: StoreQuery<{ readonly conversationKey: string }, readonly unknown[]> = {
  query: 'askedIn',
  run: async (tx, { conversationKey }) => {
    const query = tx.db.selectFrom('outbox').select('content').where('conversationKey', '=', conversationKey);
    return (await query.execute()).map(({ content }) => {
      const shown = json.outbound(content);
      return 'asked' in shown ? shown.asked : undefined;
    });
  },
};
