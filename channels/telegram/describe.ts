/**
 * Content other than words → a line for the model: a poll with its options, a contact, a place … One describer for each
 * field whose fate is `line` or `note`. A describer returns nothing if the field says nothing.
 */
import type { Checklist, Content, LineField, Poll } from './content-schema.ts';
import { formatTime, renderEntities } from './entity-text.ts';
import type { Entity } from './fields.ts';
import type { FieldsOf } from './inventory.ts';
import { nameOf } from './people.ts';

type Describer<Field extends LineField> = (value: NonNullable<Content[Field]>) => string | undefined;

const describers = {
  poll: pollLine,
  poll_option_added: ({ option_text: text, option_text_entities: marks }) =>
    label('Option added to a poll', marked(text, marks)),
  poll_option_deleted: ({ option_text: text, option_text_entities: marks }) =>
    label('Option removed from a poll', marked(text, marks)),
  checklist: (checklist) => label('Checklist', checklist.title, ...taskLines(checklist)),
  checklist_tasks_added: ({ tasks, checklist_message: of }) =>
    label('Tasks added to a checklist', of?.checklist?.title, ...taskLines({ tasks })),
  checklist_tasks_done: ({
    marked_as_done_task_ids: done = [],
    marked_as_not_done_task_ids: undone = [],
    checklist_message: of,
  }) =>
    label(
      'Checklist changed',
      of?.checklist?.title,
      ...done.map((id) => `done: ${taskName(of?.checklist, id)}`),
      ...undone.map((id) => `not done: ${taskName(of?.checklist, id)}`),
    ),
  contact: (contact) =>
    label('Contact', nameOf(contact), contact.phone_number, ...cardLines(contact.vcard ?? '')),
  dice: ({ emoji = '🎲', value }) => label('Dice', `${emoji} shows ${value ?? 'nothing'}`),
  game: ({ title, description, text, text_entities: marks }) =>
    label('Game', title, description, marked(text, marks)),
  gift: giftLine,
  gift_upgrade_sent: giftLine,
  unique_gift: ({ gift, text, entities: marks }) =>
    label(
      'Unique gift',
      gift && [gift.base_name, gift.number && `#${gift.number}`].filter(Boolean).join(' '),
      marked(text, marks),
    ),
  giveaway: ({ chats = [], ...prizes }) =>
    label('Giveaway', ...prizeOf(prizes), chats.map(nameOf).join(', ')),
  giveaway_created: ({ prize_star_count: stars }) =>
    label('Giveaway created', starsOf(stars)) ?? '[Giveaway created]',
  giveaway_completed: ({ winner_count: count, unclaimed_prize_count: left }) =>
    label(
      'Giveaway completed',
      countOf(count, 'winner'),
      left ? `${countOf(left, 'prize')} not claimed` : undefined,
    ),
  giveaway_winners: ({ chat, winners = [], ...prizes }) =>
    label('Giveaway ended', ...prizeOf(prizes), chat && nameOf(chat), winners.map(nameOf).join(', ')),
  invoice: ({ title, description, ...price }) => label('Invoice', title, description, priceOf(price)),
  successful_payment: (payment) => label('Payment', priceOf(payment)),
  location: ({ latitude, longitude, live_period: live }) =>
    label(live == null ? 'Location' : 'Live location', `${latitude}, ${longitude}`),
  venue: ({ title, address, location }) =>
    label('Place', title, address, location && `${location.latitude}, ${location.longitude}`),
  story: ({ chat }) => label('Story', chat ? `by ${nameOf(chat)}` : 'that Telegram doesn’t show to bots'),
  paid_media: ({ star_count: stars, paid_media: items = [] }) =>
    label('Paid media', starsOf(stars), countOf(items.length, 'item')),
  users_shared: ({ users = [] }) =>
    label(
      'People shared',
      ...users.map((user) => [nameOf(user), user.user_id && `id ${user.user_id}`].filter(Boolean).join(', ')),
    ),
  chat_shared: (chat) => label('Chat shared', nameOf(chat), chat.chat_id ? `id ${chat.chat_id}` : undefined),
  video_chat_scheduled: ({ start_date: at }) =>
    label('Video chat scheduled', at === undefined ? undefined : formatTime(at)) ?? '[Video chat scheduled]',
  video_chat_started: () => '[Video chat started]',
  video_chat_ended: ({ duration }) =>
    label('Video chat ended', duration ? `after ${duration} s` : undefined) ?? '[Video chat ended]',
  video_chat_participants_invited: ({ users = [] }) =>
    label('Invited to the video chat', users.map(nameOf).join(', ')),
  web_app_data: ({ data, button_text: button }) => label('Data from a web app', button, data),
  reply_markup: ({ inline_keyboard: rows = [] }) =>
    label(
      'Buttons',
      ...rows.flatMap((row) =>
        (row ?? []).flatMap(({ text, url }) => (url ? [`${text ?? ''} (${url})`] : [])),
      ),
    ),
} satisfies { readonly [Field in FieldsOf<'line' | 'note'>]: Describer<Field> };

/** Longest line, in UTF-16 code units. */
const maxLine = 16_384;

