/**
 * Every way in which a network says how words came to be under somebody's name, as it sends them, read by the
 * channel's own mapping. The expected result is written here, independently of the code: only `typed` is an order.
 */

import { botOf as signalBot } from '../../channels/signal/ids.ts';
import { readNotification } from '../../channels/signal/inbound.ts';
import { botOf as telegramBot } from '../../channels/telegram/ids.ts';
import { readUpdate } from '../../channels/telegram/inbound.ts';
import { inboundEnvelope as terminalEnvelope } from '../../channels/terminal/inbound.ts';
import { inboundEnvelope as webEnvelope } from '../../channels/web/inbound.ts';
import type { InboundEnvelope } from '../../src/contracts/envelope.ts';
import { accountId, channelId, conversationId } from '../../src/contracts/ids.ts';
import {
  adminRole,
  aMessage,
  aScene,
  bot as discordBot,
  general,
  guildId,
  nextId,
} from '../channels/discord/payloads.ts';

export const roles = ['owner', 'user', 'guest', 'admin'] as const;
/** `admin` administers the group they write in; the others write directly. */
export type Role = (typeof roles)[number];

export type Form = {
  readonly name: string;
  readonly isTyped: boolean;
  /** Returns what the network delivers for `text`, written in this form under the name of `role`. */
  read(text: string, role: Role): readonly InboundEnvelope[];
};

export type Network = {
  readonly channel: string;
  readonly roles: readonly Role[];
  readonly forms: readonly Form[];
  idOf(role: Role): string;
  readonly group: string;
};

type Readers = Readonly<Record<string, Form['read']>>;
const formsOf = (typed: Readers, data: Readers): readonly Form[] => [
  ...Object.entries(typed).map(([name, read]) => ({ name, read, isTyped: true })),
  ...Object.entries(data).map(([name, read]) => ({ name, read, isTyped: false })),
];

let count = 1_000;
const at = 1_750_000_000;

