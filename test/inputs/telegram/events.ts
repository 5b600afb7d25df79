/** Updates without content for the model: events, and those that are refused by name. */
import {
  aFile,
  aMessage,
  bea,
  edited,
  group,
  groupMessage,
  message,
  type TelegramInput,
} from './telegram-input.ts';

const channel = { id: -1007, type: 'channel', title: 'News' };
const emoji = (one: string) => ({ type: 'emoji', emoji: one });
const reaction = (fields: object) => ({
  update_id: 7,
  message_reaction: {
    chat: group,
    message_id: 4,
    user: bea,
    date: 9,
    old_reaction: [],
    new_reaction: [],
    ...fields,
  },
});

function refused(
  name: string,
  shape: string,
  update: Readonly<Record<string, unknown>>,
  why: string,
): TelegramInput {
  return { name, shape, update, read: { event: 'unsupported', refused: why } };
}
const service = (name: string, field: string, value: unknown): TelegramInput =>
  refused(
    name,
    `aiogram tests/test_api/test_types/test_message.py, ${field}`,
    groupMessage({ [field]: value }),
    `${field}: \\S+ `,
  );

export const events: readonly TelegramInput[] = [
  service('somebody who joined', 'new_chat_members', [bea]),
  service('somebody who left', 'left_chat_member', bea),
  service('a new title', 'new_chat_title', 'Allotment 2'),
  service('a new picture of the group', 'new_chat_photo', [aFile('P')]),
  service('a pinned message', 'pinned_message', aMessage({ text: 'pinned' })),
  service('a new topic', 'forum_topic_created', { name: 'Plans', icon_color: 1 }),
  service('a topic that was closed', 'forum_topic_closed', {}),
  service('an owner who left', 'chat_owner_left', { new_owner: bea }),
  service('a background', 'chat_background_set', { type: { type: 'chat_theme', theme_name: 'x' } }),
  service('a boost', 'boost_added', { boost_count: 1 }),
  service('identity documents', 'passport_data', { data: [], credentials: {} }),
  service('somebody who comes close', 'proximity_alert_triggered', {
    traveler: bea,
    watcher: bea,
    distance: 42,
  }),
  service('a refund', 'refunded_payment', { currency: 'XTR', total_amount: 1 }),
  refused(
    'somebody who joined, as older servers report it three times',
    'home-assistant/core#68250',
    groupMessage({ new_chat_participant: bea, new_chat_member: bea, new_chat_members: [bea] }),
    'new_chat_participant: reports about members',
  ),
  refused(
    'a message without anything in it',
    'aiogram test_message.py, TEST_MESSAGE_UNKNOWN',
    message({}),
    'message: it has no content',
  ),
  refused(
    'a post in a channel',
    'grammY, channel_post',
    {
      update_id: 7,
      channel_post: { message_id: 3, date: 1, chat: channel, sender_chat: channel, text: 'hi' },
    },
    'channel_post: posts in channels',
  ),
  refused(
    'a message that only one person sees',
    'Bot API 10, ephemeral messages',
    groupMessage({ message_id: 0, text: 'psst', receiver_user: bea }),
    'ephemeral_message: ',
  ),
  refused(
    'a message of a business account',
    'grammY, business_message',
    { update_id: 7, business_message: aMessage({ business_connection_id: 'x', text: 'hi' }) },
    'business_message: messages of business accounts',
  ),
  refused(
    'a vote',
    'python-telegram-bot tests/test_poll.py, PollAnswer',
    { update_id: 7, poll_answer: { poll_id: '1', user: bea, option_ids: [0] } },
    'poll_answer: votes reach only the bot',
  ),
  refused(
    'an update of a kind that nobody knows yet',
    'Bot API, a kind added by a later version',
    { update_id: 7, hologram: { chat: group } },
    'hologram: this version of Parley',
  ),
  refused(
    'a press under a message of the inline mode',
    'grammY, callback_query with inline_message_id',
    {
      update_id: 7,
      callback_query: { id: '1', from: bea, chat_instance: '1', inline_message_id: 'x', data: 'd' },
    },
    'callback_query: the bot can’t be used inline',
  ),
  refused(
    'a press that starts a game',
    'grammY, callback_query with game_short_name',
    {
      update_id: 7,
      callback_query: {
        id: '1',
        from: bea,
        message: aMessage({}),
        chat_instance: '1',
        game_short_name: 'chess',
      },
    },
    'callback_query: games',
  ),
  refused(
    'a moving location on its way',
    'NousResearch/hermes-agent#49806',
    edited({ location: { latitude: 1, longitude: 2, live_period: 900, heading: 90 } }),
    'live_location: ',
  ),
  {
    name: 'a message of a kind that nobody knows yet',
    shape: 'Bot API, a field added by a later version, as rich_message was',
    update: message({ hologram: { size: 3 } }),
    read: { event: 'message', unknown: ['hologram'] },
  },
  {
    name: 'an edit to content of a kind that nobody knows yet',
    shape: 'Bot API, a field added by a later version, as rich_message was',
    update: edited({ hologram: { size: 3 } }),
    read: { event: 'edit', unknown: ['hologram'] },
  },
  {
    name: 'an unknown field beside words',
    shape: 'Bot API, a field added by a later version',
    update: message({ text: 'hi', hologram: { size: 3 } }),
    read: { event: 'message', text: 'hi' },
  },
  {
    name: 'a press on a button',
    shape: 'grammY, callback_query',
    update: {
      update_id: 7,
      callback_query: { id: '1', from: bea, message: aMessage({}), chat_instance: '1', data: 'y' },
    },
    read: { event: 'button' },
  },
  {
    name: 'a press on a button under a message that Telegram no longer shows',
    shape: 'Bot API 7, InaccessibleMessage',
    update: {
      update_id: 7,
      callback_query: {
        id: '1',
        from: bea,
        message: { message_id: 9, chat: group, date: 0 },
        chat_instance: '1',
        data: 'y',
      },
    },
    read: { event: 'button' },
  },
  {
    name: 'a reaction',
    shape: 'python-telegram-bot tests/test_reaction.py',
    update: reaction({ new_reaction: [emoji('👍')] }),
    read: { event: 'reaction' },
  },
  {
    name: 'a paid reaction beside a broken one',
    shape: 'Bot API 7.9, ReactionTypePaid',
    update: reaction({ old_reaction: null, new_reaction: [null, { type: 'paid' }] }),
    read: { event: 'reaction' },
  },
  {
    name: 'somebody who blocks the bot',
    shape: 'grammY, my_chat_member',
    update: {
      update_id: 7,
      my_chat_member: {
        chat: group,
        from: bea,
        date: 1,
        new_chat_member: { status: 'kicked', user: { id: 700 } },
      },
    },
    read: { event: 'membership' },
  },
  {
    name: 'a group that became a supergroup',
    shape: 'Bot API, migrate_to_chat_id',
    update: message({ chat: { id: -55, type: 'group', title: 'Allotment' }, migrate_to_chat_id: -1001 }),
    read: { event: 'migrated' },
  },
  {
    name: 'a press on Stop',
    shape: 'Bot API 10.3, stopped_message_generation',
    update: {
      update_id: 7,
      stopped_message_generation: { chat: { id: 501, type: 'private', first_name: 'Ada' }, draft_id: 4 },
    },
    read: { event: 'stop' },
  },
  {
    name: 'a message in a chat of a type that nobody knows yet',
    shape: 'Bot API, Chat.type added by a later version',
    update: message({ chat: { id: -1009, type: 'community', title: 'Gardens' }, text: 'hi' }),
    read: { event: 'message', text: 'hi' },
  },
  {
    name: 'a message by somebody with a name of a thousand letters',
    shape: 'servers without Telegram’s limits',
    update: message({ from: { id: 501, is_bot: 'no', first_name: 'x'.repeat(1000) }, text: 'hi' }),
    read: { event: 'message', text: 'hi' },
  },
];
