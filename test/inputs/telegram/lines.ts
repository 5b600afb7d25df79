/** Content that is neither words nor files: a line describes each. */
import { aFile, bea, edited, groupMessage, message, type TelegramInput } from './telegram-input.ts';

const location = { latitude: 52.5, longitude: 13.4 };
const news = { id: -1007, type: 'channel', title: 'News' };
const option = (text: string, fields: object = {}) => ({
  persistent_id: text,
  text,
  voter_count: 0,
  ...fields,
});

/** A message that consists of this line. */
function line(
  name: string,
  shape: string,
  fields: Readonly<Record<string, unknown>>,
  said: string,
): TelegramInput {
  return { name, shape, update: message(fields), read: { event: 'message', described: [said] } };
}

/** A message that only reports this. */
function note(...args: Parameters<typeof line>): TelegramInput {
  const input = line(...args);
  return { ...input, read: { ...input.read, startsNoRun: true } };
}

export const lines: readonly TelegramInput[] = [
  line(
    'a poll',
    'python-telegram-bot tests/test_poll.py',
    {
      poll: {
        id: '1',
        question: 'Pizza or pasta?',
        options: [option('Pizza', { voter_count: 1 }), option('Pasta')],
        total_voter_count: 1,
        is_closed: false,
        is_anonymous: true,
        type: 'regular',
        allows_multiple_answers: false,
      },
    },
    '[Poll: Pizza or pasta?; 1) Pizza (1 vote); 2) Pasta]',
  ),
  line(
    'a quiz of an older server, with its answer',
    'aiogram test_message.py, TEST_MESSAGE_POLL with correct_option_id',
    {
      poll: {
        id: '1',
        question: 'Is a tomato\na fruit?',
        options: [option('Yes'), option('No')],
        type: 'quiz',
        correct_option_id: 0,
        explanation: 'It has seeds.',
        is_closed: true,
        is_anonymous: false,
      },
    },
    '[Quiz: Is a tomato a fruit?; 1) Yes (correct); 2) No; explanation: It has seeds.; votes are public; closed]',
  ),
  {
    name: 'a poll with several answers, pictures and a link in an option',
    shape: 'Bot API 10, Poll.media, PollOption.media and correct_option_ids',
    update: message({
      poll: {
        id: '1',
        question: 'Which?',
        description: 'Choose well',
        allows_multiple_answers: true,
        media: { photo: [aFile('Q')] },
        options: [
          option('this', {
            text_entities: [{ type: 'text_link', offset: 0, length: 4, url: 'https://example.org/t' }],
          }),
          option('that', { media: { photo: [aFile('O')] } }),
        ],
        correct_option_ids: [1],
        type: 'quiz',
      },
    }),
    read: {
      event: 'message',
      described: [
        '[Quiz: Which?; Choose well; 1) [this](https://example.org/t); 2) that (correct); several answers allowed]',
      ],
      media: ['image Q', 'image O'],
    },
  },
  note(
    'an option that somebody added to a poll',
    'aiogram tests/test_api/test_types/test_poll_option_added.py',
    { poll_option_added: { option_persistent_id: '3', option_text: 'Soup' } },
    '[Option added to a poll: Soup]',
  ),
  note(
    'an option that somebody removed from a poll',
    'aiogram tests/test_api/test_types/test_poll_option_deleted.py',
    { poll_option_deleted: { option_persistent_id: '3', option_text: 'Soup' } },
    '[Option removed from a poll: Soup]',
  ),
  line(
    'a checklist',
    'python-telegram-bot tests/test_checklists.py; NousResearch/hermes-agent#78718',
    {
      checklist: {
        title: 'Garden',
        tasks: [
          { id: 1, text: 'dig', completion_date: 1_795_776_000, completed_by_user: bea },
          { id: 2, text: 'sow', completion_date: 0 },
        ],
        others_can_add_tasks: true,
      },
    },
    '[Checklist: Garden; ☑ dig; ☐ sow]',
  ),
  note(
    'tasks that were ticked and unticked',
    'NousResearch/hermes-agent#78749',
    {
      checklist_tasks_done: {
        checklist_message: { message_id: 4, checklist: { title: 'Garden', tasks: [{ id: 1, text: 'dig' }] } },
        marked_as_done_task_ids: [1],
        marked_as_not_done_task_ids: [2],
      },
    },
    '[Checklist changed: Garden; done: dig; not done: task 2]',
  ),
  note(
    'tasks that were added',
    'NousResearch/hermes-agent#78749',
    { checklist_tasks_added: { tasks: [{ id: 3, text: 'weed' }] } },
    '[Tasks added to a checklist: ☐ weed]',
  ),
  line(
    'a contact with a card',
    'python-telegram-bot tests/_files/test_contact.py',
    {
      contact: {
        phone_number: '+15550100',
        first_name: 'Carla',
        user_id: 9,
        vcard: 'BEGIN:VCARD\nVERSION:3.0\nFN:Carla\nEMAIL;TYPE=home:c@example.org\nORG:Seeds\nEND:VCARD',
      },
    },
    '[Contact: Carla; +15550100; email: c@example.org; org: Seeds]',
  ),
  line(
    'a die',
    'python-telegram-bot tests/test_dice.py',
    { dice: { emoji: '🎯', value: 6 } },
    '[Dice: 🎯 shows 6]',
  ),
  line(
    'a place on the map',
    'python-telegram-bot tests/_files/test_location.py',
    { location: { ...location, horizontal_accuracy: 20 } },
    '[Location: 52.5, 13.4]',
  ),
  line(
    'the beginning of a moving location',
    'NousResearch/hermes-agent#49806',
    { location: { ...location, live_period: 900 } },
    '[Live location: 52.5, 13.4]',
  ),
  line(
    'a venue, which comes with its location',
    'python-telegram-bot tests/_files/test_venue.py',
    { location, venue: { location, title: 'Café', address: 'Main St 1', foursquare_id: 'x' } },
    '[Place: Café; Main St 1; 52.5, 13.4]',
  ),
  {
    name: 'a forwarded story',
    shape: 'python-telegram-bot tests/test_story.py',
    update: message({ story: { chat: news, id: 3 } }),
    read: { event: 'message', origin: 'story', described: ['[Story: by News]'] },
  },
  line(
    'a game',
    'python-telegram-bot tests/_games/test_game.py',
    { game: { title: 'Chess', description: 'Play', photo: [aFile('G')] } },
    '[Game: Chess; Play]',
  ),
  line(
    'a gift with a note',
    'python-telegram-bot tests/test_gifts.py',
    { gift: { gift: { id: '1', star_count: 50, sticker: aFile('S', { emoji: '🎁' }) }, text: 'Thank you!' } },
    '[Gift: 🎁; 50 Telegram Stars; Thank you!]',
  ),
  line(
    'an upgraded gift',
    'aiogram test_message.py, gift_upgrade_sent',
    { gift_upgrade_sent: { gift: { id: '1', star_count: 50 } } },
    '[Gift: 50 Telegram Stars]',
  ),
  line(
    'a unique gift',
    'python-telegram-bot tests/test_uniquegift.py',
    {
      unique_gift: { gift: { base_name: 'Plush Pepe', name: 'PlushPepe-7', number: 7 }, origin: 'transfer' },
    },
    '[Unique gift: Plush Pepe #7]',
  ),
  line(
    'a giveaway',
    'python-telegram-bot tests/test_giveaway.py',
    {
      giveaway: {
        chats: [news],
        winners_selection_date: 1_795_856_400,
        winner_count: 3,
        premium_subscription_month_count: 6,
      },
    },
    '[Giveaway: 3 winners; Telegram Premium for 6 months; drawn 2026-11-28 09:00 UTC; News]',
  ),
  note(
    'the beginning of a giveaway',
    'python-telegram-bot tests/test_giveaway.py, GiveawayCreated',
    { giveaway_created: {} },
    '[Giveaway created]',
  ),
  line(
    'the winners of a giveaway',
    'python-telegram-bot tests/test_giveaway.py, GiveawayWinners',
    { giveaway_winners: { chat: news, winner_count: 1, winners: [bea], prize_description: 'seeds' } },
    '[Giveaway ended: 1 winner; seeds; News; Bea]',
  ),
  note(
    'the end of a giveaway',
    'python-telegram-bot tests/test_giveaway.py, GiveawayCompleted',
    { giveaway_completed: { winner_count: 2, unclaimed_prize_count: 1 } },
    '[Giveaway completed: 2 winners; 1 prize not claimed]',
  ),
  line(
    'an invoice in euros',
    'python-telegram-bot tests/_payment/test_invoice.py',
    {
      invoice: {
        title: 'Seeds',
        description: 'A bag',
        start_parameter: 'x',
        currency: 'EUR',
        total_amount: 1250,
      },
    },
    '[Invoice: Seeds; A bag; EUR 12.50]',
  ),
  line(
    'a payment in Stars',
    'python-telegram-bot tests/_payment/test_successfulpayment.py',
    { successful_payment: { currency: 'XTR', total_amount: 1, invoice_payload: 'secret' } },
    '[Payment: 1 Telegram Star]',
  ),
  line(
    'people that were shared',
    'python-telegram-bot tests/test_shared.py',
    { users_shared: { request_id: 1, users: [{ user_id: 9, first_name: 'Carla' }, { user_id: 10 }] } },
    '[People shared: Carla, id 9; id 10]',
  ),
  line(
    'a chat that was shared',
    'python-telegram-bot tests/test_shared.py',
    { chat_shared: { request_id: 1, chat_id: -1007, title: 'News' } },
    '[Chat shared: News; id -1007]',
  ),
  line(
    'data from a web app',
    'python-telegram-bot tests/test_webappdata.py',
    { web_app_data: { button_text: 'Order', data: '{"beans":2}' } },
    '[Data from a web app: Order; {"beans":2}]',
  ),
  {
    name: 'a video chat that starts',
    shape: 'python-telegram-bot tests/test_videochat.py',
    update: groupMessage({ video_chat_started: {} }),
    read: { event: 'message', described: ['[Video chat started]'], startsNoRun: true },
  },
  {
    name: 'a video chat that ends',
    shape: 'python-telegram-bot tests/test_videochat.py',
    update: groupMessage({ video_chat_ended: { duration: 42 } }),
    read: { event: 'message', described: ['[Video chat ended: after 42 s]'], startsNoRun: true },
  },
  {
    name: 'a video chat that is planned',
    shape: 'python-telegram-bot tests/test_videochat.py',
    update: groupMessage({ video_chat_scheduled: { start_date: 1_795_856_400 } }),
    read: {
      event: 'message',
      described: ['[Video chat scheduled: 2026-11-28 09:00 UTC]'],
      startsNoRun: true,
    },
  },
  {
    name: 'people who are invited to a video chat',
    shape: 'python-telegram-bot tests/test_videochat.py',
    update: groupMessage({ video_chat_participants_invited: { users: [bea] } }),
    read: { event: 'message', described: ['[Invited to the video chat: Bea]'], startsNoRun: true },
  },
  {
    name: 'a checklist that was edited',
    shape: 'eternnoir/pyTelegramBotAPI#2500',
    update: edited({ checklist: { title: 'Garden', tasks: [{ id: 1, text: 'dig' }] } }),
    read: { event: 'edit', described: ['[Checklist: Garden; ☐ dig]'] },
  },
  line(
    'a poll with broken options',
    'servers that leave members out',
    {
      poll: {
        question: 'Which?',
        options: [null, 'a', { text: 'b' }, { text: 7 }],
        total_voter_count: 'many',
      },
    },
    '[Poll: Which?; 1) b; 2)]',
  ),
];