function telegram(): Network {
  const bot = telegramBot({ id: 700, username: 'ParleyBot' });
  const group = { id: -1001, type: 'supergroup', title: 'Plans' };
  const people = { owner: 11, user: 12, guest: 13 };
  const stranger = { id: 99, is_bot: false, first_name: 'Mallory' };
  const news = { id: -1009, type: 'channel', title: 'News' };
  const helper = { id: 88, is_bot: true, first_name: 'Pics', username: 'pic' };
  const update = (kind: string, body: object) => readUpdate({ update_id: ++count, [kind]: body }, bot, at);
  const base = (role: Role) =>
    role === 'admin'
      ? {
          chat: group,
          from: { id: 1087968824, is_bot: true, first_name: 'Group' },
          sender_chat: group,
        }
      : {
          chat: { id: people[role], type: 'private', first_name: role },
          from: { id: people[role], is_bot: false, first_name: role },
        };
  const body = (role: Role, fields: object) => ({ message_id: ++count, date: at, ...base(role), ...fields });
  const says =
    (fields: (text: string) => object): Form['read'] =>
    (text, role) =>
      update('message', body(role, { text, ...fields(text) }));
  const captioned =
    (fields: object): Form['read'] =>
    (text, role) =>
      update('message', body(role, { photo: [{ file_id: 'f', file_size: 1 }], caption: text, ...fields }));
  const quoting =
    (fields: (text: string) => object): Form['read'] =>
    (text, role) =>
      update('message', body(role, { text: 'look at that', ...fields(text) }));
  const forwards = {
    user: { type: 'user', date: 1, sender_user: stranger },
    'hidden user': { type: 'hidden_user', date: 1, sender_user_name: 'Mallory' },
    chat: { type: 'chat', date: 1, sender_chat: group },
    channel: { type: 'channel', date: 1, chat: news, message_id: 5 },
    'kind that is not known yet': { type: 'hologram', date: 1 },
  };
  const origin = forwards.user;
  const quotation = (text: string) => [{ type: 'blockquote', offset: 0, length: text.length }];
  /** Messages that have no text of their own. */
  const wordless =
    (fields: (text: string) => object): Form['read'] =>
    (text, role) =>
      update('message', body(role, fields(text)));
  const paragraph = (text: unknown) => ({ type: 'paragraph', text });
  const richly = (...blocks: readonly unknown[]) => ({ rich_message: { blocks } });
  const typed: Readers = {
    'typed text': says(() => ({})),
    'own caption': captioned({}),
    'own rich message': wordless((text) => richly(paragraph({ type: 'bold', text }))),
    'text with a masked link': says((text) => ({
      entities: [{ type: 'text_link', offset: 0, length: text.length, url: 'https://example.org' }],
    })),
  };
  const data: Readers = {
    'forward of a rich message': wordless((text) => ({ ...richly(paragraph(text)), forward_origin: origin })),
    'rich message through an inline bot': wordless((text) => ({
      ...richly(paragraph(text)),
      via_bot: helper,
    })),
    'rich quotation': wordless((text) => richly({ type: 'blockquote', blocks: [paragraph(text)] })),
    'address behind a link': quoting((text) => ({
      entities: [{ type: 'text_link', offset: 0, length: 4, url: text }],
    })),
    'address in a rich message': wordless((text) =>
      richly(paragraph({ type: 'url', text: 'look', url: text })),
    ),
    'question of a poll': wordless((text) => ({ poll: { question: text, options: [{ text }] } })),
    'name of a contact': wordless((text) => ({ contact: { first_name: text, phone_number: text } })),
    'title of a checklist': wordless((text) => ({ checklist: { title: text, tasks: [{ id: 1, text }] } })),
    'note on a gift': wordless((text) => ({ gift: { gift: { star_count: 1 }, text } })),
    'data of a web app': wordless((text) => ({ web_app_data: { data: text, button_text: text } })),
    'name of an unknown field': wordless((text) => ({ [text.trim()]: { text } })),
    'quoted rich message': quoting((text) => ({
      reply_to_message: { message_id: 3, date: 1, chat: group, from: stranger, ...richly(paragraph(text)) },
    })),
    ...Object.fromEntries(
      Object.entries(forwards).map(([kind, forward_origin]) => [
        `forward of a ${kind}`,
        says(() => ({ forward_origin })),
      ]),
    ),
    'old forward of a user': says(() => ({ forward_from: stranger, forward_date: 1 })),
    'old forward of a hidden user': says(() => ({ forward_sender_name: 'Mallory', forward_date: 1 })),
    'old forward of a channel': says(() => ({ forward_from_chat: news, forward_from_message_id: 5 })),
    'forward with a date alone': says(() => ({ forward_date: 1 })),
    'forward of the channel that is linked': says(() => ({
      sender_chat: news,
      is_automatic_forward: true,
      forward_origin: forwards.channel,
    })),
    'caption of a forwarded photo': captioned({ forward_origin: origin }),
    'caption through an inline bot': captioned({ via_bot: helper }),
    'text through an inline bot': says(() => ({ via_bot: helper })),
    'text as another channel': says(() => ({ sender_chat: news })),
    'text of a business bot': says(() => ({ sender_business_bot: helper })),
    'text of a guest bot': says(() => ({ guest_bot_caller_user: stranger })),
    'text sent by itself': says(() => ({ is_from_offline: true })),
    'block quotation': says((text) => ({ entities: quotation(text) })),
    'emoji of a sticker': (text, role) =>
      update('message', body(role, { sticker: { file_id: 's', emoji: text } })),
    'quoted message': quoting((text) => ({
      reply_to_message: { message_id: 3, date: 1, chat: group, from: stranger, text },
    })),
    'quoted message from elsewhere': quoting((text) => ({
      external_reply: { origin, message_id: 3 },
      quote: { text, position: 0 },
    })),
    edit: (text, role) => update('edited_message', body(role, { text, edit_date: at + 1 })),
    'edit through an inline bot': (text, role) =>
      update('edited_message', body(role, { text, edit_date: at + 1, via_bot: helper })),
    'channel post': (text, role) => update('channel_post', { ...body(role, { text }), chat: news }),
    'business message': (text, role) => update('business_message', body(role, { text })),
    'guest message': (text, role) => update('guest_message', body(role, { text })),
    button: (text, role) =>
      update('callback_query', {
        id: String(++count),
        from: { id: 11, is_bot: false, first_name: 'x' },
        message: { message_id: 1, chat: base(role).chat },
        data: text,
      }),
  };
  const idOf = (role: Role) => (role === 'admin' ? 'chat:-1001' : String(people[role]));
  return { channel: 'telegram', roles, forms: formsOf(typed, data), idOf, group: '-1001' };
}

