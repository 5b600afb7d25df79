/** The content fields of a message, and of the messages that it quotes. Unknown members are dropped, broken ones absent. */
import { z } from 'zod';
import {
  chatSchema,
  entities,
  fileSchema,
  flag,
  listOf,
  longText,
  name,
  optionalId,
  part,
  quantity,
  textId,
  userSchema,
  words,
} from './fields.ts';

/** Longest text of a single line that describes something, such as an option of a poll. */
const shortText = words(2048);
const amount = { currency: words(8), total_amount: quantity };

export const originSchema = z.object({
  type: z.string().max(64).catch('unknown'),
  sender_user: part(userSchema),
  sender_user_name: name,
  sender_chat: part(chatSchema),
  chat: part(chatSchema),
});

const stickerSchema = fileSchema.extend({
  /** Used as a text, so it may only contain emoji. */
  emoji: z
    .string()
    .max(64)
    .regex(/^[\p{Emoji}\p{Emoji_Component}]*$/u)
    .optional()
    .catch(undefined),
  set_name: name,
  is_animated: flag,
  is_video: flag,
  thumbnail: part(fileSchema),
});

const photo = listOf(fileSchema, 50);
const livePhoto = part(fileSchema.extend({ photo }));
const locationSchema = z.object({
  latitude: z.number(),
  longitude: z.number(),
  /** Present while the moving location is still being shared. */
  live_period: z.unknown().optional(),
});
const venueSchema = z.object({ title: name, address: name, location: part(locationSchema) });

/** The files of a message, of a poll, or of a block in a rich message. */
const mediaShape = {
  photo,
  live_photo: livePhoto,
  voice: part(fileSchema),
  audio: part(fileSchema.extend({ title: name, performer: name })),
  video: part(fileSchema),
  video_note: part(fileSchema),
  animation: part(fileSchema),
  document: part(fileSchema),
  sticker: part(stickerSchema),
};

const pollMedia = part(
  z.object({
    ...mediaShape,
    location: part(locationSchema),
    venue: part(venueSchema),
    link: part(z.object({ url: shortText })),
  }),
);
const pollSchema = z.object({
  question: shortText,
  question_entities: entities,
  description: shortText,
  description_entities: entities,
  explanation: shortText,
  explanation_entities: entities,
  options: listOf(
    z.object({
      persistent_id: textId,
      text: shortText,
      text_entities: entities,
      voter_count: quantity,
      media: pollMedia,
    }),
    100,
  ),
  correct_option_ids: listOf(z.int(), 100),
  /** From servers older than those with several correct options. */
  correct_option_id: quantity,
  type: words(64),
  is_closed: flag,
  is_anonymous: flag,
  allows_multiple_answers: flag,
  close_date: quantity,
  media: pollMedia,
  explanation_media: pollMedia,
});

const taskSchema = z.object({
  id: optionalId,
  text: shortText,
  text_entities: entities,
  completion_date: quantity,
  completed_by_user: part(userSchema),
  completed_by_chat: part(chatSchema),
});
const tasks = listOf(taskSchema, 200);
const checklistSchema = z.object({ title: shortText, title_entities: entities, tasks });
/** The checklist that a report about its tasks belongs to. */
const checklistMessage = part(z.object({ checklist: part(checklistSchema) }));
const taskIds = listOf(z.int(), 200);

const prize = {
  winner_count: quantity,
  prize_description: shortText,
  prize_star_count: quantity,
  premium_subscription_month_count: quantity,
  winners_selection_date: quantity,
};
const giftText = { text: shortText, entities };
const giftSchema = z.object({
  ...giftText,
  gift: part(z.object({ star_count: quantity, sticker: part(stickerSchema) })),
});
const sharedChat = { title: name, username: name };
const changedOption = z.object({ option_text: shortText, option_text_entities: entities });
const people = listOf(userSchema, 100);

const buttonSchema = z.object({ text: shortText, url: shortText });

/** Content that a line describes. */
const lineShape = {
  paid_media: part(
    z.object({ star_count: quantity, paid_media: listOf(z.object({ ...mediaShape, type: words(64) }), 20) }),
  ),
  reply_markup: part(z.object({ inline_keyboard: listOf(listOf(buttonSchema, 20), 100) })),
  checklist: part(checklistSchema),
  checklist_tasks_added: part(z.object({ tasks, checklist_message: checklistMessage })),
  checklist_tasks_done: part(
    z.object({
      marked_as_done_task_ids: taskIds,
      marked_as_not_done_task_ids: taskIds,
      checklist_message: checklistMessage,
    }),
  ),
  contact: part(
    z.object({
      phone_number: name,
      first_name: name,
      last_name: name,
      user_id: optionalId,
      vcard: shortText,
    }),
  ),
  dice: part(z.object({ emoji: words(16), value: quantity })),
  game: part(
    z.object({ title: shortText, description: shortText, text: shortText, text_entities: entities }),
  ),
  gift: part(giftSchema),
  gift_upgrade_sent: part(giftSchema),
  giveaway: part(z.object({ ...prize, chats: listOf(chatSchema, 50) })),
  giveaway_created: part(z.object({ prize_star_count: quantity })),
  giveaway_completed: part(z.object({ winner_count: quantity, unclaimed_prize_count: quantity })),
  giveaway_winners: part(z.object({ ...prize, chat: part(chatSchema), winners: people })),
  invoice: part(z.object({ ...amount, title: shortText, description: shortText })),
  location: part(locationSchema),
  poll: part(pollSchema),
  poll_option_added: part(changedOption),
  poll_option_deleted: part(changedOption),
  story: part(z.object({ chat: part(chatSchema), id: optionalId })),
  successful_payment: part(z.object({ ...amount, is_recurring: flag })),
  unique_gift: part(
    z.object({
      ...giftText,
      gift: part(z.object({ base_name: name, number: quantity })),
    }),
  ),
  users_shared: part(
    z.object({
      users: listOf(
        z.object({ user_id: optionalId, first_name: name, last_name: name, username: name }),
        100,
      ),
    }),
  ),
  chat_shared: part(z.object({ ...sharedChat, chat_id: optionalId })),
  venue: part(venueSchema),
  video_chat_scheduled: part(z.object({ start_date: quantity })),
  video_chat_started: part(z.object({})),
  video_chat_ended: part(z.object({ duration: quantity })),
  video_chat_participants_invited: part(z.object({ users: people })),
  web_app_data: part(z.object({ data: longText, button_text: name })),
};

export const contentShape = {
  text: longText,
  entities,
  caption: longText,
  caption_entities: entities,
  /** Read block by block by `rich-message.ts`, which bounds it. */
  rich_message: z.unknown().optional(),
  ...mediaShape,
  ...lineShape,
};

const mediaSchema = z.object(mediaShape);
const contentSchema = z.object(contentShape);

export type Origin = z.output<typeof originSchema>;
export type Media = z.output<typeof mediaSchema>;
export type Content = z.output<typeof contentSchema>;
export type Poll = NonNullable<Content['poll']>;
export type PollMedia = z.output<typeof pollMedia>;
export type Checklist = NonNullable<Content['checklist']>;
export type LineField = keyof typeof lineShape;

/** Reads the files of a block in a rich message. */
export function readMedia(value: unknown): Media {
  const read = mediaSchema.safeParse(value);
  return read.success ? read.data : {};
}
