/** What people do, as it arrives: checked against the project's own document and against what was observed. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { againstSwagger } from './fairness.ts';
import { type SignalServer, startSignalServer } from './server.ts';
import { misfits } from './swagger.ts';
import type { Account, Group, Person } from './types.ts';

let server: SignalServer;
let own: Account;
let ada: Person;
let bob: Person;
let team: Group;

beforeEach(async () => {
  server = await startSignalServer({ now: () => 1_800_000_000_000 });
  own = server.account;
  ada = server.world.addPerson({ name: 'Ada', number: null });
  bob = server.world.addPerson({ name: 'Bob' });
  team = server.world.addGroup({ name: 'Team', members: [ada, bob, own] });
});
afterEach(async () => {
  expect(againstSwagger(server)).toEqual([]);
  await server.close();
});

const arrived = () => server.notifications.map(({ envelope }) => envelope ?? {});
const last = () => arrived().at(-1) ?? {};
const inTeam = { groupId: '', groupName: 'Team', revision: 0, type: 'DELIVER' };

it('makes an envelope of a direct message from somebody who hides the number', () => {
  const { timestamp } = server.people.writes({ from: ada, text: 'hi' });
  expect(server.notifications).toEqual([
    {
      account: own.number,
      envelope: {
        source: ada.uuid,
        sourceNumber: null,
        sourceUuid: ada.uuid,
        sourceName: 'Ada',
        sourceDevice: 1,
        timestamp,
        serverReceivedTimestamp: timestamp + 11,
        serverDeliveredTimestamp: timestamp + 12,
        dataMessage: {
          timestamp,
          message: 'hi',
          expiresInSeconds: 0,
          isExpirationUpdate: false,
          viewOnce: false,
        },
      },
    },
  ]);
});

it('makes an envelope of a group message with mentions, a quote, styles and a file', () => {
  const file = server.world.addAttachment({
    bytes: Buffer.from('x'),
    fileName: 'a.png',
    contentType: 'image/png',
  });
  const first = server.people.writes({ from: bob, to: team, text: 'look', attachments: [file] });
  server.people.writes({
    from: ada,
    to: team,
    text: '@Parley and @Bob: see',
    mentioning: [own, bob],
    quoting: first,
    styles: [{ style: 'BOLD', start: 9, length: 3 }],
  });
  expect(arrived()[0]?.dataMessage).toMatchObject({
    attachments: [{ id: file.id, contentType: 'image/png', filename: 'a.png', size: 1 }],
  });
  expect(last().dataMessage).toMatchObject({
    message: '\uFFFC and \uFFFC: see',
    mentions: [
      { name: own.number, number: own.number, uuid: own.uuid, start: 0, length: 1 },
      { uuid: bob.uuid, start: 6, length: 1 },
    ],
    quote: {
      id: first.timestamp,
      authorUuid: bob.uuid,
      text: 'look',
      attachments: [{ contentType: 'image/png', filename: 'a.png' }],
    },
    textStyles: [{ style: 'BOLD', start: 9, length: 3 }],
    groupInfo: { ...inTeam, groupId: team.internalId },
  });
  expect(server.lines(team)).toEqual(['Bob: look [a.png]', 'Ada: @Parley and @Bob: <b>see</b>']);
});

it('names the changed message in edits, reactions and deletes', () => {
  const message = server.people.writes({ from: ada, to: team, text: 'one' });
  const { timestamp } = message;
  const edited = server.people.edits(message, 'two');
  expect(edited).toBeGreaterThan(timestamp);
  server.people.reacts(bob, message, '👍');
  server.people.reacts(bob, message, undefined);
  server.people.deletes(message);
  const [, edit, reaction, taken, deleted] = arrived();
  expect(edit).toMatchObject({
    timestamp: edited,
    editMessage: {
      targetSentTimestamp: timestamp,
      dataMessage: { timestamp: edited, message: 'two', groupInfo: { groupId: team.internalId } },
    },
  });
  expect(edit).not.toHaveProperty('dataMessage');
  const target = { emoji: '👍', targetAuthorUuid: ada.uuid, targetSentTimestamp: timestamp };
  expect(reaction?.dataMessage).toMatchObject({ message: null, reaction: { ...target, isRemove: false } });
  expect(taken?.dataMessage).toMatchObject({ message: null, reaction: { ...target, isRemove: true } });
  expect(deleted).toMatchObject({
    sourceUuid: ada.uuid,
    dataMessage: { message: null, remoteDelete: { timestamp } },
  });
  expect(server.lines(team)).toEqual([]);
});

it('makes a sync message of what the owner does elsewhere', () => {
  const toAda = server.people.writes({ from: own, to: ada, text: 'hi Ada' });
  server.people.writes({ from: own, to: team, text: 'hi all' });
  server.people.writes({ from: own, text: 'note' });
  server.people.edits(toAda, 'hi');
  const sent = arrived().map((one) => (one.syncMessage as { sentMessage: unknown }).sentMessage);
  expect(sent).toMatchObject([
    { destination: ada.uuid, destinationNumber: null, destinationUuid: ada.uuid, message: 'hi Ada' },
    {
      destination: null,
      destinationNumber: null,
      destinationUuid: null,
      message: 'hi all',
      groupInfo: { groupId: team.internalId },
    },
    { destination: own.number, destinationUuid: own.uuid, message: 'note' },
    {
      destinationUuid: ada.uuid,
      editMessage: { targetSentTimestamp: toAda.timestamp, dataMessage: { message: 'hi' } },
    },
  ]);
  expect(new Set(arrived().map(({ sourceUuid }) => sourceUuid))).toEqual(new Set([own.uuid]));
  expect(server.lines(ada)).toEqual(['Parley: hi']);
  expect(server.lines(own)).toEqual(['Parley: note']);
});

it('reports changes of a group without text, also to those who leave', () => {
  server.people.changesGroup(ada, team, (group) => {
    group.name = 'Crew';
    group.members.pop();
  });
  expect(last().dataMessage).toMatchObject({
    message: null,
    groupInfo: { groupId: team.internalId, groupName: 'Crew', revision: 1, type: 'UPDATE' },
  });
  server.people.writes({ from: ada, to: team, text: 'unheard' });
  expect(server.notifications).toHaveLength(1);
});

it('makes envelopes of timers, typing, receipts and unreadable messages', async () => {
  server.people.setsTimer(ada, 3600);
  expect(last().dataMessage).toMatchObject({
    message: null,
    isExpirationUpdate: true,
    expiresInSeconds: 3600,
  });
  server.people.types(bob, team);
  expect(last().typingMessage).toMatchObject({ action: 'STARTED', groupId: team.internalId });
  server.people.types(ada, undefined, 'STOPPED');
  expect(last().typingMessage).toEqual({ action: 'STOPPED', timestamp: expect.any(Number) });
  server.people.sendsUnreadable(ada);
  expect(server.notifications.at(-1)).toMatchObject({
    exception: { type: 'ProtocolInvalidMessageException' },
    envelope: { sourceUuid: ada.uuid },
  });
  const message = await sends(team.id);
  expect(last()).toMatchObject({
    sourceUuid: bob.uuid,
    receiptMessage: { isDelivery: true, isRead: false, timestamps: [message.timestamp] },
  });
  server.people.receives(ada, message, 'read');
  expect(last().receiptMessage).toMatchObject({ isDelivery: false, isRead: true });
});

it("delivers one account's messages to the server's other accounts", async () => {
  const other = server.world.addAccount({ number: '+15550000002', name: 'Other' });
  team.members.push(other);
  server.people.writes({ from: ada, to: team, text: 'hi' });
  expect(server.notifications.map(({ account }) => account)).toEqual([own.number, other.number]);
  const message = await sends(team.id);
  expect(server.notifications.find(({ envelope }) => envelope?.sourceUuid === own.uuid)).toMatchObject({
    account: other.number,
    envelope: { dataMessage: { timestamp: message.timestamp, message: 'hello' } },
  });
});

it('notices fields that are missing, unknown or of the wrong type', () => {
  const envelope = { timestamp: '1', serverReceivedTimestamp: 1, dataMessage: { timestamp: 1, text: 'x' } };
  expect(misfits({ envelope, account: '+1' }, 'data.Message', true)).toEqual([
    'data.Message.envelope.serverDeliveredTimestamp: missing',
    'data.Message.envelope.timestamp: "1" is no integer',
    'data.Message.envelope.dataMessage.text: unknown',
  ]);
});

async function sends(recipient: string) {
  const body = JSON.stringify({ number: own.number, recipients: [recipient], message: 'hello' });
  await fetch(`${server.url}/v2/send`, { method: 'POST', body });
  const [message] = server.botMessages(team);
  if (message === undefined) throw new Error('nothing was sent');
  return message;
}