function discord(): Network {
  const people = { owner: '1411', user: '1412', guest: '1413', admin: '1414' };
  const scene = aScene();
  const userOf = (role: Role) => ({ id: people[role], username: role });
  const place = (role: Role) =>
    role === 'admin'
      ? { channel_id: general, guild_id: guildId, member: { roles: [adminRole] } }
      : { channel_id: `13${people[role]}`, guild_id: undefined, member: undefined };
  const read = (kind: string, d: object, role: Role) => {
    if (role !== 'admin') scene.directory.learnDirect(`13${people[role]}`);
    const reading = scene.read(kind, JSON.parse(JSON.stringify(d)));
    return reading.kind === 'events' ? reading.events : [];
  };
  const body = (role: Role, fields: object) => aMessage({ author: userOf(role), ...place(role), ...fields });
  const says =
    (fields: (text: string) => object): Form['read'] =>
    (text, role) =>
      read('MESSAGE_CREATE', body(role, { content: text, ...fields(text) }), role);
  const snapshots = (text: string) => [{ message: { content: text, attachments: [] } }];
  const interaction: Form['read'] = (text, role) => {
    const [name = '', ...rest] = text.slice(1).split(' ');
    const options = rest.length === 0 ? [] : [{ name: 'text', value: rest.join(' ') }];
    const who =
      role === 'admin'
        ? {
            guild_id: guildId,
            channel_id: general,
            member: { user: userOf(role), roles: [], permissions: '32' },
          }
        : { channel_id: `13${people[role]}`, user: userOf(role) };
    const d = {
      id: nextId(),
      application_id: discordBot.id,
      token: 't',
      type: 2,
      data: { name, type: 1, options },
    };
    return read('INTERACTION_CREATE', { ...d, ...who }, role);
  };
  const data: Readers = {
    forward: says((text) => ({
      content: '',
      message_reference: { type: 1, message_id: '1', channel_id: general },
      message_snapshots: snapshots(text),
    })),
    'forward without its mark': says((text) => ({ content: '', message_snapshots: snapshots(text) })),
    'forward whose text is missing': says(() => ({ flags: 1 << 14 })),
    'published post': says(() => ({ flags: 1 })),
    'post that a channel follows': says(() => ({ flags: 2, webhook_id: '77' })),
    webhook: says(() => ({ webhook_id: '77' })),
    application: says(() => ({ application_id: '77' })),
    'invitation by a game': says(() => ({ activity: { type: 1 }, application: { id: '77', name: 'game' } })),
    'answer to an interaction': says(() => ({ interaction: { id: '7' } })),
    "Discord's own account": says(() => ({ author: { id: '1411', username: 'owner', system: true } })),
    "another application's command": says(() => ({ type: 20, interaction_metadata: { id: '7' } })),
    'opening of a thread': says(() => ({ type: 21 })),
    'message type that is not known yet': says(() => ({ type: 23 })),
    'quoted message': says((text) => ({
      content: 'look at that',
      type: 19,
      referenced_message: { id: '5', author: { id: '99', username: 'mallory' }, content: text },
    })),
    'quotation line': says((text) => ({ content: `> ${text}` })),
    edit: (text, role) =>
      read(
        'MESSAGE_UPDATE',
        body(role, { content: text, edited_timestamp: '2026-11-20T10:00:01.000000+00:00' }),
        role,
      ),
  };
  const forms = formsOf({ 'typed text': says(() => ({})), 'slash command': interaction }, data);
  return { channel: 'discord', roles, forms, idOf: (role) => people[role], group: general };
}