/** Describes everything in a message other than words and files. */
export function linesOf(content: Content): readonly string[] {
  const fields = (Object.keys(describers) as LineField[]).filter((field) => content[field] != null);
  return fields.flatMap((field) => {
    // A place says more than the location that comes with it.
    if (field === 'location' && content.venue !== undefined) return [];
    // The describer's own field.
    const describe = describers[field] as (value: unknown) => string | undefined;
    return describe(content[field])?.slice(0, maxLine).toWellFormed() ?? [];
  });
}

/** Returns `[What: one; two]`, on one line; undefined if there is nothing to say. */
function label(what: string, ...said: readonly (string | undefined)[]): string | undefined {
  const parts = said.flatMap((one) => {
    const line = String(one ?? '')
      .replaceAll(/\s+/g, ' ')
      .trim();
    return line === '' || line === '0' ? [] : [line];
  });
  return parts.length === 0 ? undefined : `[${what}: ${parts.join('; ')}]`;
}

function marked(text: string | undefined, marks: readonly Entity[] | undefined): string | undefined {
  return text === undefined ? undefined : renderEntities(text, marks);
}

function pollLine(poll: Poll): string | undefined {
  const { options = [], correct_option_ids: correct, correct_option_id: oneCorrect } = poll;
  const right = correct ?? (oneCorrect === undefined ? [] : [oneCorrect]);
  const isQuiz = poll.type === 'quiz';
  return label(
    isQuiz ? 'Quiz' : 'Poll',
    marked(poll.question, poll.question_entities),
    marked(poll.description, poll.description_entities),
    ...options.map(({ text, text_entities: marks, voter_count: votes }, index) =>
      [
        `${index + 1}) ${marked(text, marks) ?? ''}`,
        votes && ` (${countOf(votes, 'vote')})`,
        right.includes(index) && ' (correct)',
      ]
        .filter(Boolean)
        .join(''),
    ),
    poll.explanation && `explanation: ${marked(poll.explanation, poll.explanation_entities)}`,
    poll.allows_multiple_answers ? 'several answers allowed' : undefined,
    poll.is_anonymous === false ? 'votes are public' : undefined,
    poll.is_closed ? 'closed' : undefined,
  );
}

function taskLines({ tasks = [] }: Pick<Checklist, 'tasks'>): readonly string[] {
  return tasks.map(({ text, text_entities: marks, completion_date: at, completed_by_user: by }) => {
    const isDone = (at ?? 0) > 0 || by !== undefined;
    return `${isDone ? '☑' : '☐'} ${marked(text, marks) ?? ''}`;
  });
}

/** Names a task of a checklist; its number if the checklist doesn't come with it. */
export function taskName(checklist: Checklist | undefined, id: number): string {
  return checklist?.tasks?.find((task) => task.id === id)?.text ?? `task ${id}`;
}

/** Reads what a contact's card says besides name and number. */
function cardLines(card: string): readonly string[] {
  return card.split(/\r?\n/).flatMap((line) => {
    const found = /^(?:item\d{1,9}\.)?(EMAIL|ORG|TITLE|ADR|NOTE|URL|BDAY)[^:]{0,100}:(.+)$/i.exec(line);
    return found ? [`${found[1]?.toLowerCase()}: ${found[2]?.replaceAll('\\', '')}`] : [];
  });
}

function giftLine({ gift, text, entities: marks }: NonNullable<Content['gift']>): string | undefined {
  return label('Gift', gift?.sticker?.emoji, starsOf(gift?.star_count), marked(text, marks));
}

type Prize = {
  readonly winner_count?: number | undefined;
  readonly prize_description?: string | undefined;
  readonly prize_star_count?: number | undefined;
  readonly premium_subscription_month_count?: number | undefined;
  readonly winners_selection_date?: number | undefined;
};

function prizeOf(prize: Prize): readonly (string | undefined)[] {
  const { premium_subscription_month_count: months, winners_selection_date: at } = prize;
  return [
    countOf(prize.winner_count, 'winner'),
    prize.prize_description,
    starsOf(prize.prize_star_count),
    months ? `Telegram Premium for ${countOf(months, 'month')}` : undefined,
    at === undefined ? undefined : `drawn ${formatTime(at)}`,
  ];
}

function starsOf(count: number | undefined): string | undefined {
  return countOf(count, 'Telegram Star');
}

function countOf(count: number | undefined, noun: string): string | undefined {
  return count ? `${count} ${noun}${count === 1 ? '' : 's'}` : undefined;
}

type Price = { readonly currency?: string | undefined; readonly total_amount?: number | undefined };

/** Amounts are in the smallest unit of their currency. */
function priceOf({ currency = '', total_amount: total }: Price): string | undefined {
  if (total === undefined) return undefined;
  if (currency === 'XTR') return starsOf(total);
  if (!/^[A-Z]{3}$/.test(currency)) return `${total} ${currency}`;
  const format = new Intl.NumberFormat('en', { style: 'currency', currency, currencyDisplay: 'code' });
  return format
    .format(total / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 2))
    .replace(/\s/, ' ');
}
