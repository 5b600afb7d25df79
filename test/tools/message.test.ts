import { expect, it } from 'vitest';
import { channelId, messageId } from '#contracts/ids.ts';
import type { MessageToolDeps } from '../../src/tools/message.ts';
import { exampleCapabilities } from '../channels/example/capabilities.ts';
import { aRoute } from '../replies/reply-builders.ts';
import { type Circumstances, call } from './message-call.ts';

/** Calls the tool with this text; returns what it sends and its output. */
const callWith = (text: string, { to, ...more }: Circumstances & { readonly to?: string } = {}) =>
  call({ text, ...(to !== undefined && { to }) }, more);

it.each(['NO_REPLY', ' **no_reply** ', '{"action": "NO_REPLY"}'])('sends nothing for %j', async (text) => {
  const { output, sent } = await callWith(text);
  expect(sent).toEqual([]);
  expect(output).toEqual({ text: expect.stringMatching(/^Nothing was sent/) });
});

it('removes the silent token from a message and remembers what was sent', async () => {
  const { output, sent } = await callWith('Done.\n\nNO_REPLY');
  expect(sent).toEqual(['Done.']);
  expect(output).toMatchObject({ text: 'Sent.', metadata: { sent: { text: 'Done.' } } });
});

it("shapes a message to another conversation by that network's limits", async () => {
  const there = { ...aRoute(), channel: channelId('there') };
  const capabilitiesFor: MessageToolDeps['capabilitiesFor'] = ({ channel }) => ({
    ...exampleCapabilities,
    text: { maxLength: channel === there.channel ? 20 : 4_000 },
  });
  const text = 'word '.repeat(30);
  const changes = { capabilitiesFor, routeTo: async () => there };
  const lengths = async (to?: string) =>
    (await callWith(text, { ...changes, ...(to !== undefined && { to }) })).sent.map(({ length }) => length);
  expect(Math.max(...(await lengths('agent:main:there')))).toBeLessThanOrEqual(20);
  expect(await lengths()).toHaveLength(1);
});

it('says that nothing was delivered only if nothing was', async () => {
  const text = 'word '.repeat(900);
  const refused = { state: 'failed', problem: 'not allowed here' } as const;
  await expect(callWith(text, { end: { ...refused, sentParts: 0 } })).rejects.toThrow(
    'It was not delivered: not allowed here',
  );
  await expect(callWith(text, { end: { ...refused, sentParts: 1 } })).rejects.toThrow(
    /^Only a part of it was delivered \(1 of \d messages\), but not the rest: not allowed here$/,
  );
});

const able = { capabilitiesFor: () => exampleCapabilities };
const answering = { route: { ...aRoute(), replyTo: messageId('41') } };

it('quotes the current message or one by its id, and returns its own id', async () => {
  const quoted = async (replyTo: string) => {
    const end = { receipts: [messageId('42')] };
    const { output, postings } = await call({ text: 'hi', replyTo }, { ...able, by: answering, end });
    expect(output).toMatchObject({ text: 'Sent as message 42.' });
    return postings.map(({ quotes, route }) => [quotes, route.replyTo]);
  };
  expect(await quoted('current')).toEqual([['41', undefined]]);
  expect(await quoted('17')).toEqual([['17', undefined]]);
});

it('says that a network cannot quote instead of sending without the quote', async () => {
  const mute = { capabilitiesFor: () => ({ ...exampleCapabilities, canQuote: false }) };
  const failure = { code: 'not_supported', message: expect.stringContaining('cannot show which message') };
  await expect(call({ text: 'hi', replyTo: 'current' }, { ...mute, by: answering })).rejects.toMatchObject(
    failure,
  );
});

it('has no current message if none started the turn, or in another conversation', async () => {
  const there = { ...able, routeTo: async () => aRoute() };
  const reply = { text: 'hi', replyTo: 'current' };
  await expect(call(reply, able)).rejects.toThrow('no current message');
  await expect(call({ ...reply, to: 'elsewhere' }, { ...there, by: answering })).rejects.toThrow(
    'no current',
  );
});

it('ignores what models fill in for unused arguments', async () => {
  const { sent } = await call({ text: 'hi', to: '', replyTo: null });
  expect(sent).toEqual(['hi']);
});

it('reacts with one emoji, which does not count as having answered', async () => {
  const react = (emoji: string, abilities = able) =>
    call({ action: 'react', message: 'current', emoji }, { ...abilities, by: answering });
  const { output, postings } = await react('👍🏽');
  const reaction = { kind: 'reaction', messageId: '41', emoji: '👍🏽' };
  expect(postings.map(({ contents }) => contents)).toEqual([[reaction]]);
  expect(output).toEqual({ text: 'Done.' });
  expect((await react('❤')).output).toEqual({ text: 'Done.' });
  for (const emoji of ['', 'ok', '👍👍', ':+1:']) await expect(react(emoji)).rejects.toThrow();
  const mute = { capabilitiesFor: () => ({ ...exampleCapabilities, canReact: false }) };
  await expect(react('👍', mute)).rejects.toMatchObject({ code: 'not_supported' });
});

it.each([
  [{ action: 'react', message: '1', emoji: '👍', text: 'hi' }],
  [{ action: 'send', text: 'hi', message: '1' }],
])('refuses arguments that the action does not take: %j', async (input) => {
  await expect(call(input, able)).rejects.toThrow(/[Uu]nrecognized key/);
});

it('lets only the owner act in other conversations', async () => {
  const there = { ...able, routeTo: async () => aRoute(), by: { authority: 'member' } } as const;
  for (const input of [{ text: 'hi' }, { action: 'react', message: '1', emoji: '👍' }])
    await expect(call({ ...input, to: 'elsewhere' }, there)).rejects.toThrow('Only the owner');
});

it.each([
  [
    { action: 'edit', message: 'last', text: 'better' },
    { kind: 'edit', messageId: 'last', text: { text: 'better' } },
  ],
  [
    { action: 'delete', message: '17' },
    { kind: 'delete', messageId: '17' },
  ],
])('changes a message, which does not count as having answered: %j', async (input, content) => {
  const { output, postings } = await call(input, able);
  expect(postings).toMatchObject([{ contents: [content], changesOwnOnly: false }]);
  const byGuest = await call(input, { ...able, by: { authority: 'guest' } });
  expect(byGuest.postings).toMatchObject([{ changesOwnOnly: true }]);
  expect(output).toEqual({ text: 'Done.' });
  const lacks = { capabilitiesFor: () => ({ ...exampleCapabilities, canEdit: false, canDelete: false }) };
  await expect(call(input, lacks)).rejects.toMatchObject({ code: 'not_supported' });
  const refused = { state: 'failed', problem: 'too old' } as const;
  await expect(call(input, { ...able, end: refused })).rejects.toThrow('It was not done: too old');
});

it.each([
  ['nothing to show', 'NO_REPLY'],
  ['does not fit into one message', 'word '.repeat(200)],
])('refuses the new text of a message: %s', async (problem, text) => {
  await expect(call({ action: 'edit', message: 'last', text }, able)).rejects.toThrow(problem);
});