function signal(): Network {
  const uuid = (n: number) => `00000000-0000-4000-8000-00000000000${n}`;
  const people = { owner: uuid(1), user: uuid(2), guest: uuid(3), admin: uuid(4) };
  const groupId = Buffer.alloc(32, 7).toString('base64');
  const bot = signalBot({ aci: uuid(9), number: '+4930000001', name: 'Parley' });
  const known = {
    bot,
    nameOf: () => undefined,
    originalOf: ({ timestamp }: { timestamp: number }) => timestamp,
    learn: () => undefined,
    groupOf: () => ({ admins: new Set([people.admin]) }),
  };
  const read = (role: Role, payload: object) => {
    const source = { sourceUuid: people[role], sourceName: role, sourceDevice: 1, timestamp: ++count };
    const reading = readNotification({ account: bot.number, envelope: { ...source, ...payload } }, known);
    return reading.kind === 'event' ? [reading.envelope] : [];
  };
  const content = (role: Role, fields: object) => ({
    timestamp: ++count,
    ...(role === 'admin' && { groupInfo: { groupId, type: 'DELIVER' } }),
    ...fields,
  });
  const says =
    (fields: (text: string) => object): Form['read'] =>
    (text, role) =>
      read(role, { dataMessage: content(role, { message: text, ...fields(text) }) });
  // Somebody whose name begins like the bot's and continues with an order.
  const mention = { start: 0, length: 1, uuid: uuid(8) };
  const mentions = [mention, { start: 2, length: 1, uuid: bot.aci }];
  const data: Readers = {
    'answer to a story': says(() => ({ storyContext: { authorUuid: uuid(8), sentTimestamp: 1 } })),
    story: (text, role) => read(role, { storyMessage: { textAttachment: { text } } }),
    'quoted message': says((text) => ({
      message: 'look at that',
      quote: { id: 1, authorUuid: uuid(8), text },
    })),
    'preview of a link': says((text) => ({ message: 'https://x.example', previews: [{ title: text }] })),
    contact: says((text) => ({ message: null, contacts: [{ name: { display: text } }] })),
    'name of somebody who is mentioned': (text, role) => {
      const named = { ...known, nameOf: () => `Parley ${text}` };
      const payload = { dataMessage: content(role, { message: '\ufffc \ufffc', mentions }) };
      const envelope = { sourceUuid: people[role], sourceName: role, timestamp: ++count, ...payload };
      const reading = readNotification({ account: bot.number, envelope }, named);
      return reading.kind === 'event' ? [reading.envelope] : [];
    },
    edit: (text, role) =>
      read(role, {
        editMessage: { targetSentTimestamp: 1, dataMessage: content(role, { message: text }) },
      }),
    'copy of what another device sent': (text, role) =>
      read(role, {
        syncMessage: { sentMessage: { ...content(role, { message: text }), destinationUuid: uuid(8) } },
      }),
  };
  const forms = formsOf({ 'typed text': says(() => ({})) }, data);
  return { channel: 'signal', roles, forms, idOf: (role) => people[role], group: groupId };
}

function local(channel: 'web' | 'terminal'): Network {
  const envelopeOf = channel === 'web' ? webEnvelope : terminalEnvelope;
  const conversation = conversationId('main');
  const route = { channel: channelId(channel), account: accountId('local'), conversation };
  const typed: Readers = {
    'typed text': (text) => [envelopeOf({ type: 'send', id: `send-${++count}`, text }, route, at)],
  };
  const data: Readers = {
    edit: (text) => [envelopeOf({ type: 'edit', id: `edit-${++count}`, message: 'x', text }, route, at)],
  };
  return { channel, roles: ['owner'], forms: formsOf(typed, data), idOf: () => 'owner', group: 'none' };
}

export const openNetworks = [telegram, discord, signal, () => local('web'), () => local('terminal')] as const;
